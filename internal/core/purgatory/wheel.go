package purgatory

import (
	"math"
	"math/bits"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

const (
	// tick is the resolution of the wheel; a deadline counts as the next full one.
	tick = time.Millisecond
	// slots is how many slots a level has; a slot of the next level is as long
	// as all of them together.
	slots = 20
)

// Wheel is a hierarchical timing wheel (R7.8). Adding and removing take
// constant time; a timer moves to a finer level at most once per level before
// it is due. It never fires early, and late by less than a tick. It has one
// owner.
//
//	level 0   20 slots of 1 ms      the next 20 ms
//	level 1   20 slots of 20 ms     the next 400 ms
//	level 2   20 slots of 400 ms    the next 8 s, and so on, made on demand
//
// A slot of level i > 0 never holds the current interval: that one's timers
// are on a finer level. So a slot says without ambiguity which interval it is.
type Wheel[T any] struct {
	clock  int64 // ticks; everything due up to here was fired
	levels []*level[T]
	due    Timer[T] // ring of timers that Advance is about to fire
	len    int
}

type level[T any] struct {
	unit int64 // ticks per slot
	used uint32
	ring [slots]Timer[T] // sentinels
}

// Timer is one entry of a Wheel. The zero value may be added; its address must
// not change while it is in the wheel.
type Timer[T any] struct {
	// Value belongs to the caller.
	Value T

	due        int64 // ticks
	prev, next *Timer[T]
	home       *level[T] // nil while due
	slot       uint8
}

// Active reports whether the timer is in a wheel.
func (t *Timer[T]) Active() bool { return t.next != nil }

// NewWheel returns an empty wheel whose clock shows now.
func NewWheel[T any](now model.Time) *Wheel[T] {
	w := &Wheel[T]{clock: floorTicks(now)}
	w.due.prev, w.due.next = &w.due, &w.due
	return w
}

// Len is the number of timers in the wheel.
func (w *Wheel[T]) Len() int { return w.len }

// Add puts t into the wheel, to fire at deadline. It returns false and does
// nothing when the deadline is not after the last Advance. A timer that is
// already in the wheel moves.
func (w *Wheel[T]) Add(t *Timer[T], deadline model.Time) bool {
	w.Remove(t)
	due := ceilTicks(deadline)
	if due <= w.clock {
		return false
	}
	t.due = due
	w.place(t)
	w.len++
	return true
}

// Remove takes t out; it does nothing when t is not in the wheel.
func (w *Wheel[T]) Remove(t *Timer[T]) {
	if t.next == nil {
		return
	}
	t.unlink()
	w.len--
}

func (t *Timer[T]) unlink() {
	t.prev.next, t.next.prev = t.next, t.prev
	t.prev, t.next = nil, nil
	if l := t.home; l != nil {
		if head := &l.ring[t.slot]; head.next == head {
			l.used &^= 1 << t.slot
		}
		t.home = nil
	}
}

func (head *Timer[T]) push(t *Timer[T]) {
	t.prev, t.next = head.prev, head
	head.prev.next, head.prev = t, t
}

// place links t into the finest level whose range holds its due time.
func (w *Wheel[T]) place(t *Timer[T]) {
	for i := 0; ; i++ {
		l := w.level(i)
		ahead := t.due/l.unit - w.clock/l.unit
		if ahead >= slots {
			continue
		}
		t.home, t.slot = l, uint8(t.due/l.unit%slots)
		l.used |= 1 << t.slot
		l.ring[t.slot].push(t)
		return
	}
}

// level returns level i and makes it if it is the first one missing.
func (w *Wheel[T]) level(i int) *level[T] {
	if i < len(w.levels) {
		return w.levels[i]
	}
	unit := int64(1)
	if i > 0 {
		unit = w.levels[i-1].unit * slots
	}
	l := &level[T]{unit: unit}
	for s := range l.ring {
		l.ring[s].prev, l.ring[s].next = &l.ring[s], &l.ring[s]
	}
	w.levels = append(w.levels, l)
	return l
}

// first returns the earliest slot that holds a timer, and the tick at which it
// begins. Of two that begin together it returns the coarser one, whose timers
// may belong into the finer.
func (w *Wheel[T]) first() (l *level[T], slot int, start int64) {
	start = math.MaxInt64
	for _, c := range w.levels {
		if c.used == 0 {
			continue
		}
		at := w.clock / c.unit
		from := int(at % slots)
		// Bit k of the rotated set is the slot k intervals from now.
		rotated := (c.used>>from | c.used<<(slots-from)) & (1<<slots - 1)
		ahead := bits.TrailingZeros32(rotated)
		if begin := (at + int64(ahead)) * c.unit; begin <= start {
			l, slot, start = c, (from+ahead)%slots, begin
		}
	}
	return l, slot, start
}

// NextDeadline returns when Advance should be called next: the begin of the
// earliest slot in use, which is never after the earliest deadline rounded up to
// a tick. False means that the wheel is empty.
func (w *Wheel[T]) NextDeadline() (model.Time, bool) {
	l, _, start := w.first()
	if l == nil {
		return 0, false
	}
	return model.Time(start) * model.Time(tick), true
}

// Advance moves the clock to now and calls fire for each timer that is due, in
// order of their ticks. fire may add and remove timers; it must not Advance.
func (w *Wheel[T]) Advance(now model.Time, fire func(*Timer[T])) {
	target := floorTicks(now)
	for {
		l, slot, start := w.first()
		if l == nil || start > target {
			break
		}
		w.clock = max(w.clock, start)
		w.empty(l, slot)
		for w.due.next != &w.due {
			t := w.due.next
			t.unlink()
			w.len--
			fire(t)
		}
	}
	w.clock = max(w.clock, target)
}

// each calls f with every timer in the wheel, in no useful order.
func (w *Wheel[T]) each(f func(*Timer[T])) {
	for t := w.due.next; t != &w.due; t = t.next {
		f(t)
	}
	for _, l := range w.levels {
		for i := range l.ring {
			for head, t := &l.ring[i], l.ring[i].next; t != head; t = t.next {
				f(t)
			}
		}
	}
}

// empty moves the timers of one slot to where they belong now: to a finer
// level, or to the due ring.
func (w *Wheel[T]) empty(l *level[T], slot int) {
	head := &l.ring[slot]
	for head.next != head {
		t := head.next
		t.unlink()
		if t.due <= w.clock {
			w.due.push(t)
		} else {
			w.place(t)
		}
	}
}

// floorTicks is the last full tick at or before t, ceilTicks the first one at
// or after it.
func floorTicks(t model.Time) int64 {
	n := int64(t) / int64(tick)
	if int64(t)%int64(tick) < 0 {
		n--
	}
	return n
}

func ceilTicks(t model.Time) int64 {
	n := floorTicks(t)
	if int64(t)%int64(tick) != 0 {
		n++
	}
	return n
}
