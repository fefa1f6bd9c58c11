package image

import (
	"iter"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Image is the state of the cluster at one offset. It never changes: Apply
// returns a new one that shares what did not change.
type Image struct{}

// New returns the image of an empty log.
func New() *Image { return &Image{} }

// End is the offset after the last record that the image shows.
func (i *Image) End() model.Offset { return 0 }

// Read is the offset after the last record that was applied. It is above End
// while a transaction is open.
func (i *Image) Read() model.Offset { return 0 }

// InTransaction reports whether a transaction is open.
func (i *Image) InTransaction() bool { return false }

// Epoch is the epoch of the last record before End.
func (i *Image) Epoch() model.Epoch { return 0 }

// Apply returns the image after one batch of records; end is the offset after
// the last. Records inside a transaction show only after its end.
func (i *Image) Apply(batch []metalog.Record, end model.Offset, epoch model.Epoch) *Image { return i }

// ApplyControl returns the image after one control batch.
func (i *Image) ApplyControl(batch []metalog.Control, end model.Offset, epoch model.Epoch) *Image {
	return i
}

// Broker returns the broker, or nil.
func (i *Image) Broker(id model.BrokerID) *Broker { return nil }

// Brokers returns all brokers, sorted by id. The caller must not change it.
func (i *Image) Brokers() []*Broker { return nil }

// Controller returns the controller, or nil.
func (i *Image) Controller(id model.BrokerID) *Controller { return nil }

// Controllers returns all registered controllers, sorted by id.
func (i *Image) Controllers() []*Controller { return nil }

// TopicByName returns the topic, or nil.
func (i *Image) TopicByName(name string) *Topic { return nil }

// TopicByID returns the topic, or nil.
func (i *Image) TopicByID(id model.UUID) *Topic { return nil }

// Topics yields all topics, sorted by name.
func (i *Image) Topics() iter.Seq[*Topic] { return nil }

// TopicsFrom yields the topics whose name is at least name, sorted by name.
func (i *Image) TopicsFrom(name string) iter.Seq[*Topic] { return nil }

// TopicCount is the number of topics.
func (i *Image) TopicCount() int { return 0 }

// PartitionCount is the number of partitions of all topics.
func (i *Image) PartitionCount() int { return 0 }

// Partition returns the partition, or nil.
func (i *Image) Partition(topic model.UUID, partition int32) *Partition { return nil }

// Config returns the configs of a resource (metalog.ResourceTopic ...). The
// caller must not change the map; it is nil when there are none.
func (i *Image) Config(resource int8, name string) map[string]string { return nil }

// ConfigNames yields the resources of the type that have configs, sorted by name.
func (i *Image) ConfigNames(resource int8) iter.Seq[string] { return nil }

// Feature returns the finalized level of a feature, 0 if none.
func (i *Image) Feature(name string) int16 { return 0 }

// Features returns all finalized features, sorted by name.
func (i *Image) Features() []Feature { return nil }

// NextProducerID is the first producer id that was never handed out.
func (i *Image) NextProducerID() model.ProducerID { return 0 }

// Voters returns the voter set that the log states, nil if it states none.
func (i *Image) Voters() []metalog.Voter { return nil }

// KRaftVersion returns the level of kraft.version that the log states.
func (i *Image) KRaftVersion() int16 { return 0 }

// PartitionsOf yields the partitions that have the broker among their
// replicas, in the order of Topics.
func (i *Image) PartitionsOf(broker model.BrokerID) iter.Seq2[*Topic, int32] { return nil }

// LedBy yields the partitions that the broker leads.
func (i *Image) LedBy(broker model.BrokerID) iter.Seq2[*Topic, int32] { return nil }

// LeaderCount is the number of partitions that the broker leads.
func (i *Image) LeaderCount(broker model.BrokerID) int { return 0 }

// Leaderless yields the partitions without a leader.
func (i *Image) Leaderless() iter.Seq[model.TopicIDPartition] { return nil }

// Reassigning yields the partitions with adding or removing replicas.
func (i *Image) Reassigning() iter.Seq[model.TopicIDPartition] { return nil }

// Records yields the records that rebuild the image, in an order that any
// reader of the log accepts.
func (i *Image) Records() iter.Seq[metalog.Record] { return nil }

// Delta is what differs between two images.
type Delta struct {
	Old, New *Image
	Topics   []TopicDelta
	Brokers  []BrokerDelta
	Configs  []ConfigDelta
	Features bool // some finalized feature changed
}

// TopicDelta is one topic that differs. A topic deleted and created again under
// its name appears twice, since the ids differ.
type TopicDelta struct {
	Old        *Topic  // nil: created
	New        *Topic  // nil: deleted
	Partitions []int32 // the partitions that differ; all of them when created or deleted
}

// BrokerDelta is one broker that differs.
type BrokerDelta struct {
	Old *Broker // nil: registered
	New *Broker // nil: unregistered
}

// ConfigDelta is one resource whose configs differ.
type ConfigDelta struct {
	Resource int8
	Name     string
	Old, New map[string]string
}

// Diff compares two images by pointers: its cost is about that of the changes
// between them.
func Diff(old, new *Image) *Delta { return &Delta{Old: old, New: new} }
