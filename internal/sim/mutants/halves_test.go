package mutants

import (
	"slices"
	"strings"
	"testing"
)

// TestAHalfIsPartOfItsWhole holds the list of halves against the mutants: the whole
// is left to the simulator, the half to its own room.
func TestAHalfIsPartOfItsWhole(t *testing.T) {
	mutants := map[string]mutant{}
	for _, m := range all() {
		mutants[m.key()] = m
	}
	for half, whole := range halves {
		h, ok := mutants[half]
		w, ok2 := mutants[whole]
		switch {
		case !ok || !ok2:
			t.Errorf("%q, half of %q: there is no such mutant", half, whole)
		case halves[whole] != "":
			t.Errorf("%s: its whole %s is a half itself", half, whole)
		case !w.simulated():
			t.Errorf("%s: the simulator is not to see its whole %s", half, whole)
		case aims[half] != "":
			t.Errorf("%s is a half, so it needs no seeds", half)
		case h.kills == nil:
			t.Errorf("%s: a half must have a room that notices it", half)
		case !w.contains(h):
			t.Errorf("%s is not part of %s", half, whole)
		}
	}
}

func TestWhatIsPartOfAWhole(t *testing.T) {
	whole := mutant{edits: []edit{{"a.go", "x || y", "x"}, {"b.go", "z", ""}}}
	for _, c := range []struct {
		half edit
		is   bool
	}{
		{edit{"a.go", "x || y", "y"}, true},
		{edit{"a.go", "y", "false"}, true},
		{edit{"a.go", "z", ""}, false},
		{edit{"b.go", "z || w", "w"}, false},
	} {
		if whole.contains(mutant{edits: []edit{c.half}}) != c.is {
			t.Errorf("%v: should be %v", c.half, c.is)
		}
	}
	if two := (mutant{edits: []edit{{"b.go", "z", ""}, {"c.go", "z", ""}}}); whole.contains(two) {
		t.Error("half of it is not enough")
	}
}

// contains says that m changes every place that half does. What is replaced stands
// in its file once, so a text within another is a place within another.
func (m mutant) contains(half mutant) bool {
	for _, h := range half.edits {
		if !slices.ContainsFunc(m.edits, func(e edit) bool { return e.file == h.file && strings.Contains(e.old, h.old) }) {
			return false
		}
	}
	return true
}
