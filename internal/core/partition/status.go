package partition

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Isolation is how far a reader may see (R9.1).
type Isolation uint8

// The isolations.
const (
	ReadUncommitted Isolation = iota // below the HW
	ReadCommitted                    // below the LSO
	ReadLogEnd                       // below the LEO: replicas
)

// FetchPosition is where a follower fetches next (R4.5, R4.8).
type FetchPosition struct {
	Offset      model.Offset // its LEO
	LastEpoch   model.Epoch  // latest epoch in its cache; NoEpoch when empty
	LeaderEpoch model.Epoch
	LogStart    model.Offset
	// Generation goes back with the answer: one that was sent for before a
	// truncation must not count after it, although offset and epoch may fit.
	Generation uint64
}

// Role is what this replica is now. A role that waits for an append in flight
// does not count yet.
func (p *Partition) Role() Role { return p.role }

// Leader returns the leader known here, or NoBroker, with its epoch.
func (p *Partition) Leader() (model.BrokerID, model.Epoch) { return p.leader, p.epoch }

// Leadership names the current leadership: it changes each time this replica
// stops being leader (R2.20).
func (p *Partition) Leadership() uint64 { return p.leadership }

// Generation changes with each truncation: a read planned before is void. It is
// never 0.
func (p *Partition) Generation() uint64 { return p.generation }

// InFlight reports whether storage has yet to report an append or a truncation.
func (p *Partition) InFlight() bool { return p.next > p.leo || p.truncating }

// Serving reports whether this replica is a leader that takes records: its epoch
// is safe on disk and no change of role waits. A shell may hold a Produce back
// while Role is Leader and Serving is false; it ends with EpochPersisted.
func (p *Partition) Serving() bool {
	return p.role == Leader && !p.lead.persisting && !p.hasDeferred
}

// Marks are the offsets of this replica.
func (p *Partition) Marks() Marks {
	return Marks{LogStart: p.logStart, LSO: p.lso(), HW: p.hw, LEO: p.leo}
}

// lso is the end of what read_committed sees (R1.8).
func (p *Partition) lso() model.Offset {
	if first, ok := p.producers.Unstable(); ok && first < p.hw {
		return max(first, p.logStart)
	}
	return p.hw
}

// NextFetch is where this follower fetches next. It is false for what is no
// follower with a leader, while an append or a truncation is in flight, while
// the leader is asked for its bounds, and after the leader fenced our epoch.
func (p *Partition) NextFetch() (FetchPosition, bool) {
	f := &p.follow
	if p.role != Follower || p.leader == model.NoBroker || p.InFlight() || p.hasDeferred || f.asking || f.fenced {
		return FetchPosition{}, false
	}
	return FetchPosition{Offset: p.leo, LastEpoch: p.epochs.Latest(), LeaderEpoch: p.epoch,
		LogStart: p.logStart, Generation: p.generation}, true
}

// ProduceStatus tells whether a write that waits for all replicas is decided,
// and how. It goes on waiting while done is false (R2.18). Errors: what the
// replica was stopped with, NOT_LEADER_OR_FOLLOWER when the leadership of the
// append is over (R2.20), NOT_ENOUGH_REPLICAS_AFTER_APPEND.
func (p *Partition) ProduceStatus(w ProduceWait) (done bool, err model.Error) {
	switch {
	case p.role == Stopped:
		return true, p.stopErr
	case p.role != Leader || w.Leadership != p.leadership:
		return true, model.ErrNotLeaderOrFollower
	case p.hw < w.End:
		return false, model.None
	case len(p.lead.maximal) < p.minISR():
		return true, model.ErrNotEnoughReplicasAfterAppend
	}
	return true, model.None
}

// Peek is how a retry of a fetch would be answered now. It changes nothing, so
// that one can see whether a fetch waits in vain.
func (p *Partition) Peek(in FetchRequest) Reply {
	q := *p
	q.out = scratch{}
	q.lead.remotes = slices.Clone(p.lead.remotes)
	for i := range q.lead.remotes {
		q.lead.remotes[i].waits = false // what the retry would record is not asked for
	}
	in.Retry, in.Answering = true, false
	q.Step(p.now, 0, &in)
	return q.out.reply
}

// EndOfEpoch answers OffsetForLeaderEpoch: where the greatest epoch <= e ended,
// for a caller whose current leader epoch is current, NoEpoch when it sent none.
// An unknown epoch is UndefinedEpochEnd without an error (R4.23). Errors:
// FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER.
func (p *Partition) EndOfEpoch(current, e model.Epoch) (model.EpochEnd, model.Error) {
	if err := p.servesLeader(current); err != model.None {
		return model.UndefinedEpochEnd, err
	}
	return p.epochs.EndOf(e, p.leo), model.None
}

// ListBound is the end of what a ListOffsets caller may see: its "latest", and
// the bound below which a lookup by time must lie, with the leader epoch
// (R9.5). OFFSET_NOT_AVAILABLE says that a client may not be told yet, because
// what the last leader committed is not known again: it answers a latest, or a
// lookup without a result below the bound, which is returned all the same
// (R9.6). Errors: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
// NOT_LEADER_OR_FOLLOWER.
func (p *Partition) ListBound(current model.Epoch, iso Isolation) (model.Offset, model.Epoch, model.Error) {
	if err := p.servesLeader(current); err != model.None {
		return model.UnknownOffset, model.NoEpoch, err
	}
	if iso == ReadLogEnd {
		return p.leo, p.epoch, model.None
	}
	bound, err := p.hw, model.None
	if iso == ReadCommitted {
		bound = p.lso()
	}
	if p.lead.start > p.hw {
		err = model.ErrOffsetNotAvailable
	}
	return bound, p.epoch, err
}

// EpochAt is the leader epoch of the record at offset o, NoEpoch when not known.
func (p *Partition) EpochAt(o model.Offset) model.Epoch { return p.epochs.At(o) }

// Epochs returns a copy of the leader epochs of the log, in their order.
func (p *Partition) Epochs() []model.EpochStart { return p.epochs.Entries() }

// servesLeader is the gate of a question that only a leader answers (R3.3).
func (p *Partition) servesLeader(current model.Epoch) model.Error {
	switch {
	case p.role == Stopped:
		return p.stopErr
	case current != model.NoEpoch && current < p.epoch:
		return model.ErrFencedLeaderEpoch
	case current > p.epoch:
		return model.ErrUnknownLeaderEpoch
	case p.role != Leader || p.lead.persisting:
		return model.ErrNotLeaderOrFollower
	}
	return model.None
}

// MinISR is min.insync.replicas as it was last told.
func (p *Partition) MinISR() int { return p.cfg.MinISR }

// minISR is the effective min.insync.replicas (R1.17).
func (p *Partition) minISR() int { return min(p.cfg.MinISR, len(p.replicas)) }
