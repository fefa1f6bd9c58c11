package api

import (
	"sync/atomic"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/core/sessions"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// Hosted is one replica of this broker as connections see it: its names and
// its log. Owner belongs to the loop that owns the partition's state.
type Hosted struct {
	TP    model.TopicPartition
	ID    model.TopicIDPartition
	Log   *storage.Log
	Owner any

	// Generation is the truncation generation that the loop last published. A
	// read that was planned in another one is void.
	Generation atomic.Uint64
	// Gone says that the replica is hosted no more: look it up again.
	Gone atomic.Bool
}

// Replicas is the loop that owns every partition hosted here. ByID returns nil
// for a partition that is not hosted. Produce and Fetch post work;
// its Done is called once, from the loop, and must not block.
type Replicas interface {
	ByID(id model.TopicIDPartition) *Hosted
	Produce(*Produce)
	Fetch(*Fetch)
	// Leave ends a follower's session.
	Leave(*Standing)
}

// Produce is one produce request on its way through the broker.
type Produce struct {
	Acks    int16
	Timeout time.Duration
	Parts   []ProducePart
	// Stored is called once when no part needs the batches' bytes any more,
	// Done once when every part has its answer; both from a loop of the broker.
	Stored func()
	Done   func()
}

// ProducePart is one partition of a produce request. Hosted is nil and Err set
// when it was refused before it reached the loop.
type ProducePart struct {
	Hosted   *Hosted
	Batch    []byte // one checked batch; may alias the request's frame
	Producer producers.Batch

	// The answer.
	Err         model.Error
	Base        model.Offset // UnknownOffset with an error
	Timestamp   model.Millis // of the original, if the batch was written before; or -1
	LogStart    model.Offset
	Leader      model.BrokerID // with NOT_LEADER_OR_FOLLOWER
	LeaderEpoch model.Epoch
}

// Fetch is one fetch request on its way through the broker.
type Fetch struct {
	Replica  model.BrokerID // NoBroker for a consumer
	MaxWait  time.Duration
	MinBytes int64
	MaxBytes int64
	Parts    []FetchPart
	// Standing is the session of a follower, nil outside of any. The loop adds parts
	// of it that were quiet, behind the others.
	Standing *Standing
	// Epoch is that of the follower's registration, and Left are the seats of the
	// partitions that it fetches no more.
	Epoch model.BrokerEpoch
	Left  []*Seat
	// Done is called once, from the loop, when every part has its reply.
	Done func()
}

// FetchPart is one partition of a fetch request. Hosted is nil and Reply.Err
// set when it was refused before it reached the loop; such a part ends the wait.
type FetchPart struct {
	Hosted  *Hosted
	Request partition.FetchRequest
	Reply   partition.Reply
	// Seat is its place in the follower's session, nil outside of any. Quiet, in the
	// answer, says that the loop watches it: it need not be asked for again.
	Seat  *Seat
	Quiet bool
}

// Standing is a follower's fetch session as the loop sees it: what of it is idle
// costs nothing. Owner belongs to the loop.
type Standing struct{ Owner any }

// Seat is a partition's place in a Standing. Owner belongs to the loop.
type Seat struct {
	Owner any

	entry  *sessions.Partition
	hosted *Hosted
}

// Refuse makes the part's reply an error.
func (p *FetchPart) Refuse(err model.Error) {
	p.Reply = partition.Reply{
		Err: err, Now: true,
		HW: model.UnknownOffset, LSO: model.UnknownOffset, LogStart: model.UnknownOffset,
		Diverging: model.UndefinedEpochEnd, Preferred: model.NoBroker, Leader: model.NoBroker, LeaderEpoch: model.NoEpoch,
	}
}
