package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
)

// blows runs one lane of three kinds for a while and returns what it did.
func blows(t *testing.T, seed uint64) (names []string, undone int) {
	synctest.Test(t, func(t *testing.T) {
		var kinds []kind
		for _, name := range []string{"a", "b", "c"} {
			kinds = append(kinds, kind{name, [2]float64{1, 5}, func(_ *nemesis, rng *rand.Rand) (string, func() error, error) {
				names = append(names, name+string(rune('0'+rng.IntN(10))))
				return name, func() error { undone++; return nil }, nil
			}})
		}
		n := newNemesis(&cluster{s: &settings{}, h: history.New(time.Now())})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if err := n.lane(ctx, kinds, rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Error(err)
		}
		if n.active != 0 {
			t.Errorf("%d faults are still on", n.active)
		}
	})
	return names, undone
}

func TestASeedDecidesTheFaults(t *testing.T) {
	first, undone := blows(t, 1)
	if undone != len(first) {
		t.Errorf("%d faults, %d taken back", len(first), undone)
	}
	if again, _ := blows(t, 1); !slices.Equal(first, again) {
		t.Errorf("one seed did %v, then %v", first, again)
	}
	if other, _ := blows(t, 2); slices.Equal(first, other) {
		t.Errorf("two seeds did the same: %v", first)
	}
}

func TestEveryKindComesBeforeOneComesAgain(t *testing.T) {
	names, _ := blows(t, 3)
	for deck := range slices.Chunk(names, 3) {
		kinds := map[byte]bool{}
		for _, name := range deck {
			kinds[name[0]] = true
		}
		if len(kinds) != len(deck) {
			t.Errorf("%v has a kind twice", deck)
		}
	}
}

func TestOnlyTheChosenKindsCome(t *testing.T) {
	c := &cluster{s: &settings{only: "kill,split"}}
	if got := len(c.chosen(processFaults())) + len(c.chosen(networkFaults())); got != 2 {
		t.Errorf("%d kinds, want 2", got)
	}
}
