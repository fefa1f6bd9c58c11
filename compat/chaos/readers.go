package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
)

// reader consumes all partitions of one topic, without a group.
type reader struct {
	c     *cluster
	topic string
	name  string

	mu sync.Mutex
	at map[int32]*history.Reader
}

func (c *cluster) newReader(topic, name string, partitions int32, from func(p int32) int64) *reader {
	r := &reader{c: c, topic: topic, name: name, at: map[int32]*history.Reader{}}
	for p := range partitions {
		r.at[p] = c.h.Find(topic, p).Reader(name, from(p))
	}
	return r
}

// run reads until the context ends or, if ends are given, until it is there.
func (r *reader) run(ctx context.Context, ends map[int32]int64) error {
	for {
		if err := r.read(ctx, ends); !errors.Is(err, errOutOfRange) {
			return err
		}
	}
}

// errOutOfRange says that a broker's log did not hold the offset that was due.
var errOutOfRange = errors.New("offset out of range")

// read is run with one client. It ends when a broker says that the offset is out
// of range: the client may have asked a follower whose log is still short, which
// franz-go does while a partition has no leader. So nothing is lost yet; who
// comes back with the same offset must find it.
func (r *reader) read(ctx context.Context, ends map[int32]int64) error {
	offsets := map[int32]kgo.Offset{}
	for p, at := range r.at {
		offsets[p] = kgo.NewOffset().At(at.Next())
	}
	cl, err := r.c.client(r.name+" of "+r.topic, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: offsets}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(300*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	for !r.reached(ends) {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.mu.Lock()
		fetches.EachRecord(func(rec *kgo.Record) { r.at[rec.Partition].Saw(rec.Offset, rec.LeaderEpoch, rec.Value) })
		r.mu.Unlock()
		if err := r.c.judgeErrors(r.name, fetches); err != nil {
			pause(ctx, 100*time.Millisecond)
			return err
		}
	}
	return nil
}

// judgeErrors looks for errors of fetches that no fault explains. Its own error
// says that an offset was out of range.
func (c *cluster) judgeErrors(name string, fetches kgo.Fetches) error {
	var out error
	fetches.EachError(func(topic string, p int32, err error) {
		var lost *kgo.ErrDataLoss
		switch {
		case errors.As(err, &lost):
			c.h.Verdict.Violate(history.Committed, "%s-%d: %s was told of a loss: %v", topic, p, name, err)
		case errors.Is(err, kerr.OffsetOutOfRange):
			c.outOfRange.Add(1)
			out = errOutOfRange
		}
	})
	return out
}

// reached reports whether all ends are reached; without ends never.
func (r *reader) reached(ends map[int32]int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, end := range ends {
		if r.at[p].Next() < end {
			return false
		}
	}
	return ends != nil
}

// waitReached waits until a reader that runs elsewhere has come to the ends.
func (r *reader) waitReached(ctx context.Context, ends map[int32]int64) error {
	for !r.reached(ends) {
		if !pause(ctx, 50*time.Millisecond) {
			return fmt.Errorf("reader %s of %s did not come to the end", r.name, r.topic)
		}
	}
	return nil
}

// restless reads the topic again and again from a place that chance chooses.
func (c *cluster) restless(ctx context.Context, l ledger, rng *rand.Rand) error {
	ends := make([]int64, l.partitions)
	for round := 1; ctx.Err() == nil; round++ {
		r := c.newReader(l.topic, fmt.Sprintf("restless reader %d", round), l.partitions, func(p int32) int64 {
			return rng.Int64N(max(ends[p], 1))
		})
		part, cancel := context.WithTimeout(ctx, seconds(3+10*rng.Float64()))
		err := r.run(part, nil)
		cancel()
		if err != nil && part.Err() == nil {
			return err
		}
		for p, at := range r.at {
			ends[p] = max(ends[p], at.Next())
		}
	}
	return nil
}
