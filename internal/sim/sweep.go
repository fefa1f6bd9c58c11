package sim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// Line is what a worker reports of one seed, as a line of JSON.
type Line struct {
	Seed      uint64       `json:"seed"`
	Steps     uint64       `json:"steps"`
	LastedMs  int64        `json:"lastedMs"` // by the simulated clock
	Records   int          `json:"records"`  // acknowledged
	Faults    map[Verb]int `json:"faults"`
	Clean     bool         `json:"clean"`
	Digest    uint64       `json:"digest"`
	Invariant string       `json:"invariant,omitempty"`
	Error     string       `json:"error,omitempty"`
}

// LineOf is the report of a run.
func LineOf(r *Result) Line {
	l := Line{Seed: r.Plan.Seed, Steps: r.Steps, LastedMs: r.Lasted.Milliseconds(), Records: r.Records, Faults: r.Faults,
		Clean: r.Clean, Digest: r.Digest, Invariant: r.Invariant()}
	if r.Err != nil {
		l.Error = r.Err.Error()
	}
	return l
}

// Seeds runs a range of seeds one after the other, and writes a Line for each.
func Seeds(ctx context.Context, from, to uint64, faults []string, o Options, out io.Writer) error {
	enc := json.NewEncoder(out)
	for seed := from; seed < to && ctx.Err() == nil; seed++ {
		p, err := Draw(seed, faults)
		if err != nil {
			return err
		}
		if err := enc.Encode(LineOf(Run(p, o))); err != nil {
			return fmt.Errorf("report seed %d: %w", seed, err)
		}
	}
	return ctx.Err()
}

// Sweep runs seeds in worker processes: command makes the one that runs the seeds
// from from to to and writes a Line for each on its standard output. see is called
// for every line, by one goroutine at a time; false ends the sweep.
func Sweep(ctx context.Context, from, to uint64, workers int, command func(ctx context.Context, from, to uint64) *exec.Cmd, see func(Line) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sweep{next: from, to: to, command: command, see: see, cancel: cancel}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { s.work(ctx) })
	}
	all.Wait()
	if s.ended {
		return nil
	}
	return s.err
}

// sweepPiece is how many seeds a worker process runs.
const sweepPiece = 25

type sweep struct {
	command func(ctx context.Context, from, to uint64) *exec.Cmd
	cancel  context.CancelFunc

	mu       sync.Mutex
	next, to uint64
	see      func(Line) bool
	ended    bool
	err      error
}

func (s *sweep) piece() (from, to uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from = s.next
	s.next = min(s.to, from+sweepPiece)
	return from, s.next, from < s.next && !s.ended && s.err == nil
}

func (s *sweep) work(ctx context.Context) {
	for {
		from, to, ok := s.piece()
		if !ok {
			return
		}
		if err := s.run(ctx, from, to); err != nil {
			s.mu.Lock()
			s.err = errors.Join(s.err, err)
			s.mu.Unlock()
			s.cancel()
			return
		}
	}
}

func (s *sweep) run(ctx context.Context, from, to uint64) error {
	cmd := s.command(ctx, from, to)
	cmd.WaitDelay = time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("start a worker: %w", err)
	}
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 16<<20)
	seen := from
	for lines.Scan() {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			continue // a word of the runtime
		}
		seen = l.Seed + 1
		s.mu.Lock()
		if !s.ended && !s.see(l) {
			s.ended = true
			s.cancel()
		}
		s.mu.Unlock()
	}
	err = cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.ended && ctx.Err() == nil {
		return fmt.Errorf("the worker died at seed %d: %w", seen, err)
	}
	return nil
}
