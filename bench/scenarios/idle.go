package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/bench/load"
)

// settle is how long a cluster is left alone before idling is measured.
const settle = 5 * time.Second

// batch is how many partitions are created at once: systems limit what one request
// may ask for.
const batch = 1000

// idle creates partitions, those of -idle-partitions if none are said, and measures
// what they cost while nothing happens.
func idle(partitions int) func(context.Context, *bed) (figures, error) {
	return func(ctx context.Context, b *bed) (figures, error) {
		if partitions == 0 {
			partitions = b.s.idle
		}
		start := time.Now()
		if err := b.createIdle(ctx, 0, partitions); err != nil {
			return nil, err
		}
		created := time.Since(start) // until all are led and in sync
		f, err := b.idle(ctx)
		if err == nil {
			f["seconds"] = created.Seconds()
		}
		return f, err
	}
}

// createIdle grows the number of partitions of three replicas in batches, each a
// topic of its own.
func (b *bed) createIdle(ctx context.Context, from, to int) error {
	for from < to {
		o := load.Options{Topic: fmt.Sprintf("idle-%d", from), ReplicationFactor: 3, Partitions: min(batch, to-from)}
		limited, cancel := context.WithTimeout(ctx, lifecycleEnd)
		err := b.create(limited, o)
		cancel()
		if err != nil {
			return fmt.Errorf("create partitions %d to %d: %w", from, from+o.Partitions, err)
		}
		from += o.Partitions
	}
	return nil
}

// manyPartitions sends as fast as it goes to 1,000 partitions, each record to the next
// one, beside others that idle.
func manyPartitions(beside int) func(context.Context, *bed) (figures, error) {
	return func(ctx context.Context, b *bed) (figures, error) {
		if err := b.createIdle(ctx, 0, beside); err != nil {
			return nil, err
		}
		o := peakLoad(1024, 3, "all")
		o.Partitions, o.Records = batch, b.s.records(1024)
		if err := b.warm(ctx, o); err != nil {
			return nil, err
		}
		return b.load(ctx, o)
	}
}

func (b *bed) idle(ctx context.Context) (figures, error) {
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	spent, took, err := b.during(func() error { return pause(ctx, b.s.duration) })
	if err != nil {
		return nil, err
	}
	return costs(spent, took), nil
}
