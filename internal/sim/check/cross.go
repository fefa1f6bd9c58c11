package check

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// before reports whether a batch lies further up in the history of another: a log
// that has it next has a hole, which a crash makes of what retention was deleting.
func (n *node) before(x *node) bool {
	for x != nil && x.base > n.base {
		x = x.parent
	}
	return x == n
}

// holdBoth reports whether a replica has both batches, above its log start. What
// was deleted before it was ever compared is nobody's concern: the follower that
// holds something else there takes its leader's log start over with its HW.
func (p *part) holdBoth(x, y *node) bool {
	for _, q := range p.mirrors {
		i := find(q.batches, x.base)
		if i+1 < len(q.batches) && q.batches[i] == x && q.batches[i+1] == y && x.last >= q.start {
			return true
		}
	}
	return false
}

// LogMatching is I20. It holds whatever was lost.
type LogMatching struct{}

func (LogMatching) batch(_ *Set, a arrival) string {
	switch {
	case a.seen.bad || a.fresh:
		return ""
	case !a.node.same(a.seen):
		return fmt.Sprintf("b%d holds another batch %v (crc %08x) than somebody before (%v, crc %08x)",
			a.m.id(), a.seen, a.seen.crc, a.node, a.node.crc)
	case a.prev != nil && !a.prev.bad && a.node.parent != nil && a.node.parent != a.prev && !a.prev.before(a.node.parent) &&
		a.m.part.holdBoth(a.node.parent, a.node):
		return fmt.Sprintf("b%d holds %v after %v, elsewhere it is after %v", a.m.id(), a.node, a.prev, a.node.parent)
	}
	return ""
}

// OneWriterPerEpoch is I19.
type OneWriterPerEpoch struct{}

func (OneWriterPerEpoch) batch(_ *Set, a arrival) string {
	m := a.m
	if !a.appended || m.now.role != partition.Leader || m.now.epoch != a.seen.epoch {
		return ""
	}
	me := writer{m.id(), m.seat.life}
	was, ok := m.part.writers[a.seen.epoch]
	if ok && was != me {
		return fmt.Sprintf("b%d (life %d) and b%d (life %d) both write in epoch %d", was.id, was.life, me.id, me.life, a.seen.epoch)
	}
	m.part.writers[a.seen.epoch] = me
	return ""
}

// StablePrefix is I21: what is below a HW is what was committed, so any two
// replicas agree on it.
type StablePrefix struct{}

func (StablePrefix) part(_ *Set, p *part) string {
	for _, m := range p.mirrors {
		if p.unclean || !m.live() || m.lossy {
			continue
		}
		hw := m.now.marks.HW
		if hw > p.highest && m.readable() < hw {
			return fmt.Sprintf("b%d has the HW %d, no leader had more than %d", m.id(), hw, p.highest)
		}
		if bad, lacks := m.lacks(min(hw, p.commitEnd)); lacks {
			return fmt.Sprintf("b%d differs at %d from what was committed, its HW is %d", m.id(), bad, hw)
		}
	}
	return ""
}

// StrongISR is I22.
type StrongISR struct{}

func (StrongISR) part(_ *Set, p *part) string {
	for _, r := range p.mirrors {
		if p.unclean || !r.leads() {
			continue
		}
		for _, q := range p.mirrors {
			if q == r || !q.live() || q.lossy || !p.candidate(q.id()) {
				continue
			}
			if bad, lacks := q.lacks(min(r.now.marks.HW, p.commitEnd)); lacks {
				return fmt.Sprintf("b%d may be elected but differs at %d, below the HW %d of b%d", q.id(), bad, r.now.marks.HW, r.id())
			}
		}
	}
	return ""
}

// LeaderCompleteness is I23.
type LeaderCompleteness struct{}

func (LeaderCompleteness) part(_ *Set, p *part) string {
	for _, m := range p.mirrors {
		if p.unclean || !m.leads() || m.stale() {
			continue
		}
		if bad, lacks := m.lacks(p.commitEnd); lacks {
			return fmt.Sprintf("leader b%d lacks the committed record %d", m.id(), bad)
		}
	}
	return ""
}

// CandidateCompleteness is I24.
type CandidateCompleteness struct{}

func (CandidateCompleteness) part(_ *Set, p *part) string {
	for _, m := range p.mirrors {
		if p.unclean || !m.live() || m.lossy || !p.candidate(m.id()) {
			continue
		}
		if bad, lacks := m.lacks(p.commitEnd); lacks {
			return fmt.Sprintf("b%d may be elected but lacks the committed record %d", m.id(), bad)
		}
	}
	return ""
}

// QuorumSuperset is I10.
type QuorumSuperset struct{}

func (QuorumSuperset) part(_ *Set, p *part) string {
	for _, m := range p.mirrors {
		if !m.leads() || m.stale() {
			continue
		}
		f := &m.now
		for _, id := range p.truth.ISR {
			if !slices.Contains(f.maximal, id) {
				return fmt.Sprintf("b%d is in the ISR but does not count for leader b%d: %v", id, m.id(), f.maximal)
			}
		}
		for _, id := range p.truth.ELR {
			if len(f.isr) >= f.minISR && !slices.Contains(f.maximal, id) {
				return fmt.Sprintf("b%d is eligible to lead but does not count for leader b%d: %v", id, m.id(), f.maximal)
			}
		}
	}
	return ""
}

// KnowledgeSoundness is I12.
type KnowledgeSoundness struct{}

func (KnowledgeSoundness) part(_ *Set, p *part) string {
	for _, m := range p.mirrors {
		if !m.leads() || m.stale() {
			continue
		}
		for i := range m.now.remotes {
			r := &m.now.remotes[i]
			q := p.mirror(r.ID)
			if q == nil || r.LEO <= q.now.marks.LogStart || !q.live() || q.lossy || q.now.epoch != m.now.epoch ||
				r.Epoch != model.UnknownBrokerEpoch && r.Epoch != q.seat.epoch {
				continue
			}
			if q.end < r.LEO || differ(m, q, r.LEO-1) {
				return fmt.Sprintf("b%d believes b%d at %d, but b%d holds %v there and ends at %d", m.id(), q.id(), r.LEO,
					q.id(), holding(q.batches, r.LEO-1), q.end)
			}
		}
	}
	return ""
}

// differ says that two logs, which both reach that far down, differ at the
// offset, or somewhere before it.
func differ(a, b *mirror, o model.Offset) bool {
	if o < a.readable() || o < b.readable() {
		return false
	}
	x, y := holding(a.batches, o), holding(b.batches, o)
	return x != y && (x == nil || y == nil || !x.bad && !y.bad)
}

// NoGlobalLoss is I26: see Set.checkGone.
type NoGlobalLoss struct{}

// LatestMonotone is I30.
type LatestMonotone struct{}

func (LatestMonotone) replica(_ *Set, m *mirror) string {
	p := m.part
	if p.unclean || m.now.role != partition.Leader || !m.now.serving || m.stale() {
		return ""
	}
	o, _, err := m.p.ListBound(model.NoEpoch, partition.ReadUncommitted)
	if err != model.None {
		return ""
	}
	if o < p.latest {
		return fmt.Sprintf("leader b%d shows the end %d, %d was shown before", m.id(), o, p.latest)
	}
	p.latest = o
	return ""
}
