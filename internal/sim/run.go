package sim

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/check"
	"github.com/tidemark-log/tidemark/internal/sim/stage"
	"github.com/tidemark-log/tidemark/internal/sim/workload"
	"github.com/tidemark-log/tidemark/internal/task"
)

// Options say how to run a plan.
type Options struct {
	// Events ends the run after so many steps; 0 is when the plan ends.
	Events uint64
	// Trace, if set, is told what happens, a line at a time.
	Trace func(at time.Duration, who, what string)
	// Own, if set, is called once for each run, so that what it returns may keep
	// state.
	Own func(Outlook) Own
	// Stop, if set, is asked now and then; true ends the run with ErrStopped.
	Stop func() bool
	// Skip names invariants that are not checked.
	Skip []string
}

// Result is how a run went.
type Result struct {
	Plan    *Plan
	Steps   uint64
	Lasted  time.Duration // by the simulated clock
	Digest  uint64        // equal for runs that went the same way
	Faults  map[Verb]int  // that were carried out
	Records int           // acknowledged
	Clean   bool          // no more was lost than the cluster has to survive
	// Err is a *check.Violation, or another error that ended the run; nil when
	// all is well.
	Err error
}

// Invariant is the name of what did not hold; empty when all is well.
func (r *Result) Invariant() string {
	if v := new(check.Violation); errors.As(r.Err, &v) {
		return v.Invariant
	}
	if r.Err != nil {
		return "Alive"
	}
	return ""
}

// ErrStopped is how a run ends that Options.Stop ended.
var ErrStopped = errors.New("the run was stopped")

// settling is how long a mended cluster may take until it has settled.
const settling = 60 * time.Second

// run is a run under way.
type run struct {
	w       *world
	o       Options
	set     *check.Set
	history *check.History
	cluster check.Cluster
	at      map[*stage.Machine]int // member of each machine
	stop    context.CancelFunc     // ends the workloads
	own     Own                    // of this run
	setup   *stage.Machine         // creates the topics
	left    int                    // clients that run
	over    bool                   // the faults have ended
	quiet   bool                   // the clients have ended
	since   time.Duration          // the faults' end
	byHand  time.Duration          // when the operator last elected leaders
}

// Run carries a plan out. Only one can run in a process at a time: the source of
// all chance is seeded for the whole of it.
func Run(p *Plan, o Options) *Result {
	seeded := chacha(p.Seed)
	was := crand.Reader
	crand.Reader = seeded
	defer func() { crand.Reader = was }()
	r := &run{o: o, history: check.NewHistory(), at: map[*stage.Machine]int{}}
	res := &Result{Plan: p, Faults: map[Verb]int{}, Clean: true}
	w, err := newWorld(p, r.handler)
	if err != nil {
		res.Err = err
		return res
	}
	r.w = w
	r.begin()
	res.Err = r.turn()
	r.tell(res)
	for _, m := range w.members {
		m.machine.Kill()
	}
	for _, m := range append(w.clients, r.setup) {
		m.Kill()
	}
	return res
}

// chacha is the stream that raft's jitter, ids and the like are drawn from.
func chacha(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	for i := range key {
		key[i] = byte(seed >> (i % 8 * 8))
	}
	return rand.NewChaCha8(key)
}

// begin starts the nodes, and the clients once the topics are there.
func (r *run) begin() {
	w := r.w
	w.stage.Trace = r.o.Trace
	r.set = check.New(check.Options{MinISR: w.plan.MinISR, SessionTimeout: w.members[0].cfg.BrokerSessionTimeout, LagMax: lagMax, History: r.history, Skip: r.o.Skip})
	r.bring()
	for _, m := range w.members {
		r.at[m.machine] = len(r.at)
		if m.broker {
			r.cluster.Brokers = append(r.cluster.Brokers, r.brokerView(m))
		}
		if m.controller {
			r.cluster.Controllers = append(r.cluster.Controllers, check.Controller{ID: m.id, Leads: model.NoEpoch})
		}
		w.start(m)
	}
	w.down = r.ended
	r.setup = w.stage.NewMachine("setup", 100)
	r.setup.Start("setup", func(p *stage.Process) {
		workload.Setup(context.Background(), r.env(p))
		w.stage.After(0, r.play)
	})
}

// play starts the clients and lays the plan's actions on the time from now on.
func (r *run) play() {
	w := r.w
	began := w.stage.Now()
	w.stage.Note("world", "the topics are there")
	for _, a := range w.plan.Actions {
		w.stage.At(began+a.At, func() {
			if !r.over {
				w.act(a)
				r.refresh(w.members[a.Node-1]) // one that is paused makes no step
			}
		})
	}
	r.startClients()
	w.stage.At(began+w.plan.Length, func() {
		r.over, r.since = true, w.stage.Now()
		w.mend()
		if r.stop != nil {
			r.stop()
		}
	})
}

// startClients starts each workload on a machine of its own.
func (r *run) startClients() {
	var stops []context.CancelFunc
	for i, m := range r.w.clients {
		x := workload.Named(r.w.plan.Workloads[i])
		if x == nil {
			r.w.err = fmt.Errorf("there is no workload %q", r.w.plan.Workloads[i])
			return
		}
		suffix := ""
		if slices.Contains(r.w.plan.Workloads[:i], x.Name()) {
			suffix = "@" + m.Name
		}
		stops = append(stops, r.startClient(m, x, suffix))
	}
	stops = append(stops, r.startOwn()...)
	r.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// env is the world of a client.
func (r *run) env(p *stage.Process) *workload.Env {
	plan := r.w.plan
	env := &workload.Env{Runtime: p.Runtime, Dial: p.Dial, Bootstrap: r.w.bootstrap(), History: r.history,
		Rand:    rand.New(rand.NewPCG(plan.Seed, 1000+uint64(p.Machine.Number))),
		Options: clientOptions(plan),
		Broken: func(err error) {
			if r.w.err == nil {
				r.w.err = fmt.Errorf("%s was answered what cannot be: %w", p.Machine.Name, err)
			}
		}}
	if r.o.Trace != nil {
		env.Note = func(format string, args ...any) {
			r.o.Trace(r.w.stage.Now(), p.Machine.Name, fmt.Sprintf(format, args...))
		}
	}
	return env
}

// turn steps until the plan has ended and the cluster has settled, or something is
// wrong.
func (r *run) turn() error {
	s := r.w.stage
	look := time.Duration(0)
	for r.o.Events == 0 || s.Steps() < r.o.Events {
		if r.o.Stop != nil && s.Steps()%1024 == 0 && r.o.Stop() {
			return ErrStopped
		}
		if !s.Step() {
			if s.Err() != nil {
				return s.Err()
			}
			return errors.New("nothing can happen any more")
		}
		if err := r.check(); err != nil {
			return err
		}
		if r.w.err != nil {
			return r.w.err
		}
		if r.over && s.Now() >= look {
			look = s.Now() + 50*time.Millisecond
			if done, err := r.settled(); done || err != nil {
				return err
			}
		}
	}
	return nil
}

// settled reports whether all has come to rest, and checks what must be true then.
func (r *run) settled() (bool, error) {
	err := r.unsettled()
	if err == nil {
		return true, r.watch(r.atEnd)
	}
	if r.w.stage.Now() > r.since+settling {
		return false, err
	}
	r.operate()
	return false, nil
}

func (r *run) unsettled() error {
	for _, m := range r.w.members {
		if m.node == nil || m.stopping {
			return &check.Violation{Invariant: "Registered", Text: fmt.Sprintf("node %d is not up again", m.id)}
		}
	}
	if r.left > 0 {
		return &check.Violation{Invariant: "Answered", Text: fmt.Sprintf("%d clients wait for answers", r.left)}
	}
	r.refreshAll()
	return r.watch(func() error { return r.set.Converged(&r.cluster) })
}

// check looks at what the last step may have changed.
func (r *run) check() error {
	p, _ := r.w.stage.Last()
	if p == nil {
		return nil
	}
	if i, ok := r.at[p.Machine]; ok {
		r.refresh(r.w.members[i])
	}
	return r.watch(func() error { return r.set.AfterStep(&r.cluster) })
}

// watch lets a checker look.
func (r *run) watch(look func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a check panics: %v\n%s", p, debug.Stack())
		}
	}()
	r.w.stage.Watch(func() { err = look() })
	return err
}

// ended tells the checkers of a process that ended.
func (r *run) ended(m *member, how string) {
	h := check.Killed
	switch how {
	case stops:
		h = check.Orderly
	case cutOff:
		h = check.PowerCut
	case wiped:
		h = check.Wiped
	case rotted:
		h = check.Rotted
	}
	r.refresh(m)
	r.set.Stopped(m.id, m.machine.Process().Life, h)
}

func (r *run) refreshAll() {
	for _, m := range r.w.members {
		r.refresh(m)
	}
}

// refresh brings the view of one node up to date.
func (r *run) refresh(m *member) {
	n := m.node
	if m.broker {
		b := &r.cluster.Brokers[m.id-1]
		p := m.machine.Process()
		b.Running, b.Life, b.Paused = n != nil && m.machine.Running(), p.Life, p.Paused() || r.w.stage.Now() < m.awake
		b.Epoch, b.Image, b.Steps, b.Clean = model.UnknownBrokerEpoch, nil, 0, m.clean
		if b.Running {
			b.Epoch, b.Image, b.Steps = n.BrokerEpoch(), n.Applied(), n.Replicas().Steps()
		}
	}
	if !m.controller {
		return
	}
	for i := range r.cluster.Controllers {
		if c := &r.cluster.Controllers[i]; c.ID == m.id {
			c.Running = n != nil && m.machine.Running()
			if c.Running {
				c.Image, c.Beats = n.Image(), n.Beats
				c.End = c.Image.End()
				c.Leads = model.NoEpoch
				if leader, epoch := n.Active(); leader == m.id {
					c.Leads = epoch
				}
			}
		}
	}
}

var _ task.Scheduler = (*stage.Process)(nil)
