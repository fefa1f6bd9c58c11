package check

import (
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// EnoughToWrite is R2.3: a leader whose ISR is below its minimum takes nothing
// that asks for acks=all.
type EnoughToWrite struct{}

func (EnoughToWrite) replica(s *Set, m *mirror) string {
	f, was := &m.now, &m.was
	stays := !m.first && f.role == partition.Leader && was.role == partition.Leader && f.leadership == was.leadership && f.epoch == was.epoch
	if !stays {
		m.scant = nil
		return ""
	}
	// What came between the two looks came while the ISR was what both found.
	if f.next > was.next && f.pepoch == was.pepoch && max(len(f.isr), len(was.isr)) < min(f.minISR, was.minISR) {
		m.scant = append(m.scant, scant{was.next, f.next, len(f.isr), f.minISR})
	}
	for len(m.scant) > 0 && m.scant[0].to <= m.end {
		x := m.scant[0]
		m.scant = m.scant[1:]
		for _, n := range m.batches[find(m.batches, x.from):] {
			if n.base >= x.to {
				break
			}
			if who, ok := s.askedAll(n); ok {
				return fmt.Sprintf("leader b%d took %v from %s, which asked for acks=all: its ISR was of %d, the minimum is %d",
					m.id(), n, who, x.isr, x.minISR)
			}
		}
	}
	return ""
}

// scant is a range of offsets that a leader gave away while its ISR was below the
// minimum.
type scant struct {
	from, to    model.Offset
	isr, minISR int
}

// askedAll says who wrote the batch, if it asked for acks=all.
func (s *Set) askedAll(n *node) (string, bool) {
	h := s.o.History
	if h == nil || len(n.values) == 0 {
		return "", false
	}
	for ; s.clients.written < len(h.calls); s.clients.written++ {
		if c := &h.calls[s.clients.written]; c.Acks == -1 {
			for _, v := range c.Values {
				s.clients.all[v] = c.Client
			}
		}
	}
	who, ok := s.clients.all[n.values[0]]
	return who, ok
}
