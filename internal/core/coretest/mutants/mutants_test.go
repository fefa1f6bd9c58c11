package mutants

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var run = flag.Bool("mutants", false, "build and test every mutant; minutes")

// root is the module.
const root = "../../../.."

// edit replaces old, which must be in the file exactly once.
type edit struct{ file, old, new string }

// mutant is a core without one rule.
type mutant struct {
	rule, name string
	edits      []edit
	// kills are the packages whose tests must notice, and flags for them.
	kills []string
}

// tables are all mutants. A room adds a table of its own here.
var tables = [][]mutant{replication, worldController, deciding}

func TestEveryPatchFitsTheSource(t *testing.T) {
	for _, table := range tables {
		for _, m := range table {
			if _, err := m.files(); err != nil {
				t.Errorf("%s %s: %v", m.rule, m.name, err)
			}
		}
	}
}

func TestEveryRuleIsMissedWhenItIsRemoved(t *testing.T) {
	if !*run {
		t.Skip("builds every mutant: go test ./internal/core/coretest/mutants -mutants")
	}
	for _, table := range tables {
		for _, m := range table {
			t.Run(m.rule+" "+m.name, func(t *testing.T) { m.mustDie(t) })
		}
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

// mustDie tests the patched core and fails if its tests do not.
func (m mutant) mustDie(t *testing.T) {
	files, err := m.files()
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for path, text := range files {
		real, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		patched := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(patched, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[real] = patched
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append([]string{"test", "-vet=off", "-overlay", list}, m.kills...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err == nil:
		t.Errorf("survives: no test misses the rule")
	case !strings.Contains(text, "--- FAIL") && !strings.Contains(text, "panic:"):
		t.Errorf("does not build:\n%s", text)
	default:
		t.Log(witnesses(text))
	}
}

var witness = regexp.MustCompile(`--- FAIL: TestScripts/\w+|seed \d+: .*`)

// witnesses are the scripts and the seed that noticed.
func witnesses(out string) string {
	found := witness.FindAllString(out, -1)
	for i, f := range found {
		found[i] = strings.TrimPrefix(f, "--- FAIL: TestScripts/")
	}
	if len(found) == 0 {
		return "killed by another test"
	}
	return strings.Join(found, ", ")
}
