package main

import (
	"context"

	"github.com/tidemark-log/tidemark/bench/cold"
	"github.com/tidemark-log/tidemark/bench/load"
)

// consumeCold reads what is on the disk and no longer in memory. After it the same
// files of one node are read plainly, which is the most that the disk gives.
func consumeCold(ctx context.Context, b *bed) (figures, error) {
	o := peakLoad(1024, 3, "all")
	o.Topic, o.Records = "load", b.s.records(1024)
	if err := b.warm(ctx, o); err != nil {
		return nil, err
	}
	if _, err := b.load(ctx, o); err != nil {
		return nil, err
	}
	if _, err := b.load(ctx, load.Options{Consumers: 1, Records: o.Records}); err != nil {
		return nil, err
	}
	if err := b.chillFirst(len(b.Brokers), o.Topic); err != nil {
		return nil, err
	}
	f, err := b.load(ctx, load.Options{Consumers: 1, Records: o.Records})
	if err != nil {
		return nil, err
	}
	files, err := b.Segments(1, o.Topic)
	if err != nil {
		return nil, err
	}
	if f["disk_read_mb_per_second"], err = cold.Read(files...); err != nil {
		return nil, err
	}
	f["read_of_disk"] = f["read_mb_per_second"] / f["disk_read_mb_per_second"]
	return f, nil
}
