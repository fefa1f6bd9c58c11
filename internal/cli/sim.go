package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-log/tidemark/internal/sim"
)

// simFlags are the flags of sim.
type simFlags struct {
	seed, from, seeds uint64
	events            uint64
	parallel          bool
	trace             bool
	shrink            bool
	worker            bool
	faults            []string
	script, save      string
}

func (a *App) sim() *cobra.Command {
	f := &simFlags{}
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run whole clusters in a simulator that looks for lost records",
		Long: `Runs a cluster of the nodes that ship on simulated machines, clocks, networks
and disks, breaks them, and checks every invariant of replication after each
step. A seed decides everything: the same seed goes the same way again.

A seed that fails is shrunk to a short script, which --script runs again.`,
		Example: `  tidemark sim --seed 7 --trace
  tidemark sim --seeds 10000 --parallel
  tidemark sim --seeds 500 --faults kill,cut
  tidemark sim --script failure.txt --trace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.refuse(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.runSim(cmd.Context(), f)
		},
	}
	fl := cmd.Flags()
	fl.Uint64Var(&f.seed, "seed", 1, "the seed to run")
	fl.Uint64Var(&f.seeds, "seeds", 0, "run so many seeds instead of one")
	fl.Uint64Var(&f.from, "from", 1, "the first of the seeds")
	fl.BoolVar(&f.parallel, "parallel", false, "run the seeds in one worker process for each processor")
	fl.Uint64Var(&f.events, "events", 0, "end a run after so many steps (0: when its plan ends)")
	fl.StringSliceVar(&f.faults, "faults", nil, "families of faults to draw from: "+strings.Join(sim.Faults(), ", ")+"; none is a quiet day")
	fl.BoolVar(&f.trace, "trace", false, "print what happens in a single run")
	fl.BoolVar(&f.shrink, "shrink", true, "look for a shorter plan that fails in the same way")
	fl.StringVar(&f.script, "script", "", "run the plan in this file instead of a seed's")
	fl.StringVar(&f.save, "save", "", "write the plan that failed, or the one that ran, to this file")
	fl.BoolVar(&f.worker, "worker", false, "run the seeds and report each as a line of JSON")
	fl.MarkHidden("worker")
	return cmd
}

func (a *App) runSim(ctx context.Context, f *simFlags) error {
	faults := f.faults
	if len(faults) == 1 && faults[0] == "none" {
		faults = []string{}
	}
	if _, err := sim.Draw(f.seed, faults); err != nil {
		return usagef("--faults: %v", err)
	}
	switch {
	case f.worker:
		return sim.Seeds(ctx, f.from, f.from+f.seeds, faults, sim.Options{Events: f.events}, a.Out)
	case f.seeds > 0:
		return a.sweepSeeds(ctx, f, faults)
	}
	p, err := f.plan(faults)
	if err != nil {
		return err
	}
	return a.simOne(ctx, p, f)
}

// refuse tells of flags that would do nothing, and of values out of range.
func (f *simFlags) refuse(given func(flag string) bool) error {
	one, rest := "--script runs one plan", []string{"seed", "from", "seeds", "parallel", "faults"}
	switch {
	case f.script != "":
	case given("seeds"):
		one, rest = "--seeds runs many seeds", []string{"seed", "trace", "save"}
	default:
		one, rest = "without --seeds one seed runs", []string{"from", "parallel"}
	}
	for _, flag := range rest {
		if given(flag) {
			return usagef("%s: --%s has nothing to do", one, flag)
		}
	}
	switch {
	case given("seeds") && f.seeds == 0:
		return usagef("--seeds 0 runs nothing: give at least 1")
	case f.from+f.seeds < f.from:
		return usagef("there are no %d seeds from %d on", f.seeds, f.from)
	}
	return nil
}

// plan reads or draws the plan of a single run.
func (f *simFlags) plan(faults []string) (*sim.Plan, error) {
	if f.script == "" {
		return sim.Draw(f.seed, faults)
	}
	file, err := os.Open(f.script)
	if err != nil {
		return nil, fmt.Errorf("the script cannot be read: %w", err)
	}
	defer file.Close()
	p, err := sim.ReadScript(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.script, err)
	}
	return p, nil
}

// simOne runs one plan and tells how it went.
func (a *App) simOne(ctx context.Context, p *sim.Plan, f *simFlags) error {
	o := sim.Options{Events: f.events, Stop: func() bool { return ctx.Err() != nil }}
	if f.trace {
		o.Trace = func(at time.Duration, who, what string) {
			fmt.Fprintf(a.Out, "%12.6f %-6s %s\n", at.Seconds(), who, what)
		}
	}
	began := time.Now()
	r := sim.Run(p, o)
	fmt.Fprintf(a.Out, "seed %d: %d steps, %v simulated in %v, %d records acknowledged with acks=all, digest %016x\n",
		p.Seed, r.Steps, r.Lasted.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), r.Records, r.Digest)
	switch {
	case r.Err == nil:
		return f.keep(p)
	case errors.Is(r.Err, sim.ErrStopped):
		return errors.New("interrupted")
	}
	fmt.Fprintf(a.Out, "FAILED %v\n", r.Err)
	if f.shrink {
		r = sim.Shrink(r, o, 200)
		fmt.Fprintf(a.Out, "\n# the shortest plan found that fails in the same way: %v\n", r.Err)
		r.Plan.WriteScript(a.Out)
	}
	if err := f.keep(r.Plan); err != nil {
		return err
	}
	return fmt.Errorf("seed %d fails: %s", p.Seed, r.Invariant())
}

// keep writes the plan where --save says.
func (f *simFlags) keep(p *sim.Plan) error {
	if f.save == "" {
		return nil
	}
	file, err := os.Create(f.save)
	if err != nil {
		return fmt.Errorf("the plan cannot be saved: %w", err)
	}
	defer file.Close()
	return p.WriteScript(file)
}

// sweepSeeds runs many seeds in worker processes.
func (a *App) sweepSeeds(ctx context.Context, f *simFlags, faults []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the binary does not find itself to run workers: %w", err)
	}
	workers := 1
	if f.parallel {
		workers = runtime.NumCPU()
	}
	command := func(ctx context.Context, from, to uint64) *exec.Cmd {
		args := []string{"sim", "--worker", "--from", strconv.FormatUint(from, 10), "--seeds", strconv.FormatUint(to-from, 10),
			"--events", strconv.FormatUint(f.events, 10)}
		if f.faults != nil {
			args = append(args, "--faults", strings.Join(f.faults, ","))
		}
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Stderr = a.Err
		return cmd
	}
	t := sim.NewTally(f.seeds)
	err = sim.Sweep(ctx, f.from, f.from+f.seeds, workers, command, func(l sim.Line) bool {
		t.Add(l)
		if l.Error != "" {
			fmt.Fprintf(a.Out, "seed %d FAILED %s\n", l.Seed, l.Error)
		}
		t.Progress(a.Err, isTerminal(a.Err))
		return ctx.Err() == nil
	})
	t.Write(a.Out)
	switch {
	case err != nil:
		return err
	case t.Failed() > 0:
		return fmt.Errorf("%d of %d seeds fail: run one with --seed N --trace to see why", t.Failed(), t.Seeds())
	case t.Seeds() < f.seeds:
		return fmt.Errorf("interrupted after %d of %d seeds", t.Seeds(), f.seeds)
	}
	return nil
}
