package main

import (
	"context"
	"fmt"

	"github.com/tidemark-log/tidemark/bench/history"
	"github.com/tidemark-log/tidemark/bench/load"
)

// The sizes at which costs are measured, one after the other on one cluster.
var (
	idleSizes       = []int{0, 100, 1000, 10_000} // partitions
	connectionSizes = []int{10, 100, 500}
	groupSizes      = []int{0, 100, 1000, 10_000}
	rateSizes       = []int{1, 5, 10, 20, 30} // MB/s
)

// scaledRate is what all producers of scale-connections and of scale-groups send
// together, in records a second.
const scaledRate = 5000

// sized are the figures that are kept of each size.
var sized = []string{"cores", "client_cores", "rss_mb", "produce_p50_ms", "produce_p99_ms"}

// keep adds the figures of one size to those of a run.
func keep(run, f figures, size int) {
	for _, name := range sized {
		if v, ok := f[name]; ok {
			run[history.At(name, size)] = v
		}
	}
}

func scaleIdle(ctx context.Context, b *bed) (figures, error) {
	run, have := figures{}, 0
	for _, n := range idleSizes {
		if err := b.createIdle(ctx, have, n); err != nil {
			return nil, err
		}
		have = n
		f, err := b.idle(ctx)
		if err != nil {
			return nil, fmt.Errorf("with %d partitions: %w", n, err)
		}
		keep(run, f, n)
	}
	return run, nil
}

func scaleConnections(ctx context.Context, b *bed) (figures, error) {
	o := load.Options{ReplicationFactor: 3, Partitions: 12, RecordBytes: 100, Rate: scaledRate, Pinned: true}
	return b.scale(ctx, o, connectionSizes, func(o *load.Options, n int) error { o.Producers = n; return nil })
}

// scaleGroups has groups without members, which committed an offset, beside a load.
func scaleGroups(ctx context.Context, b *bed) (figures, error) {
	o, have := load.Options{Topic: "load", ReplicationFactor: 3, Partitions: 12, Producers: 10, RecordBytes: 100, Rate: scaledRate}, 0
	return b.scale(ctx, o, groupSizes, func(o *load.Options, n int) error {
		limited, cancel := context.WithTimeout(ctx, lifecycleEnd)
		defer cancel()
		err := load.CommitIdle(limited, b.Brokers, o.Topic, have, n)
		have = n
		return err
	})
}

func scaleMB(ctx context.Context, b *bed) (figures, error) {
	o := load.Options{ReplicationFactor: 3, Producers: 1, RecordBytes: 1024}
	return b.scale(ctx, o, rateSizes, func(o *load.Options, n int) error { o.Rate = float64(n) * 1e6 / 1024; return nil })
}

// scale puts the load on the cluster in one size after the other.
func (b *bed) scale(ctx context.Context, o load.Options, sizes []int, set func(*load.Options, int) error) (figures, error) {
	o.Duration, o.Warmup = b.s.duration*5/4, b.s.duration/4
	if err := b.warm(ctx, o); err != nil {
		return nil, err
	}
	run := figures{}
	for _, n := range sizes {
		err := set(&o, n)
		var f figures
		if err == nil {
			f, err = b.load(ctx, o)
		}
		if err != nil {
			return nil, fmt.Errorf("at %d: %w", n, err)
		}
		keep(run, f, n)
	}
	return run, nil
}
