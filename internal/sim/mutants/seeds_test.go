package mutants

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/sim"
)

// build compiles the program, with a mutant's overlay if it is not empty.
func build(t *testing.T, overlay string) string {
	binary := filepath.Join(t.TempDir(), "tidemark")
	args := []string{"build", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./cmd/tidemark")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("does not build:\n%s", out)
	}
	return binary
}

// patience is how long a seed may take; one that hangs has failed.
const patience = 90 * time.Second

// simulate runs seeds in one worker process and has each line seen, until see
// says false. A worker that dies or hangs reports the seed that it was at.
func simulate(binary string, from, to uint64, see func(sim.Line) bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "sim", "--worker", "--from", strconv.FormatUint(from, 10), "--seeds", strconv.FormatUint(to-from, 10))
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	next, more := from, true
	hangs := time.AfterFunc(patience, cancel)
	lines := bufio.NewReader(out)
	for more {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var l sim.Line
		if json.Unmarshal(text, &l) != nil {
			continue
		}
		hangs.Stop()
		next, more = l.Seed+1, see(l)
		hangs.Reset(patience)
	}
	hung := !hangs.Stop() && more
	cancel()
	io.Copy(io.Discard, out)
	cmd.Wait()
	if !more || next >= to {
		return nil
	}
	how := "the process dies"
	if hung {
		how = "the process hangs"
	}
	if see(sim.Line{Seed: next, Invariant: "Alive", Error: how}) {
		return simulate(binary, next+1, to, see)
	}
	return nil
}

// shipped is the program as it is, which must survive what kills a mutant.
type shipped struct {
	binary string
	seen   map[uint64]string // the invariant that broke; empty when all was well
}

func newShipped(t *testing.T) *shipped {
	return &shipped{binary: build(t, ""), seen: map[uint64]string{}}
}

// broke is what broke in the shipped program with a seed.
func (s *shipped) broke(t *testing.T, seed uint64) string {
	was, ok := s.seen[seed]
	if ok {
		return was
	}
	err := simulate(s.binary, seed, seed+1, func(l sim.Line) bool {
		s.seen[seed] = l.Invariant
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.seen[seed]
}

// mustBeFound simulates seeds of the patched program until one breaks that the
// shipped one survives, and fails if none does.
func (m mutant) mustBeFound(t *testing.T, base *shipped, l *line) {
	began := time.Now()
	binary := build(t, m.overlay(t))
	built := time.Now()
	var found *sim.Line
	ran := uint64(0)
	err := simulate(binary, 1, 1+m.seeds(), func(s sim.Line) bool {
		ran++
		if ran%2500 == 0 {
			t.Logf("%d seeds, %v", ran, time.Since(built).Round(time.Second))
		}
		if s.Invariant == "" || base.broke(t, s.Seed) != "" {
			return true
		}
		found = &s
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(built)
	l.seconds = strconv.FormatFloat(took.Seconds(), 'f', 1, 64)
	if found != nil {
		l.seeds, l.invariant = strconv.FormatUint(found.Seed, 10), found.Invariant
		t.Logf("seed %d: %.200s; %v, built in %v", found.Seed, found.Error, took.Round(time.Millisecond), built.Sub(began).Round(time.Second))
		return
	}
	l.seeds, l.invariant = fmt.Sprintf("> %d", ran), ""
	if unseen[m.key()] == "" {
		t.Errorf("survives %d seeds, %v", ran, took.Round(time.Second))
		return
	}
	t.Logf("survives %d seeds, %v: %s", ran, took.Round(time.Second), unseen[m.key()])
}

// seeds is how many seeds may be needed: few for what the simulator is said not
// to see.
func (m mutant) seeds() uint64 {
	if unseen[m.key()] != "" {
		return min(*seeds, unseenSeeds)
	}
	return *seeds
}

// unseenSeeds is how many seeds are spent on a mutant that none is known to find.
const unseenSeeds = 200
