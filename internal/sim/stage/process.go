package stage

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

// Process is one life of a program on a machine. It is the task.Scheduler of its
// tasks.
type Process struct {
	// Runtime is what the program runs on.
	Runtime *task.Runtime
	Machine *Machine
	// Life counts the processes of the machine, from 1 on.
	Life uint64

	stage    *Stage
	dead     bool
	pausedBy int
	held     []*thread // ready, in a process that is paused
	threads  []*thread
	conns    []*conn
	ports    []*listener
}

// thread is one task.
type thread struct {
	id      uint64
	name    string
	process *Process
	resume  func() (struct{}, bool)
	end     func()
	yield   func(struct{}) bool
	state   threadState
	timer   event
}

type threadState int

const (
	isReady threadState = iota
	isRunning
	isParked
	isDone
)

// run resumes a task until it waits or ends.
func (s *Stage) run(t *thread) {
	if t.state != isReady {
		return
	}
	t.state = isRunning
	s.current = t
	if _, waits := t.resume(); !waits {
		t.process.forget(t)
	}
}

// Go starts a task.
func (p *Process) Go(name string, f func()) {
	if p.dead {
		return
	}
	s := p.stage
	s.threads++
	t := &thread{id: s.threads, name: name, process: p}
	t.timer.pos = -1
	t.timer.do = func() { p.wake(t) }
	t.resume, t.end = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.state = isDone
			if r := recover(); r != nil && !task.Killed(r) && !p.dead && s.fault == nil {
				s.fault = fmt.Errorf("%s panics in %q: %v\n%s", p.Machine.Name, name, r, debug.Stack())
			}
		}()
		f()
	})
	p.threads = append(p.threads, t)
	s.ready = append(s.ready, t)
}

// Park is called by the running task, which waits.
func (p *Process) Park(w *task.Waiter) {
	s := p.stage
	t := s.current
	if t == nil || t.process != p || t.state != isRunning {
		if p.dead {
			task.Kill()
		}
		panic("stage: who waits is not the task that runs")
	}
	w.Task = t
	t.state = isParked
	if !w.Deadline.IsZero() {
		s.schedule(&t.timer, p.Machine.when(w.Deadline.Sub(origin)))
	}
	alive := t.yield(struct{}{})
	w.Task = nil
	if !alive || p.dead {
		task.Kill()
	}
	s.cancel(&t.timer)
}

// Wake makes a task runnable that is parked.
func (p *Process) Wake(w *task.Waiter) {
	if t, ok := w.Task.(*thread); ok {
		p.wake(t)
	}
}

func (p *Process) wake(t *thread) {
	if t.state != isParked || t.process.dead {
		return
	}
	t.state = isReady
	if t.process.pausedBy > 0 {
		t.process.held = append(t.process.held, t)
		return
	}
	p.stage.ready = append(p.stage.ready, t)
}

// Clock reads the machine's clocks.
func (p *Process) Clock() (now, wall time.Time) {
	m := p.Machine
	local := origin.Add(m.local(p.stage.now))
	return local, local.Add(m.wallAhead)
}

func (p *Process) forget(t *thread) {
	p.stage.cancel(&t.timer)
	for i, x := range p.threads {
		if x == t {
			p.threads[i] = p.threads[len(p.threads)-1]
			p.threads = p.threads[:len(p.threads)-1]
			return
		}
	}
}

// Alive says whether the process runs, if only it is not paused.
func (p *Process) Alive() bool { return !p.dead }

// Pause stops the process where it stands, as SIGSTOP does; so often Resume has
// to be called.
func (p *Process) Pause() { p.pausedBy++ }

// Resume lets the process go on.
func (p *Process) Resume() {
	if p.pausedBy--; p.pausedBy == 0 && !p.dead {
		p.stage.ready = append(p.stage.ready, p.held...)
		p.held = nil
	}
}

// Paused says whether the process stands still.
func (p *Process) Paused() bool { return p.pausedBy > 0 }

// Kill ends the process as SIGKILL does: its tasks are unwound, its connections
// and ports closed. It must not be called by a task of the process.
func (p *Process) Kill() { p.end(true) }

// end ends the process; the peers of its connections hear of it if told is set.
func (p *Process) end(told bool) {
	if p.dead {
		return
	}
	p.dead = true
	s := p.stage
	kept := s.ready[:0]
	for _, t := range s.ready {
		if t.process != p {
			kept = append(kept, t)
		}
	}
	clear(s.ready[len(kept):])
	s.ready = kept
	was := s.current
	for _, t := range append([]*thread(nil), p.threads...) {
		s.cancel(&t.timer)
		s.current = t
		t.state = isRunning
		t.end()
		t.state = isDone
	}
	s.current = was
	p.threads, p.held = nil, nil
	for _, l := range p.ports {
		l.shut()
	}
	for _, c := range p.conns {
		if told {
			c.reset()
		} else {
			c.vanish()
		}
	}
	p.ports, p.conns = nil, nil
}
