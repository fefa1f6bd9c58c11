package sessions

import (
	"math"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestEpochWrapsToOne(t *testing.T) {
	c := New(Config{Slots: 1, NextID: func() int32 { return math.MinInt32 + 7 }})
	turn, _ := c.Begin(0, Request{Wishes: []Partition{{Key: Key{Topic: "a"}}}})
	id, _ := c.Answer(0, turn, make([]Result, 1), func(int) {})
	if id != 7 {
		t.Fatalf("session id %d, want 7", id)
	}
	c.byID[id].epoch = math.MaxInt32
	for _, epoch := range []int32{math.MaxInt32, 1, 2} {
		turn, err := c.Begin(0, Request{ID: id, Epoch: epoch})
		if err != model.None {
			t.Fatalf("epoch %d: %s", epoch, err)
		}
		if _, err := c.Answer(0, turn, make([]Result, 1), func(int) {}); err != model.None {
			t.Fatalf("answer in epoch %d: %s", epoch, err)
		}
	}
}

func TestIdleTurnCostsOneAllocation(t *testing.T) {
	c := New(Config{Slots: 1, NextID: func() int32 { return 1 }})
	wishes := make([]Partition, 1000)
	for i := range wishes {
		wishes[i].Key.Partition = int32(i)
	}
	turn, _ := c.Begin(0, Request{Wishes: wishes})
	results := make([]Result, len(wishes))
	id, _ := c.Answer(0, turn, results, func(int) {})
	epoch, included := int32(1), 0
	n := testing.AllocsPerRun(100, func() {
		turn, err := c.Begin(0, Request{ID: id, Epoch: epoch})
		if err != model.None {
			t.Fatal(err)
		}
		c.Answer(0, turn, results, func(int) { included++ })
		epoch++
	})
	if n > 1 || included != 0 {
		t.Errorf("%v allocations for an idle turn, %d partitions in its answers", n, included)
	}
}

func BenchmarkIdleTurnOf1000Partitions(b *testing.B) {
	c := New(Config{Slots: 1, NextID: func() int32 { return 1 }})
	wishes := make([]Partition, 1000)
	for i := range wishes {
		wishes[i].Key.Partition = int32(i)
	}
	turn, _ := c.Begin(0, Request{Wishes: wishes})
	results := make([]Result, len(wishes))
	id, _ := c.Answer(0, turn, results, func(int) {})
	epoch := int32(1)
	b.ReportAllocs()
	for b.Loop() {
		turn, _ := c.Begin(0, Request{ID: id, Epoch: epoch})
		c.Answer(0, turn, results, func(int) {})
		epoch++
	}
}
