package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/internal/sim/check"
	"github.com/tidemark-log/tidemark/internal/sim/stage"
	"github.com/tidemark-log/tidemark/internal/sim/workload"
)

// Own is what a user brings to a run beside its plan.
type Own struct {
	// Invariants are checked after those of the house, AtEnd only once everything
	// has settled.
	Invariants, AtEnd []check.Invariant
	// Workloads run beside those of the plan, each on a machine of its own.
	Workloads []workload.Workload
}

// Outlook tells those who bring something how far a run is.
type Outlook struct {
	Now   func() time.Duration // by the simulated clock
	Clean func() bool          // no more was lost than the cluster has to survive
}

// bring asks for what the user brings to this run.
func (r *run) bring() {
	if r.o.Own == nil {
		return
	}
	r.own = r.o.Own(Outlook{Now: r.w.stage.Now, Clean: func() bool { return r.set.AllClean() }})
	for _, own := range r.own.Invariants {
		r.set.Add(own)
	}
}

// startOwn starts what the user brings to do, and returns what ends it.
func (r *run) startOwn() (stops []context.CancelFunc) {
	for i, x := range r.own.Workloads {
		m := r.w.stage.NewMachine(fmt.Sprintf("u%d", i+1), 201+i)
		r.w.clients = append(r.w.clients, m)
		stops = append(stops, r.startClient(m, x, ""))
	}
	return stops
}

// startClient starts a workload on its machine, and returns what ends it.
func (r *run) startClient(m *stage.Machine, x workload.Workload, suffix string) context.CancelFunc {
	r.left++
	p := m.Start(x.Name(), func(*stage.Process) {})
	ctx, cancel := p.Runtime.WithCancel(context.Background())
	env := r.env(p)
	env.Suffix = suffix
	env.Failed = func(err error) {
		if r.w.err == nil {
			r.w.err = &check.Violation{Invariant: x.Name(), Text: err.Error()}
		}
	}
	p.Go(x.Name(), func() {
		g := p.Runtime.NewGroup()
		workload.Start(ctx, g, env, []workload.Workload{x})
		g.Wait()
		r.left--
	})
	return cancel
}

// atEnd checks what must be true once everything has settled.
func (r *run) atEnd() error {
	if err := r.set.AtEnd(&r.cluster, r.history); err != nil {
		return err
	}
	for _, own := range r.own.AtEnd {
		if err := own.Check(&r.cluster); err != nil {
			return &check.Violation{Invariant: own.Name(), Text: err.Error()}
		}
	}
	return nil
}
