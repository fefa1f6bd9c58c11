package main

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-log/tidemark/bench/load"
)

// scenario is a load, the same for both systems.
type scenario struct {
	name  string
	about string
	nodes int
	needs need
	run   func(context.Context, *bed) (figures, error)
}

// need is what a scenario asks for beyond a cluster, as bits.
type need uint8

const (
	nothing   need = 0
	kafkaPeak need = 1 << (iota - 1) // the rate that Apache Kafka takes, known first
	disk                             // data in the directory of -disk
	rdkafka                          // the program of -rdkafka
	leastToo                         // nothing; the least broker can do it too
)

// peakOf names the scenario whose rate on Apache Kafka is its peak.
const peakOf = "produce-1k-rf3-acks-all"

// scenarios is the table of all.
var scenarios = []scenario{
	{"produce-1k-rf1-acks-1", "peak produce, 1 KiB, one broker, acks=1", 1, leastToo, peakProduce(1024, 1, "1")},
	{"produce-1k-rf1-acks-all", "peak produce, 1 KiB, one broker, acks=all", 1, leastToo, peakProduce(1024, 1, "all")},
	{"produce-1k-rf3-acks-1", "peak produce, 1 KiB, three replicas, acks=1", 3, nothing, peakProduce(1024, 3, "1")},
	{peakOf, "peak produce, 1 KiB, three replicas, acks=all", 3, nothing, peakProduce(1024, 3, "all")},
	{"produce-100-rf1-acks-1", "peak produce, 100 B, one broker, acks=1", 1, leastToo, peakProduce(100, 1, "1")},
	{"produce-100-rf1-acks-all", "peak produce, 100 B, one broker, acks=all", 1, leastToo, peakProduce(100, 1, "all")},
	{"produce-100-rf3-acks-1", "peak produce, 100 B, three replicas, acks=1", 3, nothing, peakProduce(100, 3, "1")},
	{"produce-100-rf3-acks-all", "peak produce, 100 B, three replicas, acks=all", 3, nothing, peakProduce(100, 3, "all")},
	{"consume-hot", "one reader reads what was just written, three replicas", 3, leastToo, consumeHot},
	{"consume-cold", "the same from the disk: the log is not in memory any more", 3, disk, consumeCold},
	{"fan-out-8", "eight readers read along with one producer at its peak, three replicas", 3, nothing, fanOut},
	{"latency-1000", "1,000 records/s of 1 KiB, acks=all, three replicas, one reader", 3, nothing, latencyAt(1000)},
	{"latency-20000", "20,000 records/s of 1 KiB, acks=all, three replicas, one reader", 3, nothing, latencyAt(20_000)},
	{"latency-quarter-peak", "a quarter of what Apache Kafka takes at its peak, else as above", 3, kafkaPeak, latencyAtPeak(0.25)},
	{"latency-half-peak", "half of it", 3, kafkaPeak, latencyAtPeak(0.5)},
	{"latency-three-quarter-peak", "three quarters of it", 3, kafkaPeak, latencyAtPeak(0.75)},
	{"connections-500", "500 producers of 100 B, each waits for each acknowledgement", 3, nothing, connections},
	{"fsync-peak", "peak produce on the disk, 1 KiB, three replicas, each batch synced by each", 3, disk, fsyncPeak},
	{"fsync-100", "100 producers of 100 B on the disk, each waits; each batch synced by each replica", 3, disk, fsyncEach},
	{"partitions-1000", "peak produce over 1,000 partitions, 1 KiB, three replicas, acks=all", 3, nothing, manyPartitions(0)},
	{"partitions-10000", "the same beside 9,000 partitions that idle", 3, nothing, manyPartitions(9000)},
	{"idle-partitions", "1,000 partitions of three replicas, nothing happens", 3, nothing, idle(0)},
	{"idle-10000", "10,000 partitions of three replicas, nothing happens", 3, nothing, idle(10_000)},
	{"catch-up", "a follower lost its replicas and gets them again", 3, nothing, catchUp},
	{"catch-up-cold", "the same on the disk, where the log is not in memory any more", 3, disk, catchUpCold},
	{"start-up-rf1", "from the start of a formatted node to its first acknowledged record", 1, nothing, startUp},
	{"start-up-rf3", "the same of three nodes and a record in three replicas", 3, nothing, startUp},
	{"failover", "leaders are killed; until all that they led acknowledges again", 3, nothing, failover},
	{"recovery", "a killed node starts again on the data that it has, under load", 3, disk, recovery},
	{"scale-idle", "what idles, against partitions of three replicas", 3, nothing, scaleIdle},
	{"scale-connections", "5,000 records/s of 100 B, against producers that send them", 3, nothing, scaleConnections},
	{"scale-groups", "5,000 records/s of 100 B, beside groups that committed an offset", 3, nothing, scaleGroups},
	{"scale-mb", "records of 1 KiB, acks=all, three replicas, against MB/s", 3, nothing, scaleMB},
	{"apache-producer-perf", "peak produce by Kafka's producer-perf-test, 1 KiB, three replicas, acks=all", 3, nothing, apacheProducerPerf},
	{"apache-consumer-perf", "Kafka's consumer-perf-test reads what was just written", 3, nothing, apacheConsumerPerf},
	{"librdkafka-producer-perf", "peak produce by librdkafka's rdkafka_performance, else the same", 3, rdkafka, rdkafkaProducerPerf},
	{"librdkafka-consumer-perf", "rdkafka_performance reads what was just written, in a group", 3, rdkafka, rdkafkaConsumerPerf},
}

func peakLoad(size, rf int, acks string) load.Options {
	return load.Options{ReplicationFactor: rf, Producers: 2, RecordBytes: size, Acks: acks, Linger: 5 * time.Millisecond}
}

// records is how many of the size the flag -mb asks for; small ones a fifth of it.
func (s settings) records(size int) int64 {
	n := int64(s.megs) * 1_000_000 / int64(size)
	if size < 512 {
		n /= 5
	}
	return max(n, 100)
}

// warm creates the topic, sends small records to another one at a rate for a while
// and then as much as a load at full speed has, so that code is compiled and buffers
// are made when the measurement begins: Java compiles what ran often, so requests
// count and not bytes.
func (b *bed) warm(ctx context.Context, o load.Options) error {
	if err := b.create(ctx, o); err != nil {
		return err
	}
	if err := b.warmOften(ctx, o); err != nil {
		return err
	}
	first := peakLoad(max(o.RecordBytes, 100), o.ReplicationFactor, o.Acks)
	first.Records, first.Consumers = b.s.records(first.RecordBytes), min(o.Consumers, 1)
	_, err := b.load(ctx, first)
	return err
}

// warmOften is the part of a warm-up that sends small records to a topic of its own.
func (b *bed) warmOften(ctx context.Context, o load.Options) error {
	if b.s.warm <= 0 {
		return nil
	}
	often := load.Options{Topic: "warm", ReplicationFactor: o.ReplicationFactor, Acks: o.Acks, Producers: 2, Consumers: 1,
		RecordBytes: 100, Rate: warmRate, Duration: b.s.warm}
	if err := b.create(ctx, often); err != nil {
		return err
	}
	_, err := b.load(ctx, often)
	return err
}

// warmRate is how many small records a second warm a cluster up.
const warmRate = 20_000

// peakProduce sends as fast as it goes, after a warm-up.
func peakProduce(size, rf int, acks string) func(context.Context, *bed) (figures, error) {
	return func(ctx context.Context, b *bed) (figures, error) {
		o := peakLoad(size, rf, acks)
		if err := b.warm(ctx, o); err != nil {
			return nil, err
		}
		o.Records = b.s.records(size)
		f, err := b.load(ctx, o)
		for _, name := range []string{"produce_p50_ms", "produce_p99_ms", "produce_p999_ms", "produce_max_ms"} {
			delete(f, name) // at full speed it is the time in the client's own queue
		}
		return f, err
	}
}

func consumeHot(ctx context.Context, b *bed) (figures, error) {
	o := peakLoad(1024, 3, "all")
	if err := b.warm(ctx, o); err != nil {
		return nil, err
	}
	o.Records = b.s.records(1024)
	if _, err := b.load(ctx, o); err != nil {
		return nil, err
	}
	for range 2 { // readers warm up too
		if _, err := b.load(ctx, load.Options{Consumers: 1, Records: o.Records}); err != nil {
			return nil, err
		}
	}
	return b.load(ctx, load.Options{Consumers: 1, Records: o.Records})
}

func fanOut(ctx context.Context, b *bed) (figures, error) {
	o := peakLoad(1024, 3, "all")
	o.Producers, o.Consumers, o.Records, o.InFlight = 1, 8, b.s.records(1024)/4, 10_000
	if err := b.warm(ctx, o); err != nil {
		return nil, err
	}
	return b.load(ctx, o)
}

// latencyAt sends at a rate, a fifth of the time for warming up.
func latencyAt(rate float64) func(context.Context, *bed) (figures, error) {
	return func(ctx context.Context, b *bed) (figures, error) {
		o := load.Options{ReplicationFactor: 3, Producers: 1, Consumers: 1, RecordBytes: 1024, Rate: rate, Duration: b.s.duration * 5 / 4, Warmup: b.s.duration / 4}
		if err := b.warm(ctx, o); err != nil {
			return nil, err
		}
		return b.load(ctx, o)
	}
}

// latencyAtPeak sends at a part of Apache Kafka's peak.
func latencyAtPeak(part float64) func(context.Context, *bed) (figures, error) {
	return func(ctx context.Context, b *bed) (figures, error) {
		if b.peak <= 0 {
			return nil, errors.New("the peak of Apache Kafka is not known: name it with -kafka-peak")
		}
		return latencyAt(b.peak*part)(ctx, b)
	}
}

func connections(ctx context.Context, b *bed) (figures, error) {
	o := load.Options{
		ReplicationFactor: 3, Partitions: 12, Producers: 500, RecordBytes: 100, InFlight: 1, Pinned: true,
		Duration: b.s.duration * 5 / 4, Warmup: b.s.duration / 4,
	}
	if err := b.warm(ctx, o); err != nil {
		return nil, err
	}
	return b.load(ctx, o)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
