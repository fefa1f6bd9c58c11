package coretest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// New returns a world without a partition.
func New() *World { return &World{} }

// T is the part of testing.T that Handle needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Handle runs one directive of a script, checks every invariant and returns what
// changed.
func (w *World) Handle(t T, d *datadriven.TestData) string {
	t.Helper()
	if err := w.Do(d.Cmd, d.CmdArgs, d.Input); err != nil {
		t.Fatalf("%s: %s: %v", d.Pos, d.Cmd, err)
	}
	for _, f := range w.failures {
		t.Errorf("%s: %s", d.Pos, f)
	}
	w.failures = nil
	out := w.out.String()
	w.out.Reset()
	return out
}

// Run runs one command line, such as "fetch 2 max=1". It is an error if the line
// makes no sense; Failures tells what broke.
func (w *World) Run(line string) error {
	fields := strings.Fields(line)
	args := make([]datadriven.CmdArg, 0, len(fields))
	for _, f := range fields[1:] {
		key, value, found := strings.Cut(f, "=")
		arg := datadriven.CmdArg{Key: key}
		if found {
			arg.Vals = strings.Split(strings.Trim(value, "()"), ",")
		}
		args = append(args, arg)
	}
	return w.Do(fields[0], args, "")
}

// Failures are the invariants broken so far.
func (w *World) Failures() []string { return w.failures }

// Output is what the commands so far said.
func (w *World) Output() string { return w.out.String() }

// commands are the words of a script.
var commands = map[string]func(*World, *args) error{
	"partition": (*World).cmdPartition,
	"produce":   (*World).cmdProduce,
	"wake":      (*World).cmdWake,
	"marker":    (*World).cmdMarker,
	"fetch":     (*World).cmdFetch,
	"probe":     (*World).cmdProbe,
	"asks":      (*World).cmdAsks,
	"deliver":   (*World).cmdDeliver,
	"drop":      (*World).cmdDrop,
	"consume":   (*World).cmdConsume,
	"list":      (*World).cmdList,
	"epoch-end": (*World).cmdEpochEnd,
	"delete":    (*World).cmdDelete,
	"retain":    (*World).cmdRetain,
	"roll":      (*World).cmdRoll,
	"tick":      (*World).cmdTick,
	"disk":      (*World).cmdDisk,
	"confirm":   (*World).cmdConfirm,
	"answer":    (*World).cmdAnswer,
	"hear":      (*World).cmdHear,
	"elect":     (*World).cmdElect,
	"assign":    (*World).cmdAssign,
	"configure": (*World).cmdConfigure,
	"fence":     (*World).cmdFence,
	"unfence":   (*World).cmdUnfence,
	"shutdown":  (*World).cmdShutdown,
	"crash":     (*World).cmdCrash,
	"restart":   (*World).cmdRestart,
	"state":     (*World).cmdState,
	"why":       (*World).cmdWhy,
	"clocks":    (*World).cmdClocks,
	"log":       (*World).cmdLog,
	"epochs":    (*World).cmdEpochs,
	"heal":      (*World).cmdHeal,
}

// Do runs one command and every checker.
func (w *World) Do(cmd string, list []datadriven.CmdArg, input string) error {
	run := commands[cmd]
	if run == nil {
		return fmt.Errorf("unknown command")
	}
	a := args{list: list, input: input}
	err := run(w, &a)
	if err == nil {
		err = a.err
	}
	if err != nil {
		return err
	}
	w.settle()
	w.check()
	return nil
}

// args reads the arguments of a command; the first that is wrong is kept.
type args struct {
	list  []datadriven.CmdArg
	input string
	err   error
}

func (a *args) vals(key string) ([]string, bool) {
	for _, arg := range a.list {
		if arg.Key == key && arg.Vals != nil {
			return arg.Vals, true
		}
	}
	return nil, false
}

func (a *args) text(key, def string) string {
	if v, ok := a.vals(key); ok && len(v) == 1 {
		return v[0]
	}
	return def
}

func (a *args) num(key string, def int64) int64 {
	v, ok := a.vals(key)
	if !ok || len(v) != 1 {
		return def
	}
	return a.parse(v[0])
}

func (a *args) parse(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		a.err = errors.Join(a.err, err)
	}
	return n
}

func (a *args) offset(key string, def model.Offset) model.Offset {
	return model.Offset(a.num(key, int64(def)))
}

func (a *args) duration(key string, def time.Duration) time.Duration {
	v, ok := a.vals(key)
	if !ok || len(v) != 1 {
		return def
	}
	d, err := time.ParseDuration(v[0])
	a.err = errors.Join(a.err, err)
	return d
}

// ids reads a list of broker ids; nil when the key is absent.
func (a *args) ids(key string) []model.BrokerID {
	v, ok := a.vals(key)
	if !ok {
		return nil
	}
	out := make([]model.BrokerID, 0, len(v))
	for _, s := range v {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, model.BrokerID(a.parse(s)))
		}
	}
	return out
}

// flag reports whether the bare word is there.
func (a *args) flag(word string) bool {
	return slices.ContainsFunc(a.list, func(c datadriven.CmdArg) bool { return c.Key == word && c.Vals == nil })
}

// words are the bare words.
func (a *args) words() []string {
	var out []string
	for _, c := range a.list {
		if c.Vals == nil {
			out = append(out, c.Key)
		}
	}
	return out
}

// broker is the one that the first bare word names.
func (w *World) named(a *args) (*broker, error) {
	words := a.words()
	if len(words) == 0 {
		return nil, fmt.Errorf("which broker?")
	}
	b := w.broker(model.BrokerID(a.parse(words[0])))
	if b == nil {
		return nil, fmt.Errorf("no broker %s", words[0])
	}
	return b, a.err
}

// running is the named broker, which must host a replica and run.
func (w *World) running(a *args) (*broker, error) {
	b, err := w.named(a)
	if err == nil && !b.live() {
		err = fmt.Errorf("b%d does not run", b.id)
	}
	return b, err
}

// presumed is the broker of key to, else the controller's leader.
func (w *World) presumed(a *args, key string) (*broker, error) {
	b := w.broker(model.BrokerID(a.num(key, int64(w.ctl.Leader))))
	if b == nil || !b.live() {
		return nil, fmt.Errorf("no such broker runs")
	}
	return b, nil
}

func hwMode(a *args) partition.HWMode {
	if a.text("hw", "seed") == "kafka" {
		return partition.Kafka
	}
	return partition.Seed
}
