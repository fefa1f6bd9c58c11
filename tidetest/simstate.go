package tidetest

import (
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/sim"
	"github.com/tidemark-log/tidemark/internal/sim/check"
)

// SimState is a simulated cluster between two steps, for an invariant to look at.
// What it returns is put together when it is asked for; it must not be changed,
// nor kept beyond the check.
type SimState struct {
	cluster *check.Cluster
	outlook sim.Outlook

	truth      *image.Image // the newest that was committed
	hosts      []simHost    // in the order of cluster.Brokers
	partitions []SimPartition
	current    bool // partitions are those of truth and hosts
}

// simHost is what one broker hosts, as of the last look at it.
type simHost struct {
	running     bool
	life, steps uint64
	image       *image.Image
	replicas    []simReplica
}

// simReplica is one replica, as of so many steps of it.
type simReplica struct {
	p     *partition.Partition
	steps uint64
	id    model.TopicIDPartition
	mark  Mark
}

// SimBroker is a broker.
type SimBroker struct {
	ID      int
	Running bool
	Paused  bool // by the plan: it runs, but gets no time
	Life    int  // counts the processes that ran under this id, from 1
	// Registered says that the process that runs has a broker epoch.
	Registered bool
	// MetadataEnd is the offset up to which it has applied the metadata log; 0
	// while it does not run.
	MetadataEnd int64
}

// SimController is a controller.
type SimController struct {
	ID      int
	Running bool
	// MetadataEnd is the offset up to which it knows the metadata log to be
	// committed.
	MetadataEnd int64
}

// SimPartition is a partition, as the newest committed metadata has it, with the
// marks of its replicas.
type SimPartition struct {
	Topic          string
	TopicID        string // of this one: a topic that is deleted and comes again has another
	Partition      int
	Leader         int // 0: none
	LeaderEpoch    int32
	PartitionEpoch int32
	Replicas       []int // the preferred leader first
	ISR            []int // in the order of the metadata
	// Marks are what the replicas on brokers that run know of themselves, by broker
	// id. Marks of a broker that has not heard of the newest metadata may be there
	// too, with an older epoch.
	Marks []Mark
}

// Now is how long the simulation has run.
func (s *SimState) Now() time.Duration { return s.outlook.Now() }

// Clean says that no more was lost than min.insync.replicas protects from, nor was
// a leader elected that may lack records. Once it is false, acknowledged records
// may rightly be gone.
func (s *SimState) Clean() bool { return s.outlook.Clean() }

// Brokers are all brokers, by id.
func (s *SimState) Brokers() []SimBroker {
	var out []SimBroker
	for i := range s.cluster.Brokers {
		b := &s.cluster.Brokers[i]
		v := SimBroker{ID: int(b.ID), Running: b.Running, Paused: b.Paused, Life: int(b.Life),
			Registered: b.Epoch != model.UnknownBrokerEpoch}
		if b.Image != nil {
			v.MetadataEnd = int64(b.Image.End())
		}
		out = append(out, v)
	}
	return out
}

// Controllers are all controllers, by id.
func (s *SimState) Controllers() []SimController {
	var out []SimController
	for i := range s.cluster.Controllers {
		c := &s.cluster.Controllers[i]
		out = append(out, SimController{ID: int(c.ID), Running: c.Running, MetadataEnd: int64(c.End)})
	}
	return out
}

// Partition is one partition; false says that the metadata has none such.
func (s *SimState) Partition(topic string, p int) (SimPartition, bool) {
	for _, v := range s.Partitions() {
		if v.Topic == topic && v.Partition == p {
			return v, true
		}
	}
	return SimPartition{}, false
}

// Partitions are all partitions, the cluster's own topics included, by topic and
// number.
func (s *SimState) Partitions() []SimPartition {
	s.look()
	if s.current {
		return s.partitions
	}
	s.current, s.partitions = true, nil
	if s.truth == nil {
		return nil
	}
	for t := range s.truth.Topics() {
		for n, p := range t.Partitions {
			s.partitions = append(s.partitions, SimPartition{Topic: t.Name, TopicID: t.ID.String(), Partition: n, Leader: max(0, int(p.Leader)),
				LeaderEpoch: int32(p.LeaderEpoch), PartitionEpoch: int32(p.PartitionEpoch), Replicas: ints(p.Replicas),
				ISR: ints(p.ISR), Marks: s.marks(model.TopicIDPartition{TopicID: t.ID, Partition: int32(n)})})
		}
	}
	return s.partitions
}

func (s *SimState) marks(id model.TopicIDPartition) []Mark {
	var out []Mark
	for i := range s.hosts {
		for _, r := range s.hosts[i].replicas {
			if r.id == id {
				out = append(out, r.mark)
			}
		}
	}
	return out
}

func ints(ids []model.BrokerID) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

// look takes in what has changed since the last look.
func (s *SimState) look() {
	for i := range s.cluster.Controllers {
		if img := s.cluster.Controllers[i].Image; img != nil && (s.truth == nil || img.End() > s.truth.End()) {
			s.truth, s.current = img, false
		}
	}
	if s.hosts == nil {
		s.hosts = make([]simHost, len(s.cluster.Brokers))
	}
	for i := range s.hosts {
		b, h := &s.cluster.Brokers[i], &s.hosts[i]
		if h.running != b.Running || b.Running && (h.life != b.Life || h.steps != b.Steps || h.image != b.Image) {
			s.current = false
			h.take(b)
		}
	}
}

// take looks at the replicas of a broker; those that made no step are as before.
func (h *simHost) take(b *check.Broker) {
	h.running, h.life, h.steps, h.image = b.Running, b.Life, b.Steps, b.Image
	was := h.replicas
	h.replicas = nil
	if !b.Running {
		return
	}
	b.Replicas(func(r check.Replica) {
		if n := len(h.replicas); n < len(was) && was[n].p == r.P && was[n].steps == r.P.Steps() {
			h.replicas = append(h.replicas, was[n])
			return
		}
		h.replicas = append(h.replicas, simReplica{p: r.P, steps: r.P.Steps(), id: r.ID,
			mark: mark(int(b.ID), r.P.Serving(), r.P.View())})
	})
	h.replicas = slices.Clip(h.replicas)
}
