// Package check watches a simulated cluster. It says when something that must
// always be true is not: between two steps of the simulation it looks at whole
// nodes, at their replicas, their logs on disk, their pictures of the metadata,
// at what clients were told.
package check

import (
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// Cluster is what can be looked at between two steps. The world keeps one and
// brings it up to date; nothing of it is kept by a Set but what it points to.
type Cluster struct {
	Brokers     []Broker     // in the order of their ids
	Controllers []Controller // likewise
}

// Broker is one broker as it is now.
type Broker struct {
	ID      model.BrokerID
	Life    uint64 // counts the processes that ran under this id, from 1
	Running bool
	Paused  bool              // runs, but gets no time: nothing is demanded of it
	Epoch   model.BrokerEpoch // of this life's registration; -1 before
	Clean   model.BrokerEpoch // of the life before, if its disk says that it ended in order; else -1
	Image   *image.Image      // what its metadata loop has published; nil before the first
	Steps   uint64            // partition steps that its replicas loop made
	// Replicas visits the replicas that it hosts. It is called only if Steps,
	// Life or Image changed, while Running.
	Replicas func(visit func(Replica))
	// Synced is what a power cut would leave of a replica's leader-epoch-checkpoint;
	// nil when it would leave none. It is nil itself when nobody knows.
	Synced func(tp model.TopicPartition) []byte
	// Parked visits the fetches that wait; nil when not told. It is called when
	// Replicas is.
	Parked func(visit func(Parked))
	// Overdue says what waits in the purgatory though it could be answered, or
	// longer than it may (I32); nil when not told.
	Overdue func() error
}

// Replica is one replica of a running broker.
type Replica struct {
	TP  model.TopicPartition
	ID  model.TopicIDPartition
	P   *partition.Partition
	Log *storage.Log
	// Asked tells when a follower last sent a request for what it has all of, and
	// whether this is among it; nil when not told.
	Asked func(model.BrokerID) (at model.Time, quiet bool)
}

// Parked is a fetch that waits.
type Parked struct {
	By       model.BrokerID // the follower; NoBroker is a consumer
	MinBytes int64          // that it waits for
	Asks     []Ask
}

// Ask is what a fetch wants of one partition.
type Ask struct {
	ID model.TopicIDPartition
	partition.FetchRequest
	// News says that the fetch will be answered within moments, because its follower
	// can be told of a HW; Overdue looks after how long that takes.
	News bool
}

// Controller is one controller as it is now.
type Controller struct {
	ID      model.BrokerID
	Running bool
	Image   *image.Image // what was committed, as far as it knows; nil before the first
	End     model.Offset // of its metadata log, committed
	// Beats visits what it knows of the lives of brokers; nil when nobody asks. It
	// is called only while it decides.
	Beats func(visit func(controlplane.Beat))
	// Leads is the epoch in which it was elected and decides; -1 when it does not.
	Leads model.Epoch
}

// How tells in which way a broker's process ended, hence what its disk may lack.
type How uint8

// The ways to end.
const (
	Orderly  How = iota // it was asked to stop and did: the disk is complete
	Killed              // the process ended at once; what it wrote is on the disk
	PowerCut            // what was not synced may be gone
	Wiped               // its disk is empty now
	Rotted              // its disk holds other bytes than were written
)

// Options are what a Set has to know of the cluster that it watches.
type Options struct {
	MinISR         int           // min.insync.replicas of a topic that has none of its own; 0 is 1
	SessionTimeout time.Duration // broker.session.timeout.ms; 0: lives of brokers are not timed
	ProducerExpiry time.Duration // producer.id.expiration.ms; 0 is a day
	LagMax         time.Duration // replica.lag.time.max.ms; 0 is half a minute
	History        *History      // what clients did; nil when nobody tells
	// Quietly runs f with no faults of disks: the checkers read logs. nil: as is.
	Quietly func(f func())
	Skip    []string // names of invariants that are not checked
}

// Invariant is one that a user brings. Check is called after each step and says
// what is wrong.
type Invariant interface {
	Name() string
	Check(c *Cluster) error
}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string               // its name, see All
	Partition model.TopicPartition // zero when it is about none
	Text      string
}

// Error tells the violation in one line.
func (v *Violation) Error() string {
	if v.Partition.Topic == "" {
		return fmt.Sprintf("%s: %s", v.Invariant, v.Text)
	}
	return fmt.Sprintf("%s: %v: %s", v.Invariant, v.Partition, v.Text)
}

// About describes one invariant for people.
type About struct {
	Name    string
	Numbers string // in the specification, such as "I1" or "J2, J8"
	Says    string // one sentence
	// Clean says that it holds only as long as no more was lost than the cluster
	// is made to survive.
	Clean bool
}
