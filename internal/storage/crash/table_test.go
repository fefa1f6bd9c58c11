package crash

import (
	"flag"
	"testing"
)

var full = flag.Bool("full", false, "go through many more of the disks that a crash may leave")

// scenario is one row of the table: a story and the pages of docs/format that it
// writes the bytes of.
type scenario struct {
	name  string
	pages []string
	story func(t testing.TB) story
}

var logPages = []string{"segment", "indexes", "leader-epoch-checkpoint", "offset-checkpoints", "producer-snapshot", "transaction-index", "identity"}

func logScenario(name string, tell func(v *logStory)) scenario {
	return scenario{name, logPages, func(t testing.TB) story { return newLogStory(t, tell) }}
}

func TestNoCutOfThePowerLosesWhatWasPromised(t *testing.T) {
	r := quick
	if *full {
		r = thorough
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			x := newExplorer(t, s.name, r)
			x.explore(s.story(t))
			t.Logf("%d cuts, %d disks after one, %d after two", x.cuts, x.disks, x.again)
		})
	}
}
