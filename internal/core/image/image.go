package image

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Image is the state of the cluster at one offset. It never changes: Apply
// returns a new one that shares what did not change, so any number of
// goroutines may hold any number of images.
//
// While a transaction of the log is open, its records are collected in a shadow
// that becomes the image at its end. The image itself stays as it was before.
type Image struct {
	end       model.Offset // of what is shown
	epoch     model.Epoch  // of the last record before end
	read      model.Offset // of what was applied, the shadow included
	readEpoch model.Epoch
	shadow    *Image // the open transaction; nil when none is open
	ignored   int

	brokers     []*Broker
	controllers []*Controller
	features    []Feature
	voters      []metalog.Voter
	kraft       int16

	byName     tree[string, *Topic]
	byID       tree[model.UUID, *Topic]
	partitions int
	loads      tree[model.BrokerID, load]
	leaderless tree[model.TopicIDPartition, struct{}]
	moving     tree[model.TopicIDPartition, struct{}] // with adding or removing replicas

	configs        tree[resource, map[string]string]
	quotas         tree[string, *quota]
	acls           tree[model.UUID, *metalog.AccessControlEntry]
	credentials    tree[credential, *metalog.UserScramCredential]
	tokens         tree[string, *metalog.DelegationToken]
	nextProducerID model.ProducerID
}

// load counts the partitions of a broker.
type load struct {
	replicas int
	leads    int
}

// resource names what configs belong to.
type resource struct {
	kind int8
	name string
}

// credential names one SCRAM credential.
type credential struct {
	user      string
	mechanism int8
}

// quota holds the quotas of one entity.
type quota struct {
	entity []metalog.QuotaEntity
	values map[string]float64
}

// New returns the image of an empty log.
func New() *Image {
	return &Image{
		epoch: model.NoEpoch, readEpoch: model.NoEpoch,
		byName:      tree[string, *Topic]{compare: cmp.Compare[string]},
		byID:        tree[model.UUID, *Topic]{compare: compareUUID},
		loads:       tree[model.BrokerID, load]{compare: cmp.Compare[model.BrokerID]},
		leaderless:  tree[model.TopicIDPartition, struct{}]{compare: comparePartition},
		moving:      tree[model.TopicIDPartition, struct{}]{compare: comparePartition},
		configs:     tree[resource, map[string]string]{compare: compareResource},
		quotas:      tree[string, *quota]{compare: cmp.Compare[string]},
		acls:        tree[model.UUID, *metalog.AccessControlEntry]{compare: compareUUID},
		credentials: tree[credential, *metalog.UserScramCredential]{compare: compareCredential},
		tokens:      tree[string, *metalog.DelegationToken]{compare: cmp.Compare[string]},
	}
}

func compareUUID(a, b model.UUID) int { return slices.Compare(a[:], b[:]) }

func comparePartition(a, b model.TopicIDPartition) int {
	return cmp.Or(compareUUID(a.TopicID, b.TopicID), cmp.Compare(a.Partition, b.Partition))
}

func compareResource(a, b resource) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

func compareCredential(a, b credential) int {
	return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.mechanism, b.mechanism))
}

// End is the offset after the last record that the image shows.
func (i *Image) End() model.Offset { return i.end }

// Epoch is the epoch of the last record before End; model.NoEpoch at the start.
func (i *Image) Epoch() model.Epoch { return i.epoch }

// Read is the offset after the last record that was applied. It is above End
// while a transaction is open.
func (i *Image) Read() model.Offset { return i.read }

// InTransaction reports whether a transaction is open.
func (i *Image) InTransaction() bool { return i.shadow != nil }

// Ignored counts the records that referred to something absent or stale. Such a
// record is a fault of its writer; it changes nothing.
func (i *Image) Ignored() int { return i.ignored }

// Broker returns the broker, or nil.
func (i *Image) Broker(id model.BrokerID) *Broker {
	at, ok := findBroker(i.brokers, id)
	if !ok {
		return nil
	}
	return i.brokers[at]
}

func findBroker(list []*Broker, id model.BrokerID) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(b *Broker, id model.BrokerID) int { return cmp.Compare(b.ID, id) })
}

// Brokers returns all brokers, sorted by id. The caller must not change it.
func (i *Image) Brokers() []*Broker { return i.brokers }

// Controller returns the controller, or nil.
func (i *Image) Controller(id model.BrokerID) *Controller {
	at, ok := findController(i.controllers, id)
	if !ok {
		return nil
	}
	return i.controllers[at]
}

func findController(list []*Controller, id model.BrokerID) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(c *Controller, id model.BrokerID) int { return cmp.Compare(c.ID, id) })
}

// Controllers returns all registered controllers, sorted by id. The caller must
// not change it.
func (i *Image) Controllers() []*Controller { return i.controllers }

// TopicByName returns the topic, or nil.
func (i *Image) TopicByName(name string) *Topic {
	t, _ := i.byName.get(name)
	return t
}

// TopicByID returns the topic, or nil.
func (i *Image) TopicByID(id model.UUID) *Topic {
	t, _ := i.byID.get(id)
	return t
}

// Partition returns the partition, or nil.
func (i *Image) Partition(topic model.UUID, partition int32) *Partition {
	t := i.TopicByID(topic)
	if t == nil || partition < 0 || int(partition) >= len(t.Partitions) || t.Partitions[partition] == absent {
		return nil
	}
	return t.Partitions[partition]
}

// Topics yields all topics, sorted by name.
func (i *Image) Topics() iter.Seq[*Topic] { return values(i.byName.all()) }

// TopicsFrom yields the topics whose name is at least name, sorted by name.
func (i *Image) TopicsFrom(name string) iter.Seq[*Topic] { return values(i.byName.from(name)) }

func values[K, V any](seq iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range seq {
			if !yield(v) {
				return
			}
		}
	}
}

func keys[K, V any](seq iter.Seq2[K, V]) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range seq {
			if !yield(k) {
				return
			}
		}
	}
}

// TopicCount is the number of topics.
func (i *Image) TopicCount() int { return i.byName.len }

// PartitionCount is the number of partitions of all topics.
func (i *Image) PartitionCount() int { return i.partitions }

// Config returns the configs of a resource, such as metalog.ResourceTopic and
// the topic's name; nil when there are none. The caller must not change the map.
func (i *Image) Config(kind int8, name string) map[string]string {
	m, _ := i.configs.get(resource{kind, name})
	return m
}

// ConfigNames yields the resources of the type that have configs, sorted by name.
func (i *Image) ConfigNames(kind int8) iter.Seq[string] {
	return func(yield func(string) bool) {
		for r := range i.configs.from(resource{kind: kind}) {
			if r.kind != kind || !yield(r.name) {
				return
			}
		}
	}
}

// Feature returns the finalized level of a feature, 0 if none.
func (i *Image) Feature(name string) int16 {
	at, ok := findFeature(i.features, name)
	if !ok {
		return 0
	}
	return i.features[at].Level
}

func findFeature(list []Feature, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(f Feature, name string) int { return cmp.Compare(f.Name, name) })
}

// Features returns all finalized features, sorted by name. kraft.version is not
// among them: see KRaftVersion. The caller must not change it.
func (i *Image) Features() []Feature { return i.features }

// NextProducerID is the first producer id that was never handed out.
func (i *Image) NextProducerID() model.ProducerID { return i.nextProducerID }

// Voters returns the voter set that the log states, nil if it states none.
func (i *Image) Voters() []metalog.Voter { return i.voters }

// KRaftVersion returns the level of kraft.version that the log states, 0 if none.
func (i *Image) KRaftVersion() int16 { return i.kraft }
