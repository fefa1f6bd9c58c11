package replicas

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/replicas/cuts"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// replica is one partition hosted here, as the replicas loop owns it: the core
// that decides, the log that it decides about, and what waits for the two.
type replica struct {
	hosted *api.Hosted
	p      *partition.Partition
	log    *storage.Log

	// appending are the produced batches that the log writer has yet to report,
	// in offset order.
	appending []appending
	// held are produce parts that came while this broker became leader: they go
	// on when its epoch is safe on disk.
	held []producePart

	// epoch is the partition epoch that the metadata brought last; answer is the
	// controller's answer to an ISR proposal that is ahead of it.
	epoch  model.PartitionEpoch
	answer *partition.ISRAnswer

	// As a follower: where it is fetched from, what the leader was last asked.
	source  *source
	sent    partition.FetchPosition
	inSet   bool          // part of the fetch session
	dirty   bool          // queued in source.dirty
	asking  bool          // the leader is to be asked for its log's bounds
	delayed bool          // waits for its backoff
	pause   time.Duration // the last backoff; 0 after an answer without one
	// backoffs tells the timer of the latest backoff from earlier ones.
	backoffs uint64
	flying   *fetched // the answer whose bytes its log still takes

	cuts []cuts.Cut // what truncations removed here, the newest ones (R13.3)

	// quiet are the seats of followers' sessions for which nothing happens here, and
	// bells the sessions whose waiting request was told of it (see standing).
	quiet []*seat
	bells []*standing
	// rested tells of those who were quiet here, for checkers.
	rested []rested

	checkpointed model.Offset // HW in the last checkpoint
	ends         lastEnds
}

// lastEnds are where the last appends ended on disk. A follower's fetch begins
// at one of them, as a rule; a high watermark that it moves then has a position,
// so that the bytes below it can be counted without a look at the disk (R1.19).
type lastEnds struct {
	ends [8]struct {
		offset model.Offset
		pos    model.Position
	}
	n int
}

func (e *lastEnds) add(offset model.Offset, pos model.Position) {
	at := &e.ends[e.n%len(e.ends)]
	at.offset, at.pos = offset, pos
	e.n++
}

// of returns the position of an offset, if an append ended there lately.
func (e *lastEnds) of(offset model.Offset) model.Position {
	for i := range min(e.n, len(e.ends)) {
		if at := &e.ends[i]; at.offset == offset {
			return at.pos
		}
	}
	return model.UnknownPosition
}

// appending is a produced batch on its way to the log.
type appending struct {
	end model.Offset
	producePart
}

// producePart is one partition of a produce request.
type producePart struct {
	op *produceOp
	i  int
}

func (r *replica) tp() model.TopicPartition { return r.hosted.TP }

// stopped reports whether the replica is hosted no more.
func (r *replica) stopped() bool { return r.p.Role() == partition.Stopped }
