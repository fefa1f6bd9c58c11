package main

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/bench/load"
	"github.com/tidemark-log/tidemark/bench/proc"
	"github.com/tidemark-log/tidemark/bench/rig"
)

// bed is a fresh cluster of one system, on which a scenario runs once.
type bed struct {
	*rig.Rig
	s    settings
	peak float64 // records a second that Apache Kafka took at its peak; 0: not measured
}

func (b *bed) pids() ([]int, error) {
	byNode, err := b.Processes()
	return slices.Sorted(maps.Values(byNode)), err
}

// during measures what the brokers spend while f runs, and for how long.
func (b *bed) during(f func() error) (proc.Sample, time.Duration, error) {
	pids, err := b.pids()
	if err != nil {
		return proc.Sample{}, 0, err
	}
	before, err := proc.Take(pids...)
	if err != nil {
		return proc.Sample{}, 0, err
	}
	start := time.Now()
	if err := f(); err != nil {
		return proc.Sample{}, 0, err
	}
	took := time.Since(start)
	after, err := proc.Take(pids...)
	return after.Since(before), took, err
}

// costs tells a sample in figures.
func costs(s proc.Sample, took time.Duration) figures {
	return figures{
		"cores": s.CPU.Seconds() / took.Seconds(), "rss_mb": mb(s.RSS), "peak_rss_mb": mb(s.PeakRSS), "io_read_mb": mb(s.Read),
		"io_written_mb": mb(s.Written), "disk_written_mb": mb(s.DiskWritten), "switches_per_second": float64(s.Switches()) / took.Seconds(),
	}
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

// create makes the topic of the load.
func (b *bed) create(ctx context.Context, o load.Options) error {
	o.Brokers = b.Brokers
	return load.Create(ctx, o)
}

// load puts the load on the cluster and tells everything in figures.
func (b *bed) load(ctx context.Context, o load.Options) (figures, error) {
	o.Brokers = b.Brokers
	debug.FreeOSMemory() // each load starts with the heap of the first
	var res load.Result
	spent, took, err := b.during(func() (err error) {
		res, err = load.Run(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	f := costs(spent, took)
	f["client_cores"] = res.ClientCPU / took.Seconds()
	if res.Records > 0 {
		f["mb_per_second"], f["records_per_second"] = res.MBPerSecond, res.RecordsPer
	}
	if res.Read > 0 {
		f["read_mb_per_second"] = res.ReadMBPerSecond
	}
	if o.Rate == 0 {
		perWork(f, spent.CPU, max(res.All, res.Read), max(res.All*int64(o.RecordBytes), res.ReadBytes))
	}
	latencies(f, "produce", res.Produce)
	latencies(f, "end_to_end", res.EndToEnd)
	if res.Lateness != nil {
		f["lateness_p99_ms"] = res.Lateness.P99
	}
	return f, nil
}

// perWork tells what a unit of work cost the brokers.
func perWork(f figures, cpu time.Duration, records, bytes int64) {
	if records > 0 && bytes > 0 {
		f["cpu_us_per_record"] = cpu.Seconds() * 1e6 / float64(records)
		f["cpu_s_per_gb"] = cpu.Seconds() / (float64(bytes) / 1e9)
	}
}

func latencies(f figures, of string, l *load.Latency) {
	if l != nil {
		f[of+"_p50_ms"], f[of+"_p99_ms"], f[of+"_p999_ms"], f[of+"_max_ms"] = l.P50, l.P99, l.P999, l.Max
	}
}
