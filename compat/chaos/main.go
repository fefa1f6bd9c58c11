// Command chaos hurts a cluster of real processes and checks what its clients saw.
//
// The processes run in network namespaces that chaos makes for itself. While
// producers and consumers work, two sequences of faults that a seed decides hit
// the processes and the network, and an administrator moves leaders and
// replicas. Then everything is healed, every log is read whole, and the history
// of all clients is judged.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
	"github.com/tidemark-log/tidemark/compat/chaos/lab"
)

type settings struct {
	binary    string
	toxiproxy string
	dir       string
	kept      bool // the directory was named by the user
	seed      uint64
	duration  time.Duration
	layout    string
	rate      int
	only      string
	defaults  bool
	started   time.Time
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "./bin/tidemark", "the tidemark binary")
	flag.StringVar(&s.toxiproxy, "toxiproxy", "./bin/tools/server", "toxiproxy's server")
	flag.StringVar(&s.dir, "dir", "", "state of the nodes; default a throwaway directory, which stays after a failure")
	flag.Uint64Var(&s.seed, "seed", 0, "decides the faults; 0 takes one from the clock")
	flag.DurationVar(&s.duration, "duration", 15*time.Minute, "how long faults are injected")
	flag.StringVar(&s.layout, "layout", "", "combined (3 nodes of both roles, 1 broker) or apart (3 controllers, 3 brokers); default by the seed")
	flag.IntVar(&s.rate, "rate", 3000, "records a second of all producers together")
	flag.StringVar(&s.only, "only", "", "inject only faults of these kinds, comma between them")
	flag.BoolVar(&s.defaults, "kafka-timeouts", false, "Kafka's default heartbeat and session timeouts instead of dev's")
	flag.Parse()
	status, inside, err := lab.Inside()
	if err == nil && inside {
		err = s.complete()
	}
	if err == nil && inside {
		status = s.play()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	os.Exit(status)
}

// complete decides what was left open.
func (s *settings) complete() error {
	s.started = time.Now()
	if s.seed == 0 {
		s.seed = uint64(s.started.UnixNano()) % 1_000_000
	}
	if s.layout == "" {
		s.layout = []string{"combined", "apart"}[s.seed%2]
	}
	if s.layout != "combined" && s.layout != "apart" {
		return fmt.Errorf("layout %q: choose combined or apart", s.layout)
	}
	for _, p := range []*string{&s.binary, &s.toxiproxy} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		if _, err := os.Stat(abs); err != nil {
			return fmt.Errorf("a program is missing: %w: run make chaos", err)
		}
		*p = abs
	}
	if s.kept = s.dir != ""; !s.kept {
		dir, err := os.MkdirTemp("", "chaos-")
		s.dir = dir
		return err
	}
	return os.MkdirAll(s.dir, 0o755)
}

// play makes a run and prints the verdict; the result is an exit status.
func (s *settings) play() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("chaos: SEED=%d, %s, %v of faults, %d records/s; state in %s\n", s.seed, s.layout, s.duration, s.rate, s.dir)
	h := history.New(s.started)
	r := &round{settings: s, h: h}
	err := r.run(ctx)
	passed := r.report(err)
	if passed {
		if err := r.discard(); err != nil {
			fmt.Println("chaos: something stays behind:", err)
		}
		return 0
	}
	if r.c != nil {
		r.c.rescue()
	}
	fmt.Printf("chaos: the logs and data of the nodes stay in %s; again with: make chaos SEED=%d DURATION=%v\n", s.dir, s.seed, s.duration)
	return 1
}

// discard removes the state of the nodes, unless the user named its place.
func (r *round) discard() error {
	if r.kept {
		return nil
	}
	return errors.Join(lab.Eject(r.c.small.data), os.RemoveAll(r.dir))
}
