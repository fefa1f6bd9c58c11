package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// A tool of others says what it measured in words. These find the records and how
// many a second; of several lines the last counts, which is the steady state.
var (
	apacheProduced = regexp.MustCompile(`(?m)^(\d+) (?:steady state )?records sent, ([\d.]+) records/sec .* 99\.9th\.$`)
	apacheConsumed = regexp.MustCompile(`(?m)^(?:[^,\n]+, ){4}(\d+), (?:[^,\n]+, ){4}([\d.]+)$`) // while it fetched, without the rebalance
	rdProduced     = regexp.MustCompile(`(?m)^% \d+ messages produced \(\d+ bytes\), (\d+) delivered \(offset \d+, 0 failed\) in \d+ms: ([\d.]+) msgs/s`)
	rdConsumed     = regexp.MustCompile(`(?m)^% (\d+) messages \(\d+ bytes\) consumed in \d+ms: ([\d.]+) msgs/s`)
)

// foreignBytes is the size of a record in the scenarios with foreign clients.
const foreignBytes = 1024

// told reads what a tool measured: records, and records a second.
func told(by *regexp.Regexp, text string) (records int64, rate float64, err error) {
	all := by.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return 0, 0, fmt.Errorf("the tool says nothing that is understood:\n%s", text)
	}
	last := all[len(all)-1]
	if records, err = strconv.ParseInt(last[1], 10, 64); err != nil {
		return 0, 0, fmt.Errorf("read what the tool says: %w", err)
	}
	if rate, err = strconv.ParseFloat(last[2], 64); err != nil {
		return 0, 0, fmt.Errorf("read what the tool says: %w", err)
	}
	return records, rate, nil
}

// foreign runs a tool that moves the records and tells what it said, as figures.
func (b *bed) foreign(moved, counted int64, rateName string, by *regexp.Regexp, run func() (string, error)) (figures, error) {
	text := ""
	spent, took, err := b.during(func() (err error) {
		text, err = run()
		return err
	})
	if err != nil {
		return nil, err
	}
	records, rate, err := told(by, text)
	if err != nil {
		return nil, err
	}
	if records < counted {
		return nil, fmt.Errorf("%d records of %d were moved:\n%s", records, counted, text)
	}
	f := costs(spent, took)
	delete(f, "cores") // its time has the start of the tool in it
	delete(f, "switches_per_second")
	f[rateName] = rate * foreignBytes / 1e6
	f["records_per_second"] = rate
	perWork(f, spent.CPU, moved, moved*foreignBytes)
	return f, nil
}

// readBy fills a topic of a warm cluster and lets a foreign consumer read it: a tenth
// first, so that the offsets of groups have their topic, then everything.
func (b *bed) readBy(ctx context.Context, by *regexp.Regexp, read func(records string) (string, error)) (figures, error) {
	o := peakLoad(foreignBytes, 3, "all")
	o.Topic, o.Records = "load", b.s.records(foreignBytes)
	if err := b.warm(ctx, o); err != nil {
		return nil, err
	}
	if _, err := b.load(ctx, o); err != nil {
		return nil, err
	}
	if _, err := read(strconv.FormatInt(o.Records/10, 10)); err != nil {
		return nil, err
	}
	return b.foreign(o.Records, o.Records, "read_mb_per_second", by, func() (string, error) { return read(strconv.FormatInt(o.Records, 10)) })
}

// apacheProducerPerf is Kafka's producer-perf-test, with a warm-up of a tenth for itself
// when the brokers are warm.
func apacheProducerPerf(ctx context.Context, b *bed) (figures, error) {
	o := peakLoad(foreignBytes, 3, "all")
	o.Topic = "load"
	if err := b.warm(ctx, o); err != nil {
		return nil, err
	}
	n := b.s.records(foreignBytes)
	all := n + n/10
	return b.foreign(all, n, "mb_per_second", apacheProduced, func() (string, error) {
		return b.Tool("producer-perf-test", "--bootstrap-server", strings.Join(b.Brokers, ","), "--topic", o.Topic,
			"--num-records", strconv.FormatInt(all, 10), "--warmup-records", strconv.FormatInt(n/10, 10), "--record-size", strconv.Itoa(foreignBytes),
			"--throughput", "-1", "--command-property", "acks=all", "linger.ms=5", "batch.size=1048576", "buffer.memory=67108864")
	})
}

// apacheConsumerPerf is Kafka's consumer-perf-test on what was just written.
func apacheConsumerPerf(ctx context.Context, b *bed) (figures, error) {
	return b.readBy(ctx, apacheConsumed, func(records string) (string, error) {
		return b.Tool("consumer-perf-test", "--bootstrap-server", strings.Join(b.Brokers, ","), "--topic", "load",
			"--num-records", records, "--fetch-size", "10485760", "--timeout", "120000", "--hide-header")
	})
}

// rdkafka runs librdkafka's own rdkafka_performance.
func (b *bed) rdkafka(ctx context.Context, args ...string) (string, error) {
	args = append(args, "-b", strings.Join(b.Brokers, ","), "-i", "60000")
	out, err := exec.CommandContext(ctx, b.s.rdkafka, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w:\n%s", b.s.rdkafka, args[0], err, out)
	}
	return string(out), nil
}

func rdkafkaProducerPerf(ctx context.Context, b *bed) (figures, error) {
	o := peakLoad(foreignBytes, 3, "all")
	o.Topic = "load"
	if err := b.warm(ctx, o); err != nil {
		return nil, err
	}
	n := b.s.records(foreignBytes)
	return b.foreign(n, n, "mb_per_second", rdProduced, func() (string, error) {
		return b.rdkafka(ctx, "-P", "-t", o.Topic, "-s", strconv.Itoa(foreignBytes), "-c", strconv.FormatInt(n, 10), "-a", "-1",
			"-X", "enable.idempotence=true", "-X", "linger.ms=5", "-X", "batch.size=1000000", "-X", "queue.buffering.max.messages=200000")
	})
}

func rdkafkaConsumerPerf(ctx context.Context, b *bed) (figures, error) {
	return b.readBy(ctx, rdConsumed, func(records string) (string, error) {
		return b.rdkafka(ctx, "-G", "perf-"+records, "-t", "load", "-o", "beginning", "-c", records,
			"-X", "auto.offset.reset=earliest", "-X", "fetch.message.max.bytes=10485760")
	})
}
