package producers

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// window is how many batches of a producer are remembered, to know a retry
// again (R2.10). Clients keep at most this many requests in flight.
const window = 5

const (
	noSequence int32 = -1
	noEpoch    int16 = -1
)

// State is what one replica of a partition knows of its producers. It has one
// owner. The zero value is not usable; see New.
type State struct {
	byID map[model.ProducerID]*producer
	// open holds one range per open transaction, finished one per transaction
	// whose marker is not below hw. Both ascend by first offset.
	open     []transaction
	finished []transaction
	hw       model.Offset
}

// producer is the memory of one producer id.
type producer struct {
	epoch            int16
	coordinatorEpoch int32
	timestamp        model.Millis // of its last batch or marker
	txnFirst         model.Offset // UnknownOffset when no transaction is open
	// batches is a ring of the last count batches; next is where the next goes.
	batches     [window]written
	count, next uint8
}

// written is a batch that is in the log. Offsets of a batch are contiguous, so
// delta gives its first offset as well as its first sequence.
type written struct {
	lastSequence int32
	delta        int32 // last offset - first offset
	last         model.Offset
	timestamp    model.Millis
}

func (w written) firstSequence() int32 {
	return int32((int64(w.lastSequence) - int64(w.delta)) & math.MaxInt32)
}

// transaction is the part of a log that one transaction covers; last is its
// marker.
type transaction struct {
	id          model.ProducerID
	first, last model.Offset
}

// New returns the state of an empty log.
func New() *State { return &State{byID: map[model.ProducerID]*producer{}} }

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

// Check judges a batch that is about to be appended; b.Base need not be set.
// It changes nothing. fromClient is false for what a follower copies and for
// transaction markers. Errors: OUT_OF_ORDER_SEQUENCE_NUMBER,
// INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED.
// R2.11-R2.15.
func (s *State) Check(b Batch, fromClient bool) Verdict {
	if b.ID < 0 {
		return Verdict{}
	}
	p := s.byID[b.ID]
	if b.Control {
		return Verdict{Err: p.checkMarker(b)}
	}
	if !fromClient {
		return Verdict{}
	}
	if w, ok := p.find(b); ok {
		return Verdict{Duplicate: true, Base: w.last - model.Offset(w.delta), Last: w.last, Timestamp: w.timestamp}
	}
	return Verdict{Err: p.checkData(b)}
}

// checkMarker judges a transaction marker. p is nil for an unknown producer.
func (p *producer) checkMarker(b Batch) model.Error {
	switch {
	case p == nil:
		return model.None
	case b.Epoch < p.epoch:
		return model.ErrInvalidProducerEpoch
	case b.CoordinatorEpoch < p.coordinatorEpoch:
		return model.ErrTransactionCoordinatorFenced
	}
	return model.None
}

// checkData judges a client's batch that is no duplicate. p is nil for an
// unknown producer, which may start at any sequence (R2.13).
func (p *producer) checkData(b Batch) model.Error {
	open := false
	if p != nil {
		open = p.txnFirst != model.UnknownOffset
		switch {
		case b.Epoch < p.epoch:
			return model.ErrInvalidProducerEpoch
		case p.epoch != noEpoch && b.BaseSequence != p.nextSequence(b.Epoch):
			return model.ErrOutOfOrderSequenceNumber
		}
	}
	switch {
	case open && !b.Transactional, !open && b.Transactional && !b.Verified:
		return model.ErrInvalidTxnState
	}
	return model.None
}

// nextSequence is the only sequence that a batch of this epoch may start with:
// 0 in a new epoch, or when no batch is remembered.
func (p *producer) nextSequence(epoch int16) int32 {
	if epoch != p.epoch || p.count == 0 {
		return 0
	}
	return int32((int64(p.newest().lastSequence) + 1) & math.MaxInt32)
}

// find looks for the very same batch among the remembered ones.
func (p *producer) find(b Batch) (written, bool) {
	if p == nil || p.epoch != b.Epoch {
		return written{}, false
	}
	last := b.LastSequence()
	for i := range int(p.count) {
		w := p.batches[(int(p.next)+window-1-i)%window]
		if w.lastSequence == last && w.firstSequence() == b.BaseSequence {
			return w, true
		}
	}
	return written{}, false
}

func (p *producer) newest() written { return p.batches[(int(p.next)+window-1)%window] }

// Apply folds an appended batch in. It accepts whatever the log holds. The
// second result is true when b is a marker that aborted a transaction with
// records (R2.15).
func (s *State) Apply(b Batch) (Aborted, bool) {
	if b.ID < 0 {
		return Aborted{}, false
	}
	p := s.byID[b.ID]
	if p == nil {
		p = &producer{epoch: b.Epoch, coordinatorEpoch: -1, txnFirst: model.UnknownOffset}
		s.byID[b.ID] = p
	}
	if p.epoch != b.Epoch {
		p.epoch, p.count = b.Epoch, 0
	}
	p.timestamp = b.MaxTimestamp
	if b.Control {
		p.coordinatorEpoch = b.CoordinatorEpoch
		return s.end(p, b)
	}
	p.batches[p.next] = written{lastSequence: b.LastSequence(), delta: b.Records - 1, last: b.Last(), timestamp: b.MaxTimestamp}
	p.next = (p.next + 1) % window
	p.count = min(p.count+1, window)
	if b.Transactional && p.txnFirst == model.UnknownOffset {
		p.txnFirst = b.Base
		s.open = insert(s.open, transaction{id: b.ID, first: b.Base})
	}
	return Aborted{}, false
}

// end closes the open transaction of p, if there is one, by the marker b.
func (s *State) end(p *producer, b Batch) (Aborted, bool) {
	if p.txnFirst == model.UnknownOffset {
		return Aborted{}, false
	}
	t := transaction{id: b.ID, first: p.txnFirst, last: b.Last()}
	p.txnFirst = model.UnknownOffset
	s.open = slices.DeleteFunc(s.open, func(o transaction) bool { return o.id == b.ID })
	if t.last >= s.hw {
		s.finished = insert(s.finished, t)
	}
	if b.Commit {
		return Aborted{}, false
	}
	lso := t.last + 1
	if len(s.open) > 0 {
		lso = s.open[0].first
	}
	return Aborted{ID: t.id, First: t.first, Last: t.last, LSO: lso}, true
}

// insert keeps the list ascending by first offset.
func insert(list []transaction, t transaction) []transaction {
	i, _ := slices.BinarySearchFunc(list, t, func(a, b transaction) int { return cmp.Compare(a.first, b.first) })
	return slices.Insert(list, i, t)
}

// Unstable returns the first unstable offset: the smallest first offset of a
// transaction that is open, or whose marker is not below the high watermark
// (R1.8). It is false when there is none.
func (s *State) Unstable() (model.Offset, bool) {
	switch {
	case len(s.open) == 0 && len(s.finished) == 0:
		return model.UnknownOffset, false
	case len(s.open) == 0:
		return s.finished[0].first, true
	case len(s.finished) == 0:
		return s.open[0].first, true
	}
	return min(s.open[0].first, s.finished[0].first), true
}

// SetHW tells the high watermark, which forgets finished transactions whose
// marker is below it.
func (s *State) SetHW(hw model.Offset) {
	s.hw = hw
	if len(s.finished) > 0 {
		s.finished = slices.DeleteFunc(s.finished, func(t transaction) bool { return t.last < hw })
	}
}

// Expire forgets producers without an open transaction that were idle for ttl
// or longer, and returns how many (R2.16).
func (s *State) Expire(now model.Millis, ttl time.Duration) int {
	before := len(s.byID)
	maps.DeleteFunc(s.byID, func(_ model.ProducerID, p *producer) bool {
		return p.txnFirst == model.UnknownOffset && now-p.timestamp >= model.Millis(ttl.Milliseconds())
	})
	return before - len(s.byID)
}

// Clone returns an independent copy.
func (s *State) Clone() *State {
	c := &State{
		byID: make(map[model.ProducerID]*producer, len(s.byID)),
		open: slices.Clone(s.open), finished: slices.Clone(s.finished), hw: s.hw,
	}
	block := make([]producer, len(s.byID))
	for id, p := range s.byID {
		block[0] = *p
		c.byID[id] = &block[0]
		block = block[1:]
	}
	return c
}

// Len is the number of producers remembered.
func (s *State) Len() int { return len(s.byID) }
