package tidetest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/sim"
	"github.com/tidemark-log/tidemark/internal/sim/check"
	"github.com/tidemark-log/tidemark/internal/sim/workload"
)

// simulating is held by the one simulation that runs: while it does, the whole
// process draws its ids from the seed.
var simulating sync.Mutex

// simTries is how many runs may look for a shorter plan that fails.
const simTries = 100

// SimOption changes what Simulate and SimulateSeeds do.
type SimOption func(*simOptions)

type simOptions struct {
	setups []func(*SimRun)
	trace  io.Writer
	faults []string
}

// SimSetup has f called at the start of each run, to bring invariants and
// workloads. There are several runs when a plan is shrunk: what must be new in
// each belongs into f. It may be given several times.
func SimSetup(f func(*SimRun)) SimOption {
	return func(o *simOptions) { o.setups = append(o.setups, f) }
}

// SimTrace writes what happens: the simulated time in seconds, the machine, what
// was done to it or said by it. Machines n1, n2, ... run the nodes, c1, c2, ...
// the workloads of the plan, u1, u2, ... those of a SimSetup.
func SimTrace(w io.Writer) SimOption {
	return func(o *simOptions) { o.trace = w }
}

// SimFaults names the families of faults that SimulateSeeds draws from, such as
// "kill" or "cut"; "tidemark sim --help" lists them. With none nothing goes wrong.
func SimFaults(families ...string) SimOption {
	return func(o *simOptions) { o.faults = append([]string{}, families...) }
}

// SimResult is how a simulation went that found nothing wrong.
type SimResult struct {
	Seed    uint64
	Steps   uint64        // of tasks
	Lasted  time.Duration // by the simulated clock
	Records int           // acknowledged
	// Digest is equal for two runs that went the same way.
	Digest uint64
}

// Simulate runs a plan, given as the script that "tidemark sim --script" takes,
// and checks every invariant after each step: those of the house, then those of a
// SimSetup. If one does not hold, the test fails with its name, the seed, the
// shortest plan found that fails in the same way, the end of that plan's trace.
//
// One simulation runs in a process at a time; others wait for it. Nothing else may
// use crypto/rand meanwhile, a Cluster of this package for one, or the seed does
// not decide everything.
func Simulate(t testing.TB, script string, opts ...SimOption) SimResult {
	t.Helper()
	p, err := sim.ReadScript(strings.NewReader(script))
	if err != nil {
		t.Fatalf("tidetest: %v", err)
	}
	return simulate(t, p, simOptionsOf(opts))
}

// SimulateSeeds is Simulate for the plans that are drawn from n seeds, the first
// of which is from. It ends with the first that fails.
func SimulateSeeds(t testing.TB, from, n uint64, opts ...SimOption) []SimResult {
	t.Helper()
	o := simOptionsOf(opts)
	var out []SimResult
	for seed := from; seed < from+n; seed++ {
		p, err := sim.Draw(seed, o.faults)
		if err != nil {
			t.Fatalf("tidetest: %v", err)
		}
		out = append(out, simulate(t, p, o))
	}
	return out
}

func simOptionsOf(opts []SimOption) *simOptions {
	o := &simOptions{}
	for _, f := range opts {
		f(o)
	}
	return o
}

// simulate runs one plan, or fails the test.
func simulate(t testing.TB, p *sim.Plan, o *simOptions) SimResult {
	t.Helper()
	simulating.Lock()
	defer simulating.Unlock()
	so := sim.Options{}
	if len(o.setups) > 0 {
		so.Own = o.own
	}
	if o.trace != nil {
		so.Trace = func(at time.Duration, who, what string) { traceLine(o.trace, at, who, what) }
	}
	r := sim.Run(p, so)
	if r.Err != nil {
		t.Fatalf("tidetest: seed %d: %v\n%s", p.Seed, r.Err, explained(r, so))
	}
	return SimResult{Seed: p.Seed, Steps: r.Steps, Lasted: r.Lasted, Records: r.Records, Digest: r.Digest}
}

func traceLine(w io.Writer, at time.Duration, who, what string) {
	fmt.Fprintf(w, "%12.6f %-6s %s\n", at.Seconds(), who, what)
}

// lastLines is how much of a trace a failure shows.
const lastLines = 15

// explained is the shortest plan found that fails as r did, with the end of its
// trace.
func explained(r *sim.Result, so sim.Options) string {
	r = sim.Shrink(r, so, simTries)
	var lines []string
	so.Trace = func(at time.Duration, who, what string) {
		var b strings.Builder
		traceLine(&b, at, who, what)
		if len(lines) == lastLines {
			lines = append(lines[:0], lines[1:]...)
		}
		lines = append(lines, b.String())
	}
	sim.Run(r.Plan, so)
	var b strings.Builder
	fmt.Fprintf(&b, "\n# the shortest plan found that fails in the same way: %v\n", r.Err)
	r.Plan.WriteScript(&b)
	fmt.Fprintf(&b, "\nthe end of its trace:\n%s", strings.Join(lines, ""))
	return b.String()
}

// SimRun takes what a test brings to one run of a simulation.
type SimRun struct {
	state    *SimState
	own      sim.Own
	outlook  sim.Outlook
	produced map[string]bool // partition and value
}

func (o *simOptions) own(l sim.Outlook) sim.Own {
	r := &SimRun{state: &SimState{outlook: l}, outlook: l, produced: map[string]bool{}}
	for _, f := range o.setups {
		f(r)
	}
	return r.own
}

// Invariant has check called after each step. What it returns fails the run under
// this name. It must be a function of what it sees: no clock, no chance, and
// nothing that waits.
func (r *SimRun) Invariant(name string, check func(*SimState) error) {
	r.own.Invariants = append(r.own.Invariants, simInvariant{name, check, r.state})
}

// AtEnd has check called once, when the faults are over, the workloads have
// returned and the cluster has settled.
func (r *SimRun) AtEnd(name string, check func(*SimState) error) {
	r.own.AtEnd = append(r.own.AtEnd, simInvariant{name, check, r.state})
}

// Workload has run called as a client on a machine of its own, once the topics of
// the plan are there. Its context ends when the plan does: then everything is
// mended, and what is still to be looked at can be asked for with
// context.Background(). An error that it returns fails the run under this name,
// unless it only says that the context has ended.
//
// All that runs in a simulation takes turns in one thread of control, so run may
// share variables with invariants and other workloads without a lock. It may wait
// by the methods of its SimClient alone: what else waits, such as a channel,
// stops the simulation for good.
func (r *SimRun) Workload(name string, run func(ctx context.Context, c *SimClient) error) {
	r.own.Workloads = append(r.own.Workloads, workload.Own{Title: name, Do: func(ctx context.Context, c *workload.Client) error {
		return run(ctx, &SimClient{c: c, run: r})
	}})
}

// simInvariant is a function as the simulator calls it.
type simInvariant struct {
	name  string
	check func(*SimState) error
	state *SimState
}

// Name is that of the invariant.
func (i simInvariant) Name() string { return i.name }

// Check calls the function.
func (i simInvariant) Check(c *check.Cluster) error {
	i.state.cluster = c
	return i.check(i.state)
}
