package task

import (
	"context"
	"sync"
	"time"
)

// Runtime runs the tasks of one process. The nil Runtime runs them on goroutines
// and the machine's clock.
type Runtime struct{ s Scheduler }

// Scheduler is what a simulator puts in the place of goroutines and clocks. It
// runs one task at a time; none of its methods is called from elsewhere.
type Scheduler interface {
	// Clock returns the monotonic reading and the wall clock of the process.
	Clock() (now, wall time.Time)
	// Go has f run as a task of its own, later.
	Go(name string, f func())
	// Park returns when w was woken or its Deadline has come. What ends the
	// process unwinds the task from here.
	Park(w *Waiter)
	// Wake makes the task that is parked on w runnable.
	Wake(w *Waiter)
}

// New returns a Runtime on a simulator's scheduler.
func New(s Scheduler) *Runtime { return &Runtime{s: s} }

func (rt *Runtime) scheduler() Scheduler {
	if rt == nil {
		return nil
	}
	return rt.s
}

// Now is a monotonic reading: good for durations and deadlines only.
func (rt *Runtime) Now() time.Time {
	if s := rt.scheduler(); s != nil {
		now, _ := s.Clock()
		return now
	}
	return time.Now()
}

// Wall is the wall clock, which may be wrong and may jump.
func (rt *Runtime) Wall() time.Time {
	if s := rt.scheduler(); s != nil {
		_, wall := s.Clock()
		return wall
	}
	return time.Now()
}

// Since is the time that has passed since a reading of Now.
func (rt *Runtime) Since(t time.Time) time.Duration { return rt.Now().Sub(t) }

// Go runs f as a task. Its name stands in traces of the simulator.
func (rt *Runtime) Go(name string, f func()) {
	if s := rt.scheduler(); s != nil {
		s.Go(name, f)
		return
	}
	go f()
}

// Sleep waits; false says that ctx ended first.
func (rt *Runtime) Sleep(ctx context.Context, d time.Duration) bool {
	return rt.NewWaiter().Wait(ctx, max(d, 0)) == Timeout
}

// Wait is Waiter.Wait for those who wait once.
func (rt *Runtime) Wait(ctx context.Context, d time.Duration, signals ...*Signal) int {
	return rt.NewWaiter().Wait(ctx, d, signals...)
}

// Group waits for the tasks that it started.
type Group struct {
	rt   *Runtime
	wg   sync.WaitGroup // in production
	left int
	idle *Signal
}

// NewGroup returns a Group without tasks.
func (rt *Runtime) NewGroup() *Group {
	g := &Group{rt: rt}
	if rt.scheduler() != nil {
		g.idle = rt.NewSignal()
	}
	return g
}

// Go runs f as a task of the group.
func (g *Group) Go(name string, f func()) {
	if g.idle == nil {
		g.wg.Go(f)
		return
	}
	g.left++
	g.rt.Go(name, func() {
		defer func() {
			if g.left--; g.left == 0 {
				g.idle.Raise()
			}
		}()
		f()
	})
}

// Wait returns when no task of the group runs.
func (g *Group) Wait() {
	if g.idle == nil {
		g.wg.Wait()
		return
	}
	for g.left > 0 {
		g.rt.Wait(nil, Forever, g.idle)
	}
	g.idle.Raise() // for others who wait
}

// Mutex is for what is held over file operations, which may park a task. All
// other mutexes are sync's, and are never held while a task waits.
type Mutex struct {
	rt   *Runtime
	mu   sync.Mutex // in production
	held bool
	free *Signal
}

// NewMutex returns an open Mutex.
func (rt *Runtime) NewMutex() *Mutex {
	m := &Mutex{rt: rt}
	if rt.scheduler() != nil {
		m.free = rt.NewSignal()
	}
	return m
}

// Lock takes the mutex when it is free.
func (m *Mutex) Lock() {
	if m.free == nil {
		m.mu.Lock()
		return
	}
	for m.held {
		m.rt.Wait(nil, Forever, m.free)
	}
	m.held = true
}

// Unlock gives the mutex back.
func (m *Mutex) Unlock() {
	if m.free == nil {
		m.mu.Unlock()
		return
	}
	m.held = false
	m.free.Raise()
}

// killed is what unwinds the tasks of a process that a simulator ended.
type killed struct{}

// Kill unwinds the task that calls it; a Scheduler does so out of Park.
func Kill() { panic(killed{}) }

// Killed says whether a recovered value is Kill's. Who recovers it panics again.
func Killed(recovered any) bool {
	_, is := recovered.(killed)
	return is
}
