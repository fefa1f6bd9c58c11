package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// kind is a sort of fault. Its inject hurts something and says what, undo takes
// it back; hold is how long it lasts, in seconds.
type kind struct {
	name   string
	hold   [2]float64
	inject func(n *nemesis, rng *rand.Rand) (what string, undo func() error, err error)
}

// nemesis injects faults, in lanes that do not wait for each other.
type nemesis struct {
	c      *cluster
	mu     sync.Mutex
	active int
	quiet  time.Time // since when no fault is on
	counts map[string]int
}

func newNemesis(c *cluster) *nemesis {
	return &nemesis{c: c, counts: map[string]int{}, quiet: time.Now()}
}

// settling is how long after a fault its consequences may be seen.
const settling = 15 * time.Second

// faults reports whether a fault is on or was until a moment ago.
func (n *nemesis) faults() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.active > 0 || time.Since(n.quiet) < settling
}

func (n *nemesis) count(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[name]++
}

func (n *nemesis) begin(name string) {
	n.count(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.active++
}

func (n *nemesis) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.active--
	n.quiet = time.Now()
}

// say prints what happens, with the time.
func (c *cluster) say(format string, args ...any) {
	fmt.Printf("%8.1fs  %s\n", c.h.Now().Duration().Seconds(), fmt.Sprintf(format, args...))
}

// chosen keeps the kinds that -only names.
func (c *cluster) chosen(kinds []kind) []kind {
	if c.s.only == "" {
		return kinds
	}
	names := strings.Split(c.s.only, ",")
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !slices.Contains(names, k.name) })
}

// lane injects faults one after the other until the context ends. Every kind
// comes once before one comes again.
func (n *nemesis) lane(ctx context.Context, kinds []kind, rng *rand.Rand) error {
	kinds = n.c.chosen(kinds)
	if len(kinds) == 0 {
		return nil
	}
	for {
		deck := slices.Clone(kinds)
		rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, k := range deck {
			if !pause(ctx, seconds(2+4*rng.Float64())) {
				return nil
			}
			if err := n.strike(ctx, k, rng); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
}

// strike injects one fault and takes it back.
func (n *nemesis) strike(ctx context.Context, k kind, rng *rand.Rand) error {
	n.begin(k.name)
	defer n.end()
	length := seconds(k.hold[0] + (k.hold[1]-k.hold[0])*rng.Float64())
	what, undo, err := k.inject(n, rng)
	if err != nil {
		return err
	}
	n.c.say("%-9s %s, for %.1f s", k.name, what, length.Seconds())
	pause(ctx, length)
	if err := undo(); err != nil {
		return err
	}
	n.c.say("%-9s %s, over", k.name, what)
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
