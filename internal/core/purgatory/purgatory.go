// Package purgatory keeps requests that cannot be answered yet (R7).
//
// Each waits under the keys whose change may complete it, until its deadline.
package purgatory

import (
	"cmp"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Op is a parked request. TryComplete reports whether it can be answered now;
// it is cheap and changes nothing outside the Op. Complete answers it and runs
// exactly once, after TryComplete said true or after Expire. Expire runs only
// when the deadline passed first.
type Op interface {
	TryComplete() bool
	Complete()
	Expire()
}

// Purgatory has one owner, so the owner's turn takes the place of Kafka's locks
// (R7.0). An operation that completes leaves all its keys at once: there is no
// garbage to sweep. Park and Wake may be called from Op.Complete and Op.Expire:
// a key woken there waits its turn, so that causes are handled in order and the
// stack stays flat.
type Purgatory[K comparable] struct {
	wheel *Wheel[*parked[K]]
	lists map[K]*list[K]
	// seq numbers operations in the order of their parking.
	seq     uint64
	watched int
	// causes are keys to wake, in order; running says that a Wake further up
	// the stack works on them.
	causes  []K
	running bool
	// Spares save allocations; both are bounded by maxSpares.
	spareOps   []*parked[K]
	spareLists []*list[K]
	expire     func(*Timer[*parked[K]])
}

const (
	maxSpares     = 1024
	maxSpareNodes = 64 // keys of an operation that is kept for reuse
)

// parked is an Op and its place under every key.
type parked[K comparable] struct {
	op    Op
	timer Timer[*parked[K]]
	seq   uint64
	nodes []node[K]
}

// node links an operation into the list of one key.
type node[K comparable] struct {
	prev, next *node[K]
	owner      *parked[K]
	list       *list[K]
}

// list holds the operations under one key, oldest first.
type list[K comparable] struct {
	key  K
	head node[K] // sentinel
}

// New returns an empty purgatory whose timer starts at now.
func New[K comparable](now model.Time) *Purgatory[K] {
	p := &Purgatory[K]{wheel: NewWheel[*parked[K]](now), lists: map[K]*list[K]{}}
	p.expire = p.fire
	return p
}

// Park completes op at once if it can be or if its deadline is not after now,
// and returns true. Otherwise op waits under keys until deadline. It is tried
// before and after it is watched (R7.3), so that what TryComplete itself sets
// off is not missed.
func (p *Purgatory[K]) Park(now model.Time, op Op, deadline model.Time, keys ...K) bool {
	outermost := p.enter()
	done := p.park(now, op, deadline, keys)
	if outermost {
		p.exit()
	}
	return done
}

func (p *Purgatory[K]) park(now model.Time, op Op, deadline model.Time, keys []K) bool {
	if op.TryComplete() {
		op.Complete()
		return true
	}
	w := p.watch(op, keys)
	switch {
	case op.TryComplete():
		p.leave(w)
		op.Complete()
		return true
	case deadline <= now || !p.wheel.Add(&w.timer, deadline):
		p.leave(w)
		op.Expire()
		op.Complete()
		return true
	}
	return false
}

// Wake tries the operations parked under key, oldest first; those parked
// meanwhile were tried already. Called from within Complete or Expire it only
// notes the key.
func (p *Purgatory[K]) Wake(key K) {
	if p.lists[key] == nil {
		return
	}
	p.causes = append(p.causes, key)
	if p.enter() {
		p.exit()
	}
}

// Advance expires what has its deadline at or before now. What an expiry wakes
// is handled before the next expiry.
func (p *Purgatory[K]) Advance(now model.Time) { p.wheel.Advance(now, p.expire) }

func (p *Purgatory[K]) fire(t *Timer[*parked[K]]) {
	outermost, op := p.enter(), t.Value.op
	p.leave(t.Value)
	op.Expire()
	op.Complete()
	if outermost {
		p.exit()
	}
}

// NextDeadline returns when Advance must be called next; it may be earlier than
// the earliest deadline. False means that nothing is parked.
func (p *Purgatory[K]) NextDeadline() (model.Time, bool) { return p.wheel.NextDeadline() }

// Len is the number of parked operations.
func (p *Purgatory[K]) Len() int { return p.wheel.Len() }

// Watched is the number of (key, operation) pairs.
func (p *Purgatory[K]) Watched() int { return p.watched }

// Each calls f with every parked operation, in the order of their parking, and
// the time at which Advance expires it. f only looks.
func (p *Purgatory[K]) Each(f func(op Op, due model.Time)) {
	all := make([]*parked[K], 0, p.Len())
	p.wheel.each(func(t *Timer[*parked[K]]) { all = append(all, t.Value) })
	slices.SortFunc(all, func(a, b *parked[K]) int { return cmp.Compare(a.seq, b.seq) })
	for _, w := range all {
		f(w.op, model.Time(w.timer.due)*model.Time(tick))
	}
}

// enter reports whether the caller is the outermost one on the stack, which has
// to call exit.
func (p *Purgatory[K]) enter() bool {
	outermost := !p.running
	p.running = true
	return outermost
}

// exit works off the causes that came up, in their order.
func (p *Purgatory[K]) exit() {
	for i := 0; i < len(p.causes); i++ {
		p.try(p.causes[i])
	}
	clear(p.causes)
	p.causes, p.running = p.causes[:0], false
}

// try walks one list. Nothing but the completed operation itself leaves a list
// meanwhile, because wakes are queued; Park only adds at the end.
func (p *Purgatory[K]) try(key K) {
	l, last := p.lists[key], p.seq
	if l == nil {
		return
	}
	for n := l.head.next; n != &l.head && n.owner.seq <= last; {
		w := n.owner
		for n = n.next; n.owner == w; n = n.next {
			// The request named this key more than once.
		}
		if !w.op.TryComplete() {
			continue
		}
		op := w.op
		p.leave(w)
		op.Complete() // if w was the last one, l may serve another key from here on
	}
}

// watch links op under its keys.
func (p *Purgatory[K]) watch(op Op, keys []K) *parked[K] {
	w := p.newParked(len(keys))
	p.seq++
	w.op, w.seq, w.timer.Value = op, p.seq, w
	for i, k := range keys {
		l := p.lists[k]
		if l == nil {
			l = p.newList(k)
		}
		n := &w.nodes[i]
		n.owner, n.list = w, l
		n.prev, n.next = l.head.prev, &l.head
		l.head.prev.next, l.head.prev = n, n
	}
	p.watched += len(keys)
	return w
}

// leave takes an operation out of the timer and from under all its keys. w may
// be reused from here on.
func (p *Purgatory[K]) leave(w *parked[K]) {
	p.wheel.Remove(&w.timer)
	for i := range w.nodes {
		n := &w.nodes[i]
		n.prev.next, n.next.prev = n.next, n.prev
		if l := n.list; l.head.next == &l.head {
			delete(p.lists, l.key)
			if len(p.spareLists) < maxSpares {
				p.spareLists = append(p.spareLists, l)
			}
		}
	}
	p.watched -= len(w.nodes)
	w.op = nil
	if len(p.spareOps) < maxSpares && cap(w.nodes) <= maxSpareNodes {
		clear(w.nodes)
		p.spareOps = append(p.spareOps, w)
	}
}

func (p *Purgatory[K]) newParked(keys int) *parked[K] {
	var w *parked[K]
	if n := len(p.spareOps); n > 0 {
		w, p.spareOps = p.spareOps[n-1], p.spareOps[:n-1]
	} else {
		w = &parked[K]{}
	}
	if cap(w.nodes) < keys {
		w.nodes = make([]node[K], keys)
	}
	w.nodes = w.nodes[:keys]
	return w
}

func (p *Purgatory[K]) newList(key K) *list[K] {
	var l *list[K]
	if n := len(p.spareLists); n > 0 {
		l, p.spareLists = p.spareLists[n-1], p.spareLists[:n-1]
	} else {
		l = &list[K]{}
		l.head.prev, l.head.next = &l.head, &l.head
	}
	l.key = key
	p.lists[key] = l
	return l
}
