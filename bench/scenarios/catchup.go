package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tidemark-log/tidemark/bench/ceiling"
	"github.com/tidemark-log/tidemark/bench/cold"
	"github.com/tidemark-log/tidemark/bench/load"
	"github.com/tidemark-log/tidemark/bench/proc"
)

// lost is the node whose replicas are wiped.
const lost = 3

// catchUp kills a node, removes its replicas of the topic, starts it again and
// measures until they are in the ISR, the start of the node included. Then the same
// files of another node are copied plainly.
func catchUp(ctx context.Context, b *bed) (figures, error) {
	return b.catchUp(ctx, b.s.megs, func(int) error { return nil })
}

// catchUpCold is catchUp with a log that has to come from the disk, for the copy too.
func catchUpCold(ctx context.Context, b *bed) (figures, error) {
	if err := b.room(4 * int64(b.s.catchUpMB) * 1_100_000); err != nil {
		return nil, err
	}
	return b.catchUp(ctx, b.s.catchUpMB, func(nodes int) error { return b.chillFirst(nodes, "load") })
}

// catchUp has settle called before the node comes back and before the copy, with how
// many nodes hold the log then: what is still written of one disturbs the other.
func (b *bed) catchUp(ctx context.Context, megs int, settle func(nodes int) error) (figures, error) {
	o := peakLoad(1024, 3, "all")
	o.Topic, o.Partitions, o.Records = "load", 6, int64(megs)*1_000_000/1024
	if err := b.lose(ctx, o); err != nil {
		return nil, err
	}
	if err := settle(lost - 1); err != nil {
		return nil, err
	}
	f, err := b.rejoin(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := settle(lost); err != nil {
		return nil, err
	}
	files, err := b.Segments(1, o.Topic)
	if err != nil {
		return nil, err
	}
	copied, err := ceiling.CopyFiles(filepath.Dir(filepath.Dir(files[0])), files...)
	if err != nil {
		return nil, fmt.Errorf("copy the log: %w", err)
	}
	f["copy_seconds"], f["times_copy"] = copied.Seconds(), f["seconds"]/copied.Seconds()
	return f, nil
}

// lose fills a topic and takes it from one node, which is down then.
func (b *bed) lose(ctx context.Context, o load.Options) error {
	if err := b.warmOften(ctx, o); err != nil {
		return err
	}
	if err := b.create(ctx, o); err != nil {
		return err
	}
	if _, err := b.load(ctx, o); err != nil {
		return err
	}
	if err := b.Kill(lost); err != nil {
		return err
	}
	if err := load.AwaitInSync(ctx, b.Brokers[:lost-1], o.Topic, 0, o.Partitions*2); err != nil {
		return err
	}
	n, err := b.Wipe(lost, o.Topic)
	if err == nil && n != o.Partitions {
		err = fmt.Errorf("%d replicas of %d were wiped", n, o.Partitions)
	}
	return err
}

// rejoin starts the node that is down and measures until it has all again.
func (b *bed) rejoin(ctx context.Context, o load.Options) (figures, error) {
	nodes, err := b.Processes()
	if err != nil {
		return nil, err
	}
	delete(nodes, lost)
	var others []int
	for _, pid := range nodes {
		others = append(others, pid)
	}
	before, err := proc.Take(others...)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := b.Restart(lost); err != nil {
		return nil, err
	}
	if err := load.AwaitInSync(ctx, b.Brokers, o.Topic, o.Partitions*3, o.Partitions*3); err != nil {
		return nil, err
	}
	took := time.Since(start)
	all, err := b.pids()
	if err != nil {
		return nil, err
	}
	after, err := proc.Take(all...)
	if err != nil {
		return nil, err
	}
	spent := after.Since(before)
	f := costs(spent, took)
	bytes := o.Records * int64(o.RecordBytes)
	f["seconds"], f["mb_per_second"] = took.Seconds(), mb(bytes)/took.Seconds()
	perWork(f, spent.CPU, o.Records, bytes)
	return f, nil
}

// chillFirst takes the topic out of the page cache, on the first so many nodes.
func (b *bed) chillFirst(nodes int, topic string) error {
	var all []string
	for id := range nodes {
		files, err := b.Segments(id+1, topic)
		if err != nil {
			return err
		}
		all = append(all, files...)
	}
	return cold.Drop(all...)
}
