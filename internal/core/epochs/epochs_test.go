package epochs

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// parse reads entries such as "2@6 3@8".
func parse(t *testing.T, s string) Cache {
	t.Helper()
	var list []model.EpochStart
	for _, f := range strings.Fields(s) {
		var e model.EpochStart
		if _, err := fmt.Sscanf(f, "%d@%d", &e.Epoch, &e.Start); err != nil {
			t.Fatalf("%q: %v", f, err)
		}
		list = append(list, e)
	}
	return New(list)
}

func show(c Cache) string {
	var out []string
	for _, e := range c.Entries() {
		out = append(out, fmt.Sprintf("%d@%d", e.Epoch, e.Start))
	}
	return strings.Join(out, " ")
}

// Golden data of Kafka's LeaderEpochFileCacheTest, as R12.4b tells it.
func TestChangesOfTheCache(t *testing.T) {
	assign := func(e model.Epoch, o model.Offset) func(*Cache) { return func(c *Cache) { c.Assign(e, o) } }
	fromEnd := func(o model.Offset) func(*Cache) { return func(c *Cache) { c.TruncateFromEnd(o) } }
	fromStart := func(o model.Offset) func(*Cache) { return func(c *Cache) { c.TruncateFromStart(o) } }
	for _, tc := range []struct {
		name, start string
		change      func(*Cache)
		want        string
	}{
		{"an epoch without records vanishes", "2@9", assign(3, 9), "3@9"},
		{"the same epoch further on is no news", "2@6", assign(2, 8), "2@6"},
		{"the same epoch further back is", "2@6", assign(2, 5), "2@5"},
		{"later epochs and later starts give way", "1@0 2@4 3@9", assign(2, 7), "1@0 2@7"},
		{"an epoch must not be negative", "2@6", assign(-1, 7), "2@6"},
		{"truncation at an entry's start drops it", "2@6 3@8 4@11", fromEnd(8), "2@6"},
		{"truncation inside an entry keeps it", "2@6 3@8 4@11", fromEnd(9), "2@6 3@8"},
		{"truncation past the last start keeps all", "2@6 3@8 4@11", fromEnd(12), "2@6 3@8 4@11"},
		{"a new start moves the entry that holds it", "2@6 3@8 4@11", fromStart(9), "3@9 4@11"},
		{"a new start at an entry drops what is before", "2@6 3@8 4@11", fromStart(8), "3@8 4@11"},
		{"a start before all changes nothing", "2@6 3@8 4@11", fromStart(5), "2@6 3@8 4@11"},
		{"a start past all keeps the last", "2@6 3@8 4@11", fromStart(12), "4@12"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := parse(t, tc.start)
			tc.change(&c)
			if got := show(c); got != tc.want {
				t.Errorf("%s becomes %q, want %q", tc.start, got, tc.want)
			}
		})
	}
}

func TestEndOfAnEpoch(t *testing.T) {
	undefined := model.UndefinedEpochEnd
	for _, tc := range []struct {
		entries string
		ask     model.Epoch
		want    model.EpochEnd
	}{
		{"0@10 2@13 4@17", -1, undefined},
		{"0@10 2@13 4@17", 1, model.EpochEnd{Epoch: 0, End: 13}},
		{"0@10 2@13 4@17", 2, model.EpochEnd{Epoch: 2, End: 17}},
		{"0@10 2@13 4@17", 3, model.EpochEnd{Epoch: 2, End: 17}},
		{"0@10 2@13 4@17", 4, model.EpochEnd{Epoch: 4, End: 20}},
		{"0@10 2@13 4@17", 5, undefined},
		{"5@11 6@12 7@13", 4, model.EpochEnd{Epoch: 4, End: 11}},
		{"", 0, undefined},
	} {
		c := parse(t, tc.entries)
		if got := c.EndOf(tc.ask, 20); got != tc.want {
			t.Errorf("{%s}: epoch %d ends %v, want %v", tc.entries, tc.ask, got, tc.want)
		}
	}
}

func TestEpochOfARecord(t *testing.T) {
	c := parse(t, "0@10 2@13 4@17")
	for o, want := range map[model.Offset]model.Epoch{9: model.NoEpoch, 10: 0, 12: 0, 13: 2, 16: 2, 17: 4, 99: 4} {
		if got := c.At(o); got != want {
			t.Errorf("record %d is of epoch %d, want %d", o, got, want)
		}
	}
	if got := show(New(c.Within(12, 17))); got != "0@12 2@13" {
		t.Errorf("epochs in [12,17) are %q", got)
	}
}

// Whatever is done to a cache, it stays strictly ascending in both fields (I3),
// and a copy handed out earlier does not change with it.
func TestCacheStaysAscending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cache
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			before := c.Entries()
			kept := fmt.Sprint(before)
			o := model.Offset(rapid.IntRange(-1, 30).Draw(t, "offset"))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				c.Assign(model.Epoch(rapid.IntRange(-1, 10).Draw(t, "epoch")), o)
			case 1:
				c.TruncateFromEnd(o)
			case 2:
				c.TruncateFromStart(o)
			}
			list := c.Entries()
			for i := 1; i < len(list); i++ {
				if list[i].Epoch <= list[i-1].Epoch || list[i].Start <= list[i-1].Start {
					t.Fatalf("not ascending: %v", list)
				}
			}
			if fmt.Sprint(before) != kept {
				t.Fatalf("a copy changed from %s to %v", kept, before)
			}
		}
	})
}
