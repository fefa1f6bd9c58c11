package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consumer is one client that reads all partitions from given offsets.
type consumer struct {
	*run
	client    *kgo.Client
	latencies histogram
	read      int64 // records of this run; when draining, any
	measured  int64
	bytes     int64 // of measured values
	last      time.Duration
}

func (r *run) newConsumer(from map[int32]kgo.Offset) (*consumer, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.o.Brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.o.Topic: from}),
		kgo.FetchMaxBytes(50<<20), kgo.FetchMaxPartitionBytes(10<<20), kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return &consumer{run: r, client: cl, latencies: newHistogram()}, nil
}

// pollWait is how long a reader with nothing to read waits until it looks again
// whether there is more to come.
const pollWait = 100 * time.Millisecond

// receive reads until it has all that was acknowledged.
func (c *consumer) receive(ctx context.Context) error {
	for {
		if goal := c.goal.Load(); goal >= 0 && c.read >= goal {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%d records were read of %d: %w", c.read, c.goal.Load(), err)
		}
		if err := c.poll(ctx); err != nil {
			return err
		}
	}
}

func (c *consumer) poll(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, pollWait)
	defer cancel()
	fetches := c.client.PollFetches(wait)
	if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	now := c.since()
	fetches.EachRecord(func(r *kgo.Record) { c.take(r.Value, now) })
	return nil
}

func (c *consumer) take(value []byte, now time.Duration) {
	if c.o.Producers == 0 {
		c.read++
		c.measured++
		c.bytes += int64(len(value))
		c.last = now
		return
	}
	if len(value) < stampBytes || binary.BigEndian.Uint64(value) != c.id {
		return
	}
	c.read++
	if intended := c.stamp(value); intended >= c.o.Warmup {
		c.measured++
		c.bytes += int64(len(value))
		c.last = now
		c.latencies.add(now - intended)
	}
}
