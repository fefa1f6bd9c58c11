package storage

import (
	"errors"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// TimestampOffset is the answer to a question by time: a record's time and
// offset, and the leader epoch of its batch.
type TimestampOffset struct {
	Timestamp model.Millis
	Offset    model.Offset
	Epoch     model.Epoch
}

// OffsetForTime finds the first record at or above the log start whose time is
// at least t; false when there is none (R9.5).
func (l *Log) OffsetForTime(t model.Millis) (TimestampOffset, bool, error) {
	return l.byTime(func(v *view) (TimestampOffset, bool, error) {
		for i := v.floor(v.start); i < len(v.segs); i++ {
			if v.segs[i].maxTime.Load() < int64(t) {
				continue
			}
			r, ok, err := v.firstAt(i, t)
			if ok || err != nil {
				return r, ok, err
			}
		}
		return TimestampOffset{}, false, nil
	})
}

// byTime asks a consistent view, again if a segment went away meanwhile.
func (l *Log) byTime(ask func(*view) (TimestampOffset, bool, error)) (TimestampOffset, bool, error) {
	for {
		v := l.view()
		if v.closed {
			return TimestampOffset{}, false, ErrClosed
		}
		r, ok, err := ask(&v)
		if again, err := l.again(&v, err); !again {
			return r, ok, err
		}
	}
}

// firstAt looks for the record in one segment.
func (v *view) firstAt(i int, t model.Millis) (TimestampOffset, bool, error) {
	s := v.segs[i]
	f, err := s.log.acquire()
	if err != nil {
		return TimestampOffset{}, false, err
	}
	defer s.log.release()
	w := newWalk(f, 0, v.size(i))
	defer w.done()
	from := max(v.start, s.base)
	if n, err := s.time.floor(keyTime, int64(t), w.index[:]); err != nil {
		return TimestampOffset{}, false, err
	} else if n >= 0 {
		// Everything before the entry's batch is older than the entry.
		from = max(from, s.base+model.Offset(keyRelative(w.index[8:])))
	}
	h, err := s.seek(w, from)
	for ; err == nil; h, err = w.peek() {
		if h.MaxTimestamp >= t {
			r, ok, err := w.pick(h, v.start, t)
			if ok || err != nil {
				return r, ok, err
			}
		}
		w.skip(h)
	}
	if errors.Is(err, errEnd) {
		err = nil
	}
	return TimestampOffset{}, false, err
}

// pick finds the first record of the batch at or above start with a time of at
// least t.
func (w *walk) pick(h record.Header, start model.Offset, t model.Millis) (TimestampOffset, bool, error) {
	batch, err := w.whole(h)
	if err != nil {
		return TimestampOffset{}, false, err
	}
	var out TimestampOffset
	found := false
	err = record.Times(batch, func(offset model.Offset, at model.Millis) bool {
		if offset >= start && at >= t {
			out, found = TimestampOffset{Timestamp: at, Offset: offset, Epoch: h.LeaderEpoch}, true
		}
		return !found
	})
	if err != nil {
		return out, false, errors.Join(ErrCorrupt, err)
	}
	return out, found, nil
}

// MaxTimestampOffset finds the first record with the largest time at or above
// the log start; false when no record has a time (R9.5).
func (l *Log) MaxTimestampOffset() (TimestampOffset, bool, error) {
	return l.byTime(func(v *view) (TimestampOffset, bool, error) {
		best, at := int64(-1), -1
		first := v.floor(v.start)
		for i := first; i < len(v.segs); i++ {
			s := v.segs[i]
			t := s.maxTime.Load()
			if i == first && s.maxTimeLast.Load() < int64(v.start) {
				var err error
				if t, err = v.largestFrom(i); err != nil {
					return TimestampOffset{}, false, err
				}
			}
			if t > best {
				best, at = t, i
			}
		}
		if at < 0 {
			return TimestampOffset{}, false, nil
		}
		return v.firstAt(at, model.Millis(best))
	})
}

// largestFrom is the largest time in segment i at or above the log start, by
// its records: the largest one of all lies below.
func (v *view) largestFrom(i int) (int64, error) {
	s := v.segs[i]
	f, err := s.log.acquire()
	if err != nil {
		return -1, err
	}
	defer s.log.release()
	w := newWalk(f, 0, v.size(i))
	defer w.done()
	best := int64(-1)
	h, err := s.seek(w, v.start)
	for ; err == nil; h, err = w.peek() {
		if h.Base >= v.start {
			best = max(best, int64(h.MaxTimestamp))
		} else if err := w.eachTime(h, v.start, func(t int64) { best = max(best, t) }); err != nil {
			return -1, err
		}
		w.skip(h)
	}
	if errors.Is(err, errEnd) {
		err = nil
	}
	return best, err
}

func (w *walk) eachTime(h record.Header, start model.Offset, fn func(int64)) error {
	batch, err := w.whole(h)
	if err != nil {
		return err
	}
	err = record.Times(batch, func(offset model.Offset, t model.Millis) bool {
		if offset >= start {
			fn(int64(t))
		}
		return true
	})
	if err != nil {
		return errors.Join(ErrCorrupt, err)
	}
	return nil
}

// Aborted lists the aborted transactions that overlap [from, to), as a consumer
// that reads committed records needs them (R9.1).
func (l *Log) Aborted(from, to model.Offset) ([]format.AbortedTxn, error) {
	for {
		v := l.view()
		if v.closed {
			return nil, ErrClosed
		}
		list, err := v.aborted(from, to)
		if again, err := l.again(&v, err); !again {
			return list, err
		}
	}
}

func (v *view) aborted(from, to model.Offset) ([]format.AbortedTxn, error) {
	var out []format.AbortedTxn
	for i := v.floor(from); i < len(v.segs); i++ {
		s := v.segs[i]
		if !s.hasTxn.Load() {
			continue
		}
		b, err := readFile(s.log.c.fs, s.txnPath())
		if err != nil {
			return nil, err
		}
		entries, err := format.ParseTxnIndex(b[:len(b)/format.TxnEntrySize*format.TxnEntrySize])
		if err != nil {
			return nil, err
		}
		for _, a := range entries {
			if a.Last >= from && a.First < to {
				out = append(out, a)
			}
			if a.LSO >= to {
				return out, nil // no later marker can reach below
			}
		}
	}
	return out, nil
}
