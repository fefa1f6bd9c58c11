package mutants

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	run   = flag.Bool("mutants", false, "build and test every mutant; an hour")
	cores = flag.Bool("cores", true, "run the tests of the mutants' own rooms")
	seeds = flag.Uint64("seeds", 20_000, "simulate so many seeds at most to find a mutant; 0 is none")
)

// root is the module.
const root = "../../.."

// edit replaces old, which must be in the file exactly once.
type edit struct{ file, old, new string }

// mutant is the shipped code without one rule.
type mutant struct {
	rule, name string
	edits      []edit
	// kills are the packages whose tests must notice, and flags for them; nil when
	// it is left to the simulator.
	kills []string
}

// tables are all mutants. A room adds a table of its own here.
var tables = [][]mutant{replication, worldController, deciding, around}

// all are the mutants of all tables.
func all() []mutant { return slices.Concat(tables...) }

// key names the mutant in the documentation.
func (m mutant) key() string { return m.rule + " " + m.name }

// simulated says that the mutant is of code that the simulator runs.
func (m mutant) simulated() bool { return !strings.Contains(m.edits[0].file, "coretest") }

func TestEveryPatchFitsTheSource(t *testing.T) {
	if _, err := readSources(); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, m := range all() {
		if seen[m.key()] {
			t.Errorf("%s: there are two of this name", m.key())
		}
		seen[m.key()] = true
	}
}

func TestWhatIsSaidOfMutantsIsOfMutants(t *testing.T) {
	known := map[string]bool{}
	for _, m := range all() {
		known[m.key()] = true
	}
	for key := range aims {
		if !known[key] {
			t.Errorf("there is no mutant %q", key)
		}
	}
	for _, b := range bugs {
		for _, key := range b.mutants {
			if !known[key] {
				t.Errorf("%s: there is no mutant %q", b.id, key)
			}
			if whole := halves[key]; whole != "" && !slices.Contains(b.mutants, whole) {
				t.Errorf("%s: %s is the half of a mutant that is missing", b.id, key)
			}
		}
		if len(b.mutants) == 0 && b.why == "" {
			t.Errorf("%s has neither a mutant nor a reason", b.id)
		}
	}
}

func TestEveryRuleIsMissedWhenItIsRemoved(t *testing.T) {
	if !*run {
		t.Skip("simulates every mutant: go test ./internal/sim/mutants -mutants -v -timeout 0")
	}
	r, err := readReport()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkshop(t)
	for i, m := range all() {
		t.Run(m.key(), func(t *testing.T) {
			l := r.line(m)
			if *cores && m.kills != nil {
				l.cores = w.mustDie(t, i+1, m)
			}
			if *seeds > 0 && m.simulated() && halves[m.key()] == "" {
				w.mustBeFound(t, i+1, m, l)
			}
			if err := r.write(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// files is the patched text of each file that the mutant touches.
func (m mutant) files() (map[string]string, error) {
	out := map[string]string{}
	for _, e := range m.edits {
		path := filepath.Join(root, e.file)
		text, ok := out[path]
		if !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s has %d times:\n%s", e.file, n, e.old)
		}
		out[path] = strings.Replace(text, e.old, e.new, 1)
	}
	return out, nil
}

var witness = regexp.MustCompile(`--- FAIL: TestScripts/\w+|seed \d+: \w+`)

// witnesses are who noticed: how many scripts, and which seed of a random walk.
func witnesses(out string) string {
	scripts, walk := 0, ""
	for _, f := range witness.FindAllString(out, -1) {
		if seed, ok := strings.CutPrefix(f, "seed "); ok {
			walk = "walk " + seed
		} else {
			scripts++
		}
	}
	var by []string
	switch scripts {
	case 0:
	case 1:
		by = append(by, "1 script")
	default:
		by = append(by, fmt.Sprintf("%d scripts", scripts))
	}
	if walk != "" {
		by = append(by, walk)
	}
	if len(by) == 0 {
		return "a test"
	}
	return strings.Join(by, ", ")
}
