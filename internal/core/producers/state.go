package producers

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// State is what one replica of a partition knows of its producers. It has one
// owner. The zero value is not usable; see New.
type State struct {
	hw model.Offset
}

// New returns the state of an empty log.
func New() *State { return &State{} }

// Verdict says whether a batch may be appended. Duplicate means that it was
// appended before, at [Base, Last], with Timestamp as its maximum; nothing is
// to be written then (R2.11).
type Verdict struct {
	Err        model.Error
	Duplicate  bool
	Base, Last model.Offset
	Timestamp  model.Millis
}

// Aborted is one entry of the transaction index (R8.5): the records of
// producer ID in [First, Last] were aborted by the marker at Last. LSO is the
// last stable offset that holds after it, not counting the high watermark.
type Aborted struct {
	ID          model.ProducerID
	First, Last model.Offset
	LSO         model.Offset
}

// Entry is one producer in a snapshot file (R8.6). LastSequence, LastOffset
// are -1 and OffsetDelta is 0 when no batch is remembered; TxnFirst is -1 when
// no transaction is open.
type Entry struct {
	ID               model.ProducerID
	Epoch            int16
	LastSequence     int32
	LastOffset       model.Offset
	OffsetDelta      int32
	Timestamp        model.Millis
	CoordinatorEpoch int32
	TxnFirst         model.Offset
}

// Check judges a batch that is about to be appended; b.Base need not be set.
// It changes nothing. fromClient is false for what a follower copies and for
// transaction markers. Errors: OUT_OF_ORDER_SEQUENCE_NUMBER,
// INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED.
// R2.11-R2.15.
func (s *State) Check(b Batch, fromClient bool) Verdict { return Verdict{} }

// Apply folds an appended batch in. It accepts whatever the log holds. The
// second result is true when b is a marker that aborted a transaction with
// records (R2.15).
func (s *State) Apply(b Batch) (Aborted, bool) { return Aborted{}, false }

// Unstable returns the first unstable offset: the smallest first offset of a
// transaction that is open, or whose marker is not below the high watermark
// (R1.8). It is false when there is none.
func (s *State) Unstable() (model.Offset, bool) { return 0, false }

// SetHW tells the high watermark, which forgets finished transactions.
func (s *State) SetHW(hw model.Offset) { s.hw = hw }

// Expire forgets producers without an open transaction that were idle for ttl
// or longer, and returns how many (R2.16).
func (s *State) Expire(now model.Millis, ttl time.Duration) int { return 0 }

// Clone returns an independent copy.
func (s *State) Clone() *State { c := *s; return &c }

// Entries returns the snapshot of the state in order of producer id.
func (s *State) Entries() []Entry { return nil }

// Restore replaces the state by that of a snapshot. Only the last batch of a
// producer is known afterwards (R2.16).
func (s *State) Restore(entries []Entry) {}

// Len is the number of producers remembered.
func (s *State) Len() int { return 0 }
