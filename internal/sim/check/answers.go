package check

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// The rules here judge what a client is told by what its leader knew when the
// client asked and still knows when it hears the answer.

// reign is one leadership in one epoch.
type reign struct {
	m          *mirror
	life       uint64
	leadership uint64
	epoch      model.Epoch
}

// reign is the present one, with m nil when nobody leads that has heard so.
func (p *part) reign() reign {
	for _, m := range p.mirrors {
		if m.leads() && m.p != nil && !m.stale() {
			return reign{m, m.seat.life, m.now.leadership, m.now.epoch}
		}
	}
	return reign{}
}

// deletion is a DeleteRecords under way.
type deletion struct {
	reign
	below []below
}

// below is a follower whose log started below the offset when the deletion began.
type below struct {
	m    *mirror
	p    *partition.Partition // another one is a replica that was taken away and given back
	life uint64
	cuts uint64
}

// deleting notes which followers a deletion has to wait for: those that are alive
// as far as the leader knows, that it has heard of in their present life, and that
// hold what is to be deleted. A replica that was given back is empty, while the
// leader may remember the one that was taken away.
func (s *Set) deleting(p *part, e *event) {
	d := &deletion{reign: p.reign()}
	if d.m == nil {
		return
	}
	for i := range d.m.now.remotes {
		r := &d.m.now.remotes[i]
		q := p.mirror(r.ID)
		if q != nil && q.live() && r.Epoch == q.seat.epoch && alive(r) && q.now.marks.LogStart < min(e.offset, q.now.marks.LEO) {
			d.below = append(d.below, below{q, q.p, q.seat.life, q.now.cuts})
		}
	}
	s.clients.deletions[e.op] = d
	d.m.deletions = append(d.m.deletions, d)
}

// DeletedEverywhere is R3.27: a deletion is done when every follower that is alive
// has done it, too.
type DeletedEverywhere struct{}

// replica lets deletions go without whom the leader had not to wait for, were it
// for a moment.
func (DeletedEverywhere) replica(_ *Set, m *mirror) string {
	for _, d := range m.deletions {
		d.below = slices.DeleteFunc(d.below, func(b below) bool {
			i := slices.IndexFunc(m.now.remotes, func(r partition.RemoteView) bool { return r.ID == b.m.id() })
			return i < 0 || !alive(&m.now.remotes[i])
		})
	}
	return ""
}

func (DeletedEverywhere) call(s *Set, p *part, e *event) string {
	d := s.clients.deletions[e.op]
	if d == nil {
		return ""
	}
	delete(s.clients.deletions, e.op)
	d.m.deletions = slices.DeleteFunc(d.m.deletions, func(o *deletion) bool { return o == d })
	if s.o.History.calls[e.op].out != OK || p.reign() != d.reign {
		return ""
	}
	for _, b := range d.below {
		if q := b.m; q.live() && q.p == b.p && q.seat.life == b.life && q.now.cuts == b.cuts && q.now.marks.LogStart < e.offset {
			return fmt.Sprintf("%s deleted what is below %d, the log of b%d starts at %d", e.who, e.offset, q.id(), q.now.marks.LogStart)
		}
	}
	return ""
}

// alive says that a leader has to count with a broker, as far as the metadata
// tells it.
func alive(r *partition.RemoteView) bool { return r.Registered && !r.Peer.Fenced }

// question is a fetch that may be answered with a hint.
type question struct {
	reign
	pepoch  model.PartitionEpoch
	remotes []partition.RemoteView
}

// HintFits is R9.4: a reader is sent to a member of the ISR that holds what it
// asked for.
type HintFits struct{}

func (HintFits) call(s *Set, p *part, e *event) string {
	key := consumption{e.who, e.tp}
	if e.kind == asked {
		q := question{reign: p.reign()}
		if q.m != nil {
			q.pepoch, q.remotes = q.m.now.pepoch, q.m.now.remotes
		}
		s.clients.questions[key] = q
		return ""
	}
	q := s.clients.questions[key]
	if q.m == nil || p.reign() != q.reign || q.m.id() != e.from {
		return ""
	}
	was, is := viewed(q.remotes, e.to), viewed(q.m.now.remotes, e.to)
	switch {
	case is == nil && was == nil:
		return fmt.Sprintf("leader b%d sends %s to b%d, which has no replica", e.from, e.who, e.to)
	case is == nil || was == nil || is.Epoch != was.Epoch:
		return ""
	case !is.InISR && !was.InISR && q.pepoch == q.m.now.pepoch:
		return fmt.Sprintf("leader b%d sends %s to b%d, which is not in the ISR %v", e.from, e.who, e.to, q.m.now.isr)
	case is.LogStart > e.offset && was.LogStart > e.offset || is.LEO < e.offset && was.LEO < e.offset:
		return fmt.Sprintf("leader b%d sends %s to b%d for offset %d, and knows its log as [%d,%d)",
			e.from, e.who, e.to, e.offset, was.LogStart, is.LEO)
	}
	return ""
}

func viewed(list []partition.RemoteView, id model.BrokerID) *partition.RemoteView {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}
