package check

import (
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// clients is what is remembered of clients.
type clients struct {
	read      int               // events of the history that were looked at
	written   int               // its calls that all accounts for
	all       map[string]string // who wrote a value with acks=all
	consumed  map[consumption]model.Offset
	groups    map[groupKey]*groupState
	deletions map[Op]*deletion
	questions map[consumption]question // asked last
}

// consumption names one consumer's position in one partition.
type consumption struct {
	who string
	tp  model.TopicIDPartition
}

// groupKey names a group's offset in one partition.
type groupKey struct {
	group string
	tp    model.TopicIDPartition
}

// groupState is what a group may resume from: what was acknowledged last, or any
// that was asked for since.
type groupState struct {
	known bool // one was acknowledged
	acked model.Offset
	began Op                  // of the acknowledged one
	asked map[Op]model.Offset // begun since, acknowledged or not
}

func newClients() clients {
	return clients{all: map[string]string{}, consumed: map[consumption]model.Offset{}, groups: map[groupKey]*groupState{},
		deletions: map[Op]*deletion{}, questions: map[consumption]question{}}
}

// callRule looks at one thing that a client did or was told.
type callRule interface {
	rule
	call(s *Set, p *part, e *event) string
}

// callRules are those that the history is put to, by what happened.
var callRules = map[eventKind][]callRule{
	produced:    {AckedCommitted{}, LinearizableLog{}},
	fetched:     {ResponseCut{}, DeliveredOnce{}, RepeatableRead{}},
	listed:      {LatestMonotone{}},
	commitBegan: {GroupOffsets{}},
	commitEnded: {GroupOffsets{}},
	resumed:     {GroupOffsets{}, DeliveredOnce{}},
	forgot:      {ProducerKept{}},
	deleteEnded: {DeletedEverywhere{}},
	asked:       {HintFits{}},
	hinted:      {HintFits{}},
}

// hear looks at what clients did since the last step.
func (s *Set) hear() error {
	h := s.o.History
	if h == nil {
		return nil
	}
	for ; s.clients.read < len(h.events); s.clients.read++ {
		e := &h.events[s.clients.read]
		p := s.parts[e.tp]
		switch e.kind {
		case deletedBelow:
			if p != nil {
				p.deletes = max(p.deletes, e.offset)
				s.deleting(p, e)
			}
			continue
		case topicGone:
			for _, q := range s.list {
				q.deleted = q.deleted || q.id.TopicID == e.tp.TopicID
			}
			continue
		}
		if p == nil || p.deleted || h.deleted[e.tp.TopicID] {
			continue
		}
		for _, r := range callRules[e.kind] {
			if !s.rules.has(r) {
				continue
			}
			if text := r.call(s, p, e); text != "" {
				return s.violated(r, p, text)
			}
		}
	}
	return nil
}

// AckedCommitted is I27.
type AckedCommitted struct{}

func (AckedCommitted) call(s *Set, p *part, e *event) string {
	c := &s.o.History.calls[e.op]
	if c.out != OK || c.Acks != -1 || e.offset < 0 || p.unclean {
		return ""
	}
	for i, v := range c.Values {
		o := e.offset + model.Offset(i)
		got, ok := p.valueAt(o)
		switch {
		case o >= p.highest:
			return fmt.Sprintf("%s was acknowledged at %d, committed is what is below %d", v, o, p.highest)
		case ok && got != v:
			return fmt.Sprintf("%s was acknowledged at %d, committed there is %s", v, o, got)
		}
	}
	return ""
}

// valueAt is the value of the committed record at an offset, if it is known.
func (p *part) valueAt(o model.Offset) (string, bool) {
	n := holding(p.commits, o)
	if n == nil || int(o-n.base) >= len(n.values) {
		return "", false
	}
	return n.values[o-n.base], true
}

// LinearizableLog is I31. What acks=1 acknowledges may be of a leader that leads
// no more (R6.19).
type LinearizableLog struct{}

func (LinearizableLog) call(s *Set, p *part, e *event) string {
	c := &s.o.History.calls[e.op]
	if c.out != OK || c.Acks != -1 || e.offset < 0 || e.offset >= c.floor || p.unclean {
		return ""
	}
	return fmt.Sprintf("%s wrote at %d; before it called, records up to %d were acknowledged", c.Client, e.offset, c.floor)
}

// ProducerKept is I4 as clients see it: a batch that was acknowledged is told
// alike when it is sent again, and the next one is in order.
type ProducerKept struct{}

func (ProducerKept) call(_ *Set, p *part, e *event) string {
	if p.unclean {
		return ""
	}
	return e.text
}

// ResponseCut is I8.
type ResponseCut struct{}

func (ResponseCut) call(_ *Set, p *part, e *event) string {
	f := e.fetch
	limit := f.HW
	if f.Committed && f.LSO >= 0 {
		limit = f.LSO
	}
	switch {
	case f.LogStart > f.HW || f.LSO > f.HW || f.LSO >= 0 && f.LogStart > f.LSO:
		return fmt.Sprintf("b%d answers log start %d, LSO %d, HW %d", f.From, f.LogStart, f.LSO, f.HW)
	case len(f.Offsets) > 0 && f.Offsets[len(f.Offsets)-1] >= limit:
		return fmt.Sprintf("b%d shows a consumer offset %d, the limit is %d", f.From, f.Offsets[len(f.Offsets)-1], limit)
	case len(f.Offsets) > 0 && f.Offsets[0] < f.LogStart && f.Offsets[0] < f.Asked:
		return fmt.Sprintf("b%d shows offset %d, asked for %d, its log starts at %d", f.From, f.Offsets[0], f.Asked, f.LogStart)
	}
	return ""
}

// DeliveredOnce is I29.
type DeliveredOnce struct{}

func (DeliveredOnce) call(s *Set, p *part, e *event) string {
	key := consumption{e.who, e.tp}
	if e.kind == resumed {
		delete(s.clients.consumed, key)
		return ""
	}
	f := e.fetch
	next, known := s.clients.consumed[key]
	if !known || p.unclean {
		next = f.Asked
	}
	for i, o := range f.Offsets {
		if o < next {
			return fmt.Sprintf("%s gets offset %d, it had come to %d", e.who, o, next)
		}
		if left, ok := p.leftOut(max(next, f.Asked), o); ok {
			return fmt.Sprintf("%s asked for %d and gets offset %d without %d (record %d of the answer of b%d)", e.who, f.Asked, o, left, i, f.From)
		}
		next = o + 1
	}
	s.clients.consumed[key] = next
	return ""
}

// leftOut returns a committed record in [from, to) that a consumer must be given.
func (p *part) leftOut(from, to model.Offset) (model.Offset, bool) {
	if p.unclean {
		return 0, false
	}
	for from < to {
		i := find(p.commits, from)
		if i == len(p.commits) || p.commits[i].base >= to {
			return 0, false
		}
		n := p.commits[i]
		if o := max(from, n.base); !n.control && !n.txn && int(o-n.base) < len(n.values) {
			return o, true
		}
		from = n.last + 1
	}
	return 0, false
}

// RepeatableRead is I28.
type RepeatableRead struct{}

func (RepeatableRead) call(_ *Set, p *part, e *event) string {
	f := e.fetch
	if p.unclean {
		return ""
	}
	for i, o := range f.Offsets {
		got, ok := p.valueAt(o)
		switch {
		case o >= p.highest:
			return fmt.Sprintf("%s got offset %d from b%d, committed is what is below %d", e.who, o, f.From, p.highest)
		case ok && i < len(f.Values) && got != f.Values[i]:
			return fmt.Sprintf("%s got %s at %d from b%d, committed there is %s", e.who, f.Values[i], o, f.From, got)
		}
	}
	return ""
}

func (LatestMonotone) call(_ *Set, p *part, e *event) string {
	if p.unclean || e.offset <= p.highest {
		return ""
	}
	return fmt.Sprintf("%s was told the end %d, committed is what is below %d", e.who, e.offset, p.highest)
}

// GroupOffsets is I29 for groups: one resumes where it committed last, or at what
// it tried to commit since.
type GroupOffsets struct{}

func (GroupOffsets) call(s *Set, _ *part, e *event) string {
	if e.group == "" {
		return ""
	}
	g := s.clients.group(groupKey{e.group, e.tp})
	switch e.kind {
	case commitBegan:
		g.asked[e.op] = e.offset
		return ""
	case commitEnded:
		if s.o.History.calls[e.op].out == OK && (!g.known || e.op > g.began) {
			g.known, g.acked, g.began = true, e.offset, e.op
			for op := range g.asked { // one without an answer may still arrive
				if c := &s.o.History.calls[op]; op <= e.op && c.returned && c.out != Unknown {
					delete(g.asked, op)
				}
			}
		}
		return ""
	}
	if g.known && e.offset == g.acked || !g.known && e.offset < 0 || s.offsetsLost() {
		return ""
	}
	for _, o := range g.asked {
		if o == e.offset {
			return ""
		}
	}
	if !g.known {
		return fmt.Sprintf("group %s resumes from %d, which it did not commit", e.group, e.offset)
	}
	return fmt.Sprintf("group %s resumes from %d, it had committed %d", e.group, e.offset, g.acked)
}

func (c *clients) group(k groupKey) *groupState {
	g := c.groups[k]
	if g == nil {
		g = &groupState{asked: map[Op]model.Offset{}}
		c.groups[k] = g
	}
	return g
}

// offsetsLost says that groups may have lost offsets by right.
func (s *Set) offsetsLost() bool {
	for _, p := range s.list {
		if p.tp.Topic == "__consumer_offsets" && (p.unclean || p.deleted) {
			return true
		}
	}
	return len(s.o.History.deleted) > 0
}
