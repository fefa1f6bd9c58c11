package partition_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
			t.Fatalf("seed %d: %s\n%s", seed, failure, replay(shrink(commandsOf(trace), failure)).trace)
		}
	}
}

// commandsOf are the command lines of a trace.
func commandsOf(trace string) []string {
	var out []string
	lines := strings.Split(trace, "\n")
	for i, l := range lines[:len(lines)-1] {
		if lines[i+1] == "----" {
			out = append(out, l)
		}
	}
	return out
}

// shrink drops commands, many at a time and then one by one, as long as the same
// checker still fails: what is left is nearly a script.
func shrink(list []string, failure string) []string {
	checker, _, _ := strings.Cut(failure, ":")
	for n := len(list) / 2; n > 0; n /= 2 {
		for at := 1; at+n <= len(list); {
			less := slices.Delete(slices.Clone(list), at, at+n)
			if r := replay(less); strings.HasPrefix(r.failure, checker) {
				list = less
			} else {
				at++
			}
		}
	}
	return list
}

type replayed struct{ trace, failure string }

// replay plays command lines up to the first failure; a line that makes no sense
// any more is left out.
func replay(list []string) (r replayed) {
	w := coretest.New()
	defer func() {
		if p := recover(); p != nil {
			r.failure = fmt.Sprint(p)
		}
	}()
	for _, line := range list {
		before := len(w.Output())
		err := w.Run(line)
		r.trace += "\n" + line + "\n----\n" + w.Output()[before:]
		if err == nil && len(w.Failures()) > 0 {
			r.failure = w.Failures()[0]
			return r
		}
	}
	return r
}

// TestShrinkKeepsWhatFails: an invariant that is broken on purpose, by a
// probe that claims records which its sender lacks, is told in few lines.
func TestShrinkKeepsWhatFails(t *testing.T) {
	list := []string{
		"partition replicas=(1,2,3) leader=1", "produce a acks=1", "tick 1s", "fetch 2", "produce b acks=1",
		"fetch 3", "log", "probe 2 offset=2", "state", "tick 1s",
	}
	r := replay(list)
	if !strings.HasPrefix(r.failure, "KnowledgeSoundness") {
		t.Fatalf("the probe goes unnoticed: %q", r.failure)
	}
	got := shrink(list, r.failure)
	want := []string{"partition replicas=(1,2,3) leader=1", "produce a acks=1", "produce b acks=1", "probe 2 offset=2"}
	if !slices.Equal(got, want) {
		t.Errorf("shrinks to %q", got)
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
