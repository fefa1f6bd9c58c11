package check

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// span is a range of log ends, both inclusive.
type span struct{ low, high model.Offset }

// looked takes what a look found, and remembers where the log ended in the
// replica's leader epoch, and what it heard of its followers.
func (m *mirror) looked(f facts) {
	m.now = f
	at, end := m.now.epoch, m.now.marks.LEO
	s, known := m.ends[at]
	if m.ends == nil {
		m.ends = map[model.Epoch]span{}
	}
	if !known {
		s = span{end, end}
	}
	m.ends[at] = span{min(s.low, end), max(s.high, end)}
	m.watch()
}

// HeardInEpoch is R3.3 and R4.3: what a leader knows of a follower was told in its
// own epoch, so the follower's log did end there in that epoch. Only who led in the
// epoch right before remembers: another leader may have cut the follower's log.
type HeardInEpoch struct{}

func (HeardInEpoch) replica(_ *Set, m *mirror) string {
	led := m.was.role == partition.Leader
	if m.first || m.now.role != partition.Leader || led && m.now.epoch == m.was.epoch+1 {
		return ""
	}
	var remembered []partition.RemoteView
	if led && m.now.epoch == m.was.epoch {
		remembered = m.was.remotes
	}
	for _, r := range m.now.remotes {
		i := slices.IndexFunc(remembered, func(old partition.RemoteView) bool { return old.ID == r.ID })
		q := m.part.mirror(r.ID)
		if q == nil || r.LEO < 0 || i >= 0 && remembered[i].LEO == r.LEO {
			continue
		}
		if s, known := q.ends[m.now.epoch]; !known || r.LEO < s.low || r.LEO > s.high {
			return fmt.Sprintf("b%d hears in epoch %d that b%d ends at %d, which it did not in that epoch", m.id(), m.now.epoch, r.ID, r.LEO)
		}
	}
	return ""
}

// UnfencedInformed is R6.15: who is unfenced has read its own registration.
type UnfencedInformed struct{}

func (UnfencedInformed) image(s *Set, d *image.Delta) (*part, string) {
	for _, b := range d.Brokers {
		if b.New == nil || b.New.Fenced || b.Old != nil && b.Old.Epoch == b.New.Epoch && !b.Old.Fenced {
			continue
		}
		for _, t := range s.seats {
			if t.id == b.New.ID && t.running && t.epoch == b.New.Epoch && t.image != nil && t.image.End() < model.Offset(b.New.Epoch) {
				return nil, fmt.Sprintf("b%d is unfenced with the epoch %d, and knows the metadata up to %d", t.id, t.epoch, t.image.End())
			}
		}
	}
	return nil, ""
}

// MovedWhole is R6.16: a reassignment is complete when all of its target is in
// the ISR. One that only adds is left out: whoever asks for the replicas that
// there are already ends it, too.
type MovedWhole struct{}

func (MovedWhole) change(_ *Set, _ *part, old, is *image.Partition) string {
	if old == nil || is.PartitionEpoch != old.PartitionEpoch+1 || len(old.Removing) == 0 ||
		len(is.Adding)+len(is.Removing) > 0 {
		return ""
	}
	target := slices.DeleteFunc(slices.Clone(old.Replicas), func(id model.BrokerID) bool { return slices.Contains(old.Removing, id) })
	if !slices.Equal(slices.Sorted(slices.Values(target)), slices.Sorted(slices.Values(is.Replicas))) {
		return "" // it was given up, or replaced by another
	}
	for _, id := range target {
		if !slices.Contains(is.ISR, id) {
			return fmt.Sprintf("a reassignment is complete without b%d: %s, before: %s", id, stateOf(is), stateOf(old))
		}
	}
	return ""
}
