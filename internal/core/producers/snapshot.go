package producers

import (
	"cmp"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Entry is one producer in a snapshot file (R8.6). LastSequence and LastOffset
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

// Entries returns the snapshot of the state in order of producer id. Of each
// producer it holds only the newest batch.
func (s *State) Entries() []Entry {
	out := make([]Entry, 0, len(s.byID))
	for id, p := range s.byID {
		e := Entry{
			ID: id, Epoch: p.epoch, LastSequence: noSequence, LastOffset: model.UnknownOffset,
			Timestamp: p.timestamp, CoordinatorEpoch: p.coordinatorEpoch, TxnFirst: p.txnFirst,
		}
		if p.count > 0 {
			w := p.newest()
			e.LastSequence, e.LastOffset, e.OffsetDelta = w.lastSequence, w.last, w.delta
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Restore replaces the state by that of a snapshot; the high watermark stays.
// Only the last batch of a producer is known afterwards (R2.16). Entries that
// no writer of snapshots makes are taken for their sane part.
func (s *State) Restore(entries []Entry) {
	clear(s.byID)
	s.open, s.finished = s.open[:0], s.finished[:0]
	for _, e := range entries {
		if e.ID < 0 || s.byID[e.ID] != nil {
			continue
		}
		p := &producer{epoch: e.Epoch, coordinatorEpoch: e.CoordinatorEpoch, timestamp: e.Timestamp, txnFirst: model.UnknownOffset}
		if e.LastSequence >= 0 && e.OffsetDelta >= 0 {
			p.batches[0] = written{lastSequence: e.LastSequence, delta: e.OffsetDelta, last: e.LastOffset, timestamp: e.Timestamp}
			p.count, p.next = 1, 1
		}
		if e.TxnFirst >= 0 {
			p.txnFirst = e.TxnFirst
			s.open = insert(s.open, transaction{id: e.ID, first: e.TxnFirst})
		}
		s.byID[e.ID] = p
	}
}

// Recall adds the batches that came before those of a snapshot. tail is the fold of
// the log's last part below the snapshot's offset. A producer of which that says
// something else stays as it is (R2.10, R2.16).
func (s *State) Recall(tail *State) {
	for id, p := range s.byID {
		t := tail.byID[id]
		if t == nil || t.epoch != p.epoch || t.count == 0 || p.count != 1 {
			continue
		}
		if a, b := t.newest(), p.newest(); a.last == b.last && a.lastSequence == b.lastSequence && a.delta == b.delta {
			p.batches, p.count, p.next = t.batches, t.count, t.next
		}
	}
}
