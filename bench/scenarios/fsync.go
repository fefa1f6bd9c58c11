package main

import (
	"context"
	"path/filepath"

	"github.com/tidemark-log/tidemark/bench/ceiling"
	"github.com/tidemark-log/tidemark/bench/load"
)

// fsyncPeak sends as fast as it goes to a topic whose logs are synced with every
// record, so with every batch.
func fsyncPeak(ctx context.Context, b *bed) (figures, error) {
	o := peakLoad(1024, 3, "all")
	o.Topic, o.FlushMessages, o.Records = "load", 1, b.s.records(1024)/4
	return b.fsync(ctx, o)
}

// fsyncEach has many producers that each wait: what came together is made durable
// together, or it is slow.
func fsyncEach(ctx context.Context, b *bed) (figures, error) {
	return b.fsync(ctx, load.Options{
		Topic: "load", FlushMessages: 1, ReplicationFactor: 3, Partitions: 12, Producers: 100, RecordBytes: 100, InFlight: 1, Pinned: true,
		Duration: b.s.duration * 5 / 4, Warmup: b.s.duration / 4,
	})
}

// fsync puts the load on a cluster that small records have warmed, and measures what
// one sync of the same disk takes.
func (b *bed) fsync(ctx context.Context, o load.Options) (figures, error) {
	if err := b.warmOften(ctx, o); err != nil {
		return nil, err
	}
	if err := b.create(ctx, o); err != nil {
		return nil, err
	}
	f, err := b.load(ctx, o)
	if err != nil {
		return nil, err
	}
	files, err := b.Segments(1, o.Topic)
	if err != nil {
		return nil, err
	}
	one, err := ceiling.Sync(filepath.Dir(filepath.Dir(files[0])), syncs)
	if err != nil {
		return nil, err
	}
	f["sync_ms"] = one.Seconds() * 1000
	return f, nil
}

// syncs is how often the disk is asked, of which the median counts.
const syncs = 200
