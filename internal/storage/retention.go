package storage

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// RaiseStart moves the log start offset up to `to`, at most to LEO (R3.27). What
// lies wholly below it goes with the next ApplyRetention.
func (l *Log) RaiseStart(to model.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raise(min(to, l.leo))
	return nil
}

// raise needs mu.
func (l *Log) raise(start model.Offset) {
	if start <= l.start {
		return
	}
	l.start = start
	if l.epochs.TruncateFromStart(start) {
		l.epochsDirty = true
	}
}

// ApplyRetention deletes old segments below hw: what lies below the log start,
// and, if the cleanup policy says delete, by size and by time (R8.17). If the
// newest must go too, a new one is rolled first, so offsets go on. It returns the
// log start offset after it.
func (l *Log) ApplyRetention(now model.Millis, hw model.Offset) (model.Offset, error) {
	if err := l.usable(); err != nil {
		return 0, err
	}
	n := l.expired(now, hw)
	if n == 0 {
		return l.start, nil
	}
	if n == len(l.segs) {
		if _, err := l.rollTo(l.leo, now); err != nil {
			return 0, l.fail("roll", err)
		}
		n = len(l.segs) - 1
	}
	if err := l.settleBelow(l.segs[n]); err != nil {
		return 0, err
	}
	return l.remove(n)
}

// remove takes the first n segments away. If more than one may go with the same
// power cut, the log start is made durable first: whichever of them are there
// again then lie below it, and nobody sees the hole between them.
func (l *Log) remove(n int) (model.Offset, error) {
	gone, first := l.segs[:n:n], l.segs[n].base
	several := n > 1 || l.namesDirty
	l.mu.Lock()
	l.raise(first)
	l.fading = several
	l.mu.Unlock()
	if several {
		if err := l.d.checkpointStart(func() bool { return l.d.saved.start[l.tp] < first }); err != nil {
			return 0, err
		}
	}
	l.mu.Lock()
	l.segs = slices.Clone(l.segs[n:])
	start := l.start
	l.mu.Unlock()
	for _, s := range gone {
		if err := l.retire(s); err != nil {
			return 0, l.fail("delete segments of", err)
		}
	}
	if several {
		if err := l.syncNames(); err != nil {
			return 0, l.fail("delete segments of", err)
		}
	}
	l.mu.Lock()
	l.fading = false
	l.mu.Unlock()
	return start, nil
}

// settleBelow makes durable that everything below a segment is, which most often
// is so, and what its producers' snapshot knows of that. After a crash any of the
// removed segments may be there again, with holes between them: only below the
// recovery point is a hole not taken for lost bytes, with all that follows it.
func (l *Log) settleBelow(s *segment) error {
	if l.RecoveryPoint() < s.base {
		if err := l.sync(); err != nil {
			return l.fail("flush", err)
		}
	}
	if err := s.syncBelow(s.base); err != nil && !missing(err) {
		return l.fail("flush producers of", err)
	}
	return l.d.checkpointRecovery(func() bool { return l.d.saved.recovery[l.tp] < s.base })
}

// expired counts the segments at the front that may go. A segment goes only if
// all of it lies below hw; an empty active one stays.
func (l *Log) expired(now model.Millis, hw model.Offset) int {
	cfg := l.cfg.Load()
	v := l.view()
	over := l.Size() - cfg.RetentionBytes
	n := 0
	for i, s := range v.segs {
		size := v.size(i)
		if v.endOf(i) > hw || i == len(v.segs)-1 && size == 0 {
			break
		}
		tooMuch := cfg.RetentionBytes >= 0 && over-size >= 0
		tooOld := cfg.RetentionMs >= 0 && int64(now-s.largest()) > cfg.RetentionMs
		unreadable := i < len(v.segs)-1 && v.endOf(i) <= v.start
		if !unreadable && (!cfg.Delete || !tooMuch && !tooOld) {
			break
		}
		if cfg.RetentionBytes >= 0 {
			over -= size
		}
		n++
	}
	return n
}
