package mutants

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/sim"
)

// workshop has the patched programs: one for each mutant, all in one file.
type workshop struct {
	shipped, patched string            // programs
	tests            map[string]string // the patched tests of packages
	list             string            // of the patched files
	broke            map[plan]string   // what broke in the shipped program; empty when all was well
}

// plan names a plan: a seed, and the family of faults that it draws from.
type plan struct {
	aim  string
	seed uint64
}

func newWorkshop(t *testing.T) *workshop {
	began := time.Now()
	w := &workshop{list: overlay(t), tests: map[string]string{}, broke: map[plan]string{}}
	dir := t.TempDir()
	w.shipped, w.patched = filepath.Join(dir, "shipped"), filepath.Join(dir, "patched")
	if *seeds > 0 {
		goCommand(t, "build", "-o", w.shipped, "./cmd/tidemark")
		goCommand(t, "build", "-overlay", w.list, "-o", w.patched, "./cmd/tidemark")
	}
	for _, m := range all() {
		for _, k := range m.kills {
			if *cores && strings.HasPrefix(k, "./") && w.tests[k] == "" {
				w.tests[k] = filepath.Join(dir, strconv.Itoa(len(w.tests))+".test")
				goCommand(t, "test", "-c", "-vet=off", "-overlay", w.list, "-o", w.tests[k], k)
			}
		}
	}
	t.Logf("built in %v", time.Since(began).Round(time.Second))
	return w
}

func goCommand(t *testing.T, args ...string) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s:\n%s", strings.Join(args, " "), out)
	}
}

// as is the environment of a patched program that is the numbered mutant.
func as(number int) []string { return append(os.Environ(), chosen+"="+strconv.Itoa(number)) }

// mustDie tests the mutant's room and fails if its tests do not. It returns who
// noticed.
func (w *workshop) mustDie(t *testing.T, number int, m mutant) string {
	began := time.Now()
	var flags, packages []string
	for _, k := range m.kills {
		if w.tests[k] == "" {
			flags = append(flags, k)
		} else {
			packages = append(packages, k)
		}
	}
	for _, k := range packages {
		cmd := exec.Command(w.tests[k], flags...)
		cmd.Dir, cmd.Env = filepath.Join(root, k), as(number)
		if out, err := cmd.CombinedOutput(); err != nil {
			by := witnesses(string(out))
			t.Logf("%s: %s, %v", k, by, time.Since(began).Round(100*time.Millisecond))
			return by
		}
	}
	t.Errorf("survives: no test of %s misses the rule", packages)
	return "**nobody**"
}

// patience is how long a seed may take; one that hangs has failed.
const patience = 90 * time.Second

// simulate runs seeds in worker processes and has each line seen, until see says
// false. A worker that dies or hangs has failed with the seed that it was at, and
// the next one goes on behind it.
func simulate(binary string, number int, aim string, from, to uint64, see func(sim.Line) bool) error {
	for from < to {
		next, ended, how, err := work(binary, number, aim, from, to, see)
		if err != nil || ended || next >= to {
			return err
		}
		if !see(sim.Line{Seed: next, Invariant: "Alive", Error: how}) {
			return nil
		}
		from = next + 1
	}
	return nil
}

// work runs one worker process. It returns the seed that comes next, whether see
// ended it, and else how it ended itself.
func work(binary string, number int, aim string, from, to uint64, see func(sim.Line) bool) (next uint64, ended bool, how string, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	args := []string{"sim", "--worker", "--from", strconv.FormatUint(from, 10), "--seeds", strconv.FormatUint(to-from, 10)}
	if aim != "" {
		args = append(args, "--faults", aim)
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.WaitDelay, cmd.Env = time.Second, as(number)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return from, false, "", fmt.Errorf("start %s: %w", binary, err)
	}
	how = "the process dies"
	hangs := time.AfterFunc(patience, cancel)
	lines := bufio.NewReader(out)
	for next = from; !ended; {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var l sim.Line
		if json.Unmarshal(text, &l) == nil {
			hangs.Stop()
			next, ended = l.Seed+1, !see(l)
			hangs.Reset(patience)
		}
	}
	if !hangs.Stop() {
		how = "the process hangs"
	}
	cancel()
	io.Copy(io.Discard, out)
	cmd.Wait()
	return next, ended, how, nil
}

// survived says whether the shipped program survives a plan.
func (w *workshop) survived(t *testing.T, p plan) bool {
	if _, ok := w.broke[p]; !ok {
		simulate(w.shipped, 0, p.aim, p.seed, p.seed+1, func(l sim.Line) bool {
			w.broke[p] = l.Invariant
			return false
		})
		if w.broke[p] != "" {
			t.Logf("seed %d %s breaks %s in the shipped program", p.seed, p.aim, w.broke[p])
		}
	}
	return w.broke[p] == ""
}

// mustBeFound simulates seeds of the mutant until one breaks that the shipped
// program survives, and fails if none does.
func (w *workshop) mustBeFound(t *testing.T, number int, m mutant, l *line) {
	began, ran, aim := time.Now(), uint64(0), aims[m.key()]
	var found *sim.Line
	err := simulate(w.patched, number, aim, 1, 1+*seeds, func(s sim.Line) bool {
		ran++
		if ran%1000 == 0 {
			t.Logf("%d seeds, %v", ran, time.Since(began).Round(time.Second))
		}
		if s.Invariant == "" || !w.survived(t, plan{aim, s.Seed}) {
			return true
		}
		found = &s
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	l.aim, l.seconds = aim, strconv.FormatFloat(took.Seconds(), 'f', 1, 64)
	if found != nil {
		l.seeds, l.invariant = strconv.FormatUint(found.Seed, 10), found.Invariant
		t.Logf("seed %d: %.300s; %v", found.Seed, found.Error, took.Round(time.Millisecond))
		return
	}
	l.seeds, l.invariant = fmt.Sprintf("> %d", ran), ""
	t.Errorf("survives %d seeds, %v", ran, took.Round(time.Second))
}
