package crash

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var full = flag.Bool("full", false, "go through many more of the disks that a crash may leave")

// scenario is one row of the table: a story and the pages of docs/format that it
// writes the bytes of.
type scenario struct {
	name  string
	pages []string
	story func(t testing.TB) story
	cost  cost
}

// cost says how much of a story the quick form can afford.
type cost int

const (
	fair cost = iota
	cheap
	dear
)

// scenarios is the table. The swap of a compaction belongs here as soon as there is
// a cleaner: .cleaned files, their sync, .swap, the segments that they replace, the
// names without .swap. Of that only the start's part exists (finishSwaps).
var scenarios = slices.Concat(logScenarios, smallScenarios, quorumScenarios, []scenario{
	{"raft log", []string{"quorum-wal"}, newWalStory(raftLogTale), cheap},
	{"raft log rolls", []string{"quorum-wal"}, newWalStory(raftLogRollTale), dear},
})

var logPages = []string{"segment", "indexes", "leader-epoch-checkpoint", "offset-checkpoints", "producer-snapshot", "transaction-index", "identity"}

func logScenario(name string, tell func(v *logStory)) scenario {
	return scenario{name: name, pages: logPages, story: func(t testing.TB) story { return newLogStory(t, tell) }}
}

func TestNoCutOfThePowerLosesWhatWasPromised(t *testing.T) {
	cuts, disks, again := 0, 0, 0
	for _, s := range scenarios {
		if s.cost == dear && !*full {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			r := quick
			if *full || s.cost == cheap {
				r = thorough
			}
			x := newExplorer(t, s.name, r)
			x.explore(s.story(t))
			t.Logf("%d cuts, %d disks after one, %d after two", x.cuts, x.disks, x.again)
			cuts, disks, again = cuts+x.cuts, disks+x.disks, again+x.again
		})
	}
	t.Logf("in all: %d cuts, %d disks after one, %d after two", cuts, disks, again)
}

func TestEveryFormatHasAScenario(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/format/*.md")
	must(t, err)
	named := map[string]bool{"README": true}
	for _, s := range scenarios {
		for _, page := range s.pages {
			named[page] = true
		}
	}
	for _, file := range pages {
		page := strings.TrimSuffix(filepath.Base(file), ".md")
		if !named[page] {
			t.Errorf("no scenario writes what %s describes", file)
		}
		delete(named, page)
	}
	for page := range named {
		t.Errorf("docs/format has no page %s", page)
	}
}
