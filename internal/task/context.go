package task

import (
	"context"
	"time"
)

// WithCancel is context.WithCancel, for contexts that tasks wait on.
func (rt *Runtime) WithCancel(parent context.Context) (context.Context, context.CancelFunc) {
	if rt.scheduler() == nil {
		return context.WithCancel(parent)
	}
	return rt.derive(parent, time.Time{})
}

// WithTimeout is context.WithTimeout, for contexts that tasks wait on.
func (rt *Runtime) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if rt.scheduler() == nil {
		return context.WithTimeout(parent, d)
	}
	return rt.derive(parent, rt.Now().Add(d))
}

// simContext is a context on a simulated clock. Its deadline is found by those
// who look; nothing happens when it passes.
type simContext struct {
	rt        *Runtime
	value     func(key any) any
	deadline  time.Time // the earliest of its own and its parents'; zero is none
	cancelled *Signal
	err       error
	children  []*simContext
}

func (rt *Runtime) derive(parent context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	c := &simContext{rt: rt, value: parent.Value, deadline: deadline, cancelled: rt.NewSignal()}
	p := contextOf(parent)
	if p == nil {
		return c, c.cancel
	}
	if !p.deadline.IsZero() && (deadline.IsZero() || p.deadline.Before(deadline)) {
		c.deadline = p.deadline
	}
	if p.Err() != nil {
		c.cancel()
		return c, c.cancel
	}
	p.children = append(p.children, c)
	return c, func() {
		c.cancel()
		p.drop(c)
	}
}

func (c *simContext) cancel() {
	if c.err != nil {
		return
	}
	c.err = c.Err()
	if c.err == nil {
		c.err = context.Canceled
	}
	c.cancelled.Close()
	for _, child := range c.children {
		child.cancel()
	}
	c.children = nil
}

func (c *simContext) drop(child *simContext) {
	for i, x := range c.children {
		if x == child {
			c.children = append(c.children[:i], c.children[i+1:]...)
			return
		}
	}
}

// Deadline is when Err begins to tell of it.
func (c *simContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// Done is closed with a cancel, not by the deadline.
func (c *simContext) Done() <-chan struct{} { return c.cancelled.ch }

// Err is why the context ended.
func (c *simContext) Err() error {
	if c.err != nil {
		return c.err
	}
	if !c.deadline.IsZero() && !c.rt.Now().Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value is the parent's.
func (c *simContext) Value(key any) any { return c.value(key) }

// contextOf returns the simulated context that ctx is, or nil for one that never
// ends. Any other would end by a clock or a goroutine of the machine.
func contextOf(ctx context.Context) *simContext {
	if ctx == nil || ctx.Done() == nil {
		return nil
	}
	c, ok := ctx.(*simContext)
	if !ok {
		panic("task: a context that was not made by the runtime")
	}
	return c
}
