package check

import (
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// The rules here say for what a fetch may wait. They take its request and the
// replica's marks, and ask no core what it would answer.

// waits looks at every fetch that waits on a broker.
func (s *Set) waits(b *Broker, t *seat) error {
	var err error
	b.Parked(func(w Parked) {
		if err != nil {
			return
		}
		for i := range w.Asks {
			m := t.mirrors[w.Asks[i].ID]
			if m == nil || !m.answers() {
				return // who cannot be judged now may hold up all of it
			}
			for _, r := range s.rules.ask {
				if text := r.ask(m, &w.Asks[i]); text != "" && err == nil {
					err = s.violated(r, m.part, text)
				}
			}
		}
		if r := (BytesAnswered{}); err == nil && s.rules.has(r) {
			if text := r.parked(t, &w); text != "" {
				err = s.violated(r, t.mirrors[w.Asks[0].ID].part, text)
			}
		}
	})
	return err
}

// answers says that fetches of a replica need not wait for its disk.
func (m *mirror) answers() bool {
	f := &m.now
	return m.live() && (f.role == partition.Leader && f.serving || f.role == partition.Follower && !f.inFlight)
}

// bound is the end of what a fetch may see, and where it lies if that is known.
func (f *facts) bound(a *Ask) (model.Offset, model.Position) {
	switch {
	case a.Replica >= 0:
		return f.marks.LEO, model.UnknownPosition
	case a.Committed && f.marks.LSO < f.marks.HW:
		return f.marks.LSO, model.UnknownPosition
	}
	return f.marks.HW, f.hwPos
}

// PastEndAnswered is R9.2: the reader knows a newer HW than the replica.
type PastEndAnswered struct{}

func (PastEndAnswered) ask(m *mirror, a *Ask) string {
	if end, _ := m.now.bound(a); a.Replica < 0 && a.Offset > end {
		return fmt.Sprintf("a reader of b%d waits at %d, beyond %d", m.id(), a.Offset, end)
	}
	return ""
}

// NewsAnswered is R3.18: the answer may wait a moment for records to go with.
type NewsAnswered struct{}

func (NewsAnswered) ask(m *mirror, a *Ask) string {
	f := &m.now
	for i := range f.remotes {
		r := &f.remotes[i]
		if news := min(f.marks.HW, a.Offset); r.ID == a.Replica && f.role == partition.Leader && news > r.ToldHW && !a.News {
			return fmt.Sprintf("a fetch of b%d waits at leader b%d from %d on, was told the HW %d last and could use %d",
				r.ID, m.id(), a.Offset, r.ToldHW, news)
		}
	}
	return ""
}

// BytesAnswered is R3.17: a fetch waits for more than there is, and not at all for
// more of a segment that is complete.
type BytesAnswered struct{}

func (BytesAnswered) parked(t *seat, w *Parked) string {
	bytes := int64(0)
	for i := range w.Asks {
		a := &w.Asks[i]
		m := t.mirrors[a.ID]
		end, pos := m.now.bound(a)
		switch known := a.Pos.Known() && pos.Known(); {
		case a.Offset >= end:
		case known && a.Pos.Segment < pos.Segment:
			return fmt.Sprintf("a fetch by %d waits at b%d from %d on, in segment %d, and may read up to %d in segment %d",
				w.By, m.id(), a.Offset, a.Pos.Segment, end, pos.Segment)
		case known && a.Pos.Segment == pos.Segment:
			bytes += max(1, min(pos.Byte-a.Pos.Byte, int64(a.MaxBytes)))
		default:
			bytes++
		}
	}
	if bytes >= w.MinBytes {
		return fmt.Sprintf("a fetch by %d waits for %d bytes, and %d are there", w.By, w.MinBytes, bytes)
	}
	return ""
}
