package task

import (
	"context"
	"sync/atomic"
	"time"
)

// Forever, as a duration to wait, is without limit.
const Forever time.Duration = -1

// What Wait returns when it was no signal.
const (
	Timeout = -1 // the duration has passed
	Ended   = -2 // the context ended
)

// most is how many signals Wait waits for.
const most = 4

// Signal is what a task waits for. Raise lets one waiter through, the next one if
// nobody waits now; raised twice, it still lets one through. Close lets everybody
// through, for good.
type Signal struct {
	ch     chan struct{}
	closed atomic.Bool

	// In a simulation.
	s       Scheduler
	raised  bool
	waiters []*Waiter
}

// NewSignal returns a Signal that is not raised.
func (rt *Runtime) NewSignal() *Signal {
	return &Signal{ch: make(chan struct{}, 1), s: rt.scheduler()}
}

// Raise lets one waiter through. It never blocks.
func (s *Signal) Raise() {
	if s.s != nil {
		if s.Closed() {
			panic("task: a closed signal is raised") // as the channel does
		}
		s.raised = true
		s.wake()
		return
	}
	select {
	case s.ch <- struct{}{}:
	default:
	}
}

// Close lets everybody through from here on; it may be called again. Raise must
// not be called after it or beside it.
func (s *Signal) Close() {
	if s.closed.CompareAndSwap(false, true) {
		close(s.ch)
		s.wake()
	}
}

// Closed says whether Close was called.
func (s *Signal) Closed() bool { return s.closed.Load() }

// Take takes what Raise left, without waiting. It reports whether there was
// something, or the signal is closed.
func (s *Signal) Take() bool {
	if s.s != nil {
		was := s.raised || s.Closed()
		s.raised = false
		return was
	}
	select {
	case <-s.ch:
		return true
	default:
		return false
	}
}

// C is the channel behind a signal that is only ever closed, for code outside
// the node that waits in a goroutine of its own.
func (s *Signal) C() <-chan struct{} { return s.ch }

func (s *Signal) wake() {
	for _, w := range s.waiters {
		s.s.Wake(w)
	}
}

// Waiter waits for signals. A loop keeps one, for its timer; it serves one task.
type Waiter struct {
	rt    *Runtime
	timer *time.Timer

	// Deadline is when a parked task has waited long enough, on the process's
	// clock; zero is never. Read by the Scheduler.
	Deadline time.Time
	// Task belongs to the Scheduler.
	Task any

	signals []*Signal
}

// NewWaiter returns a Waiter of this process.
func (rt *Runtime) NewWaiter() *Waiter { return &Waiter{rt: rt} }

// Wait returns the index of a signal that let it through, Timeout once d has
// passed, or Ended when ctx ended, which may be nil. Zero only looks; Forever has
// no limit. At most four signals, of which some may be nil: those never come.
func (w *Waiter) Wait(ctx context.Context, d time.Duration, signals ...*Signal) int {
	if len(signals) > most {
		panic("task: too many signals to wait for")
	}
	if w.rt.scheduler() != nil {
		w.signals = append(w.signals[:0], signals...)
		return w.park(ctx, d)
	}
	if len(signals) > 0 && signals[0].channelTaken() {
		return 0 // no timer for what is there already
	}
	var ended <-chan struct{}
	if ctx != nil {
		ended = ctx.Done()
	}
	late := w.start(d)
	if late != nil {
		defer w.timer.Stop()
	}
	if len(signals) != 1 || d == 0 {
		return waitMany(d, signals, late, ended)
	}
	select {
	case <-signals[0].channel():
		return 0
	case <-late:
		return Timeout
	case <-ended:
		return Ended
	}
}

// channelTaken is Take, of a signal that may be nil.
func (s *Signal) channelTaken() bool {
	select {
	case <-s.channel():
		return true
	default:
		return false
	}
}

func atOnce(ended <-chan struct{}) int {
	select {
	case <-ended:
		return Ended
	default:
		return Timeout
	}
}

func waitMany(d time.Duration, signals []*Signal, late <-chan time.Time, ended <-chan struct{}) int {
	var c [most]<-chan struct{}
	for i, s := range signals {
		c[i] = s.channel()
	}
	if d == 0 {
		for i := range signals {
			select {
			case <-c[i]:
				return i
			default:
			}
		}
		return atOnce(ended)
	}
	select {
	case <-c[0]:
		return 0
	case <-c[1]:
		return 1
	case <-c[2]:
		return 2
	case <-c[3]:
		return 3
	case <-late:
		return Timeout
	case <-ended:
		return Ended
	}
}

// start sets the timer; nil when there is nothing to time.
func (w *Waiter) start(d time.Duration) <-chan time.Time {
	switch {
	case d <= 0:
		return nil
	case w.timer == nil:
		w.timer = time.NewTimer(d)
	default:
		w.timer.Reset(d)
	}
	return w.timer.C
}

func (s *Signal) channel() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.ch
}

// park is Wait in a simulation.
func (w *Waiter) park(ctx context.Context, d time.Duration) int {
	s := w.rt.s
	now, _ := s.Clock()
	c := contextOf(ctx)
	end := time.Time{}
	if d >= 0 {
		end = now.Add(d)
	}
	w.Deadline = end
	if c != nil && !c.deadline.IsZero() && (end.IsZero() || c.deadline.Before(end)) {
		w.Deadline = c.deadline
	}
	if c != nil {
		w.signals = append(w.signals, c.cancelled)
	}
	for {
		n, now := w.ready(c), w.rt.Now()
		switch {
		case n >= 0:
			return n
		case c != nil && c.Err() != nil:
			return Ended
		case !end.IsZero() && !now.Before(end):
			return Timeout
		}
		for _, sig := range w.signals {
			if sig != nil {
				sig.waiters = append(sig.waiters, w)
			}
		}
		w.rt.parkOn(w)
	}
}

// parkOn parks and takes w from the signals' lists, also when the task unwinds.
func (rt *Runtime) parkOn(w *Waiter) {
	defer func() {
		for _, sig := range w.signals {
			if sig != nil {
				sig.forget(w)
			}
		}
	}()
	rt.s.Park(w)
}

// ready takes the first signal that lets through, without the context's.
func (w *Waiter) ready(c *simContext) int {
	n := len(w.signals)
	if c != nil {
		n--
	}
	for i, sig := range w.signals[:n] {
		if sig != nil && sig.Take() {
			return i
		}
	}
	return -3
}

func (s *Signal) forget(w *Waiter) {
	for i, x := range s.waiters {
		if x == w {
			s.waiters = append(s.waiters[:i], s.waiters[i+1:]...)
			return
		}
	}
}
