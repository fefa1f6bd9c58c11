// Command scenarios measures Tidemark beside Apache Kafka: the same loads by the
// same client, in alternating pairs of runs on fresh clusters.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-log/tidemark/bench/ballast"
	"github.com/tidemark-log/tidemark/bench/history"
	leastbroker "github.com/tidemark-log/tidemark/bench/least"
	"github.com/tidemark-log/tidemark/bench/rig"
)

const (
	tidemark = history.Tidemark
	kafka    = history.Kafka
	least    = history.Least
)

type figures = history.Figures

type settings struct {
	starter    rig.Starter
	disk       string // where scenarios keep their data that need a disk
	binary     string
	rdkafka    string // librdkafka's rdkafka_performance
	only       string
	names      string
	history    string
	pairs      int
	megs       int
	idle       int
	kills      int
	recoveryMB int
	catchUpMB  int
	ballastMB  int
	warm       time.Duration
	duration   time.Duration
	kafkaPeak  float64
	set        []string // for our brokers
	with       string   // flags for the history
	details    bool
	limits     limits // of the machine, measured first
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}

func main() {
	do := command
	if len(os.Args) > 1 && os.Args[1] == least {
		do = func() error { return leastbroker.Command(os.Args[:2], os.Args[2:]) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "scenarios:", err)
		os.Exit(1)
	}
}

// command does what the flags say.
func command() error {
	var s settings
	command := flag.String("kafka", os.Getenv("KAFKA"), "command that starts clusters: COMMAND start|stop|pids|kill|restart|tool (default $KAFKA)")
	names := flag.Bool("list", false, "list the scenarios")
	flag.StringVar(&s.names, "run", ".", "scenarios whose names match this expression")
	flag.StringVar(&s.binary, "binary", "./bin/tidemark", "the tidemark binary")
	flag.StringVar(&s.starter.Dir, "dir", "/dev/shm", "where both systems keep their data")
	flag.StringVar(&s.disk, "disk", "/var/tmp", "the same for scenarios that need a disk")
	flag.IntVar(&s.starter.Port, "port", 29092, "the first port of the clusters")
	flag.IntVar(&s.pairs, "pairs", 5, "alternating pairs of runs")
	flag.IntVar(&s.megs, "mb", 1000, "megabytes of a run at full speed; a fifth of it for small records")
	flag.DurationVar(&s.duration, "seconds", 20*time.Second, "how long a run at a fixed rate, or idle, is measured")
	flag.IntVar(&s.idle, "idle-partitions", 1000, "partitions that idle")
	flag.IntVar(&s.kills, "kills", 4, "leaders that are killed in a run of failover, every second one the active controller too")
	flag.IntVar(&s.recoveryMB, "recovery-mb", 2000, "megabytes that each node holds in recovery")
	flag.IntVar(&s.catchUpMB, "catch-up-mb", 2000, "megabytes that each node holds in catch-up-cold")
	flag.DurationVar(&s.warm, "warm", 20*time.Second, "how long a cluster gets small records before it is measured")
	flag.IntVar(&s.ballastMB, "ballast-mb", 0, "megabytes of memory that are touched first and kept with a virtual machine, of which 1 in 128 are in use")
	flag.StringVar(&s.rdkafka, "rdkafka", "rdkafka_performance", "librdkafka's program of that name; its scenarios are skipped without it")
	flag.Float64Var(&s.kafkaPeak, "kafka-peak", 0, "records a second that Apache Kafka takes at its peak; 0: measured when it is needed")
	flag.BoolVar(&s.details, "details", false, "print every figure, not those of the first look")
	flag.StringVar(&s.only, "only", "", "tidemark, kafka or least: run one system alone")
	flag.StringVar(&s.history, "history", "bench/history.jsonl", `where results are appended; "": nowhere`)
	flag.Var((*list)(&s.set), "set", "KEY=VALUE for the brokers of Tidemark; may be repeated")
	flag.Parse()
	if *names {
		for _, sc := range scenarios {
			fmt.Printf("%-28s %s\n", sc.name, sc.about)
		}
		return nil
	}
	if err := s.check(flag.Args()...); err != nil {
		return err
	}
	s.with = given(flag.CommandLine)
	s.starter.Command = strings.Fields(*command)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, s)
}

// telling are the flags that change what a scenario measures, those aside that have
// their own place in the history.
var telling = []string{"set", "warm", "only", "kills", "idle-partitions", "recovery-mb", "catch-up-mb", "kafka-peak", "dir", "disk", "ballast-mb"}

// given lists the telling flags that were set, for the history.
func given(flags *flag.FlagSet) string {
	var out []string
	flags.Visit(func(f *flag.Flag) {
		if slices.Contains(telling, f.Name) {
			out = append(out, "-"+f.Name+" "+f.Value.String())
		}
	})
	return strings.Join(out, " ")
}

// check refuses numbers that mean nothing, and words that are no flags.
func (s *settings) check(words ...string) error {
	switch {
	case len(words) > 0:
		return fmt.Errorf("%q is no flag: name scenarios with -run", words[0])
	case s.pairs < 1 || s.megs < 1 || s.kills < 1 || s.recoveryMB < 1 || s.catchUpMB < 1:
		return errors.New("give 1 or more for -pairs, -mb, -kills, -recovery-mb and -catch-up-mb")
	case s.starter.Port < 1 || s.starter.Port > 65_000:
		return fmt.Errorf("give 1 to 65000 for -port, not %d: the nodes take the ports after it too", s.starter.Port)
	}
	return nil
}

// run measures all that was asked for and what the machine can do.
func run(ctx context.Context, s settings) error {
	chosen, err := choose(s)
	if err != nil {
		return err
	}
	if s.binary, err = filepath.Abs(s.binary); err != nil {
		return err
	}
	if _, err := os.Stat(s.binary); err != nil {
		return fmt.Errorf("%w; build it with make build", err)
	}
	if err := s.remember(outcome{}, history.Machine{}, ""); err != nil { // not after an hour
		return fmt.Errorf("%w: name a file that can be written with -history", err)
	}
	held, err := ballast.Take(s.ballastMB)
	if err != nil {
		return fmt.Errorf("take %d MB of ballast: %w", s.ballastMB, err)
	}
	defer held.Drop()
	here, id := thisMachine(), commit(cmp.Or(s.history, "nowhere"))
	if s.limits, err = s.measureLimits(); err != nil {
		return err
	}
	outcomes, failed, err := s.measureAll(ctx, chosen, here, id)
	if err != nil {
		return err
	}
	if err := printTable(os.Stdout, outcomes, s.limits, s.details); err != nil {
		return err
	}
	ceilings := outcome{"ceilings", map[string][]figures{"machine": {s.limits.figures()}}}
	if err := s.remember(ceilings, here, id); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d scenarios failed", failed, len(chosen))
	}
	return nil
}

// measureAll measures scenario by scenario. One that fails does not end the
// others; it counts them.
func (s *settings) measureAll(ctx context.Context, chosen []scenario, here history.Machine, id string) (outcomes []outcome, failed int, err error) {
	for _, sc := range chosen {
		if ctx.Err() != nil {
			return outcomes, failed, nil
		}
		if why := s.lacks(sc); why != nil {
			fmt.Fprintf(os.Stderr, "%s is skipped: %v\n", sc.name, why)
			continue
		}
		o, err := s.measure(ctx, sc)
		if err != nil {
			failed++
			fmt.Fprintln(os.Stderr, "scenarios:", err)
		}
		outcomes = append(outcomes, o)
		if err := s.remember(o, here, id); err != nil {
			return outcomes, failed, err
		}
	}
	return outcomes, failed, nil
}

// lacks tells why a scenario cannot run here.
func (s *settings) lacks(sc scenario) error {
	if sc.needs&rdkafka == 0 {
		return nil
	}
	_, err := exec.LookPath(s.rdkafka)
	return err
}

func choose(s settings) ([]scenario, error) {
	pattern, err := regexp.Compile(s.names)
	if err != nil {
		return nil, err
	}
	switch {
	case len(s.starter.Command) == 0:
		return nil, errors.New("name the command that starts clusters with -kafka or $KAFKA")
	case s.only != "" && s.only != tidemark && s.only != kafka && s.only != least:
		return nil, fmt.Errorf("-only is %s, %s or %s, not %q", tidemark, kafka, least, s.only)
	}
	var out []scenario
	for _, sc := range scenarios {
		if pattern.MatchString(sc.name) {
			out = append(out, sc)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no scenario matches %q; -list lists them", s.names)
	}
	if s.only == least {
		return leastOf(out)
	}
	return out, nil
}

// leastOf leaves what the least broker can do, and says what it leaves out.
func leastOf(all []scenario) ([]scenario, error) {
	var can []scenario
	var not []string
	for _, sc := range all {
		if sc.needs&leastToo != 0 {
			can = append(can, sc)
		} else {
			not = append(not, sc.name)
		}
	}
	switch {
	case len(can) == 0:
		return nil, fmt.Errorf("the least broker can do none of %s", strings.Join(not, ", "))
	case len(not) > 0:
		fmt.Fprintf(os.Stderr, "skipped, as the least broker cannot do them: %s\n", strings.Join(not, ", "))
	}
	return can, nil
}

// order returns who runs first in a pair: they take turns. The least broker runs with
// them where it can.
func order(pair int, only string, can bool) []string {
	all := []string{kafka, tidemark}
	if can {
		all = append(all, least)
	}
	if pair%2 == 1 {
		slices.Reverse(all)
	}
	return slices.DeleteFunc(all, func(system string) bool { return only != "" && system != only })
}

// measure runs all pairs of a scenario.
func (s *settings) measure(ctx context.Context, sc scenario) (outcome, error) {
	o := outcome{sc.name, map[string][]figures{}}
	if sc.needs&kafkaPeak != 0 && s.kafkaPeak == 0 {
		at := slices.IndexFunc(scenarios, func(sc scenario) bool { return sc.name == peakOf })
		f, err := s.once(ctx, scenarios[at], kafka)
		if err != nil {
			return o, fmt.Errorf("find the peak of Apache Kafka: %w", err)
		}
		s.kafkaPeak = f["records_per_second"]
	}
	for pair := range s.pairs {
		floor, err := s.floor(sc.name)
		if err != nil {
			return o, err
		}
		for _, system := range order(pair, s.only, sc.needs&leastToo != 0) {
			f, err := s.once(ctx, sc, system)
			if err != nil {
				return o, fmt.Errorf("%s on %s, pair %d: %w", sc.name, system, pair+1, err)
			}
			beside(floor, f)
			o.runs[system] = append(o.runs[system], f)
			fmt.Fprintf(os.Stderr, "%s %d/%d %s:%s\n", sc.name, pair+1, s.pairs, system, brief(f))
		}
		o.besideLeast(pair)
	}
	return o, nil
}

// once runs a scenario on a fresh cluster of one system.
func (s *settings) once(ctx context.Context, sc scenario, system string) (f figures, err error) {
	binary, set := "", []string(nil)
	starter := s.starter
	switch system {
	case tidemark:
		binary, set = s.binary, s.set
	case least:
		starter.Command = []string{os.Args[0], least}
	}
	if sc.needs&disk != 0 {
		starter.Dir = s.disk
	}
	cluster, err := starter.Start(binary, sc.nodes, set...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stop := cluster.Stop(); err == nil {
			err = stop
		}
	}()
	return sc.run(ctx, &bed{Rig: cluster, s: *s, peak: s.kafkaPeak})
}

// brief tells what a run measured in the order of the table.
func brief(f figures) string {
	out := ""
	for _, m := range rows(f, nil) {
		if v, ok := f[m.Name]; ok {
			out += " " + m.Name + "=" + round(v)
		}
	}
	return out
}

// remember appends an outcome to the history.
func (s *settings) remember(o outcome, here history.Machine, commit string) error {
	if s.history == "" {
		return nil
	}
	var entries []history.Entry
	for _, system := range []string{tidemark, kafka, least, "machine"} {
		if runs := o.runs[system]; len(runs) > 0 {
			entries = append(entries, history.Entry{
				Date: time.Now().UTC().Truncate(time.Second), Commit: commit, Scenario: o.scenario, System: system, MB: s.megs,
				Seconds: s.duration.Seconds(), With: s.with, Figures: history.Medians(runs), Runs: runs, Machine: here,
			})
		}
	}
	return history.Append(s.history, entries)
}
