package partition_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/coretest"
)

var (
	seeds = flag.Int("seeds", 2000, "how many random walks to play")
	first = flag.Uint64("seed", 0, "the first seed")
)

// walkSteps is how many commands a walk has before the cluster heals.
const walkSteps = 120

// TestRandomWalksKeepEveryInvariant plays random commands with lost and late
// messages, crashes that lose records, stale metadata and slow disks. A failure
// prints its seed and the script that leads to it.
func TestRandomWalksKeepEveryInvariant(t *testing.T) {
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		if _, failure := coretest.Walk(chance(seed), walkSteps, true); failure != "" {
			trace, _ := coretest.Walk(chance(seed), walkSteps, false)
			t.Fatalf("seed %d: %s\n%s", seed, failure, trace)
		}
	}
}

func chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// TestSameSeedGivesSameWalk guards the one thing that makes a seed worth
// printing.
func TestSameSeedGivesSameWalk(t *testing.T) {
	for seed := range uint64(20) {
		a, _ := coretest.Walk(chance(seed), walkSteps, false)
		b, _ := coretest.Walk(chance(seed), walkSteps, false)
		if a != b {
			t.Fatalf("seed %d gives two different traces", seed)
		}
	}
}
