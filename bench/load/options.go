// Package load is the load that measurements put on a cluster: producers at full
// speed or at a fixed rate, readers, and the latencies that they saw.
package load

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Options describe one load. Zero values stand for what is in the comments.
type Options struct {
	Brokers           []string
	Topic             string        // "load"
	Partitions        int           // 6
	ReplicationFactor int           // 1
	Producers         int           // clients with connections of their own; 0 with Consumers drains what is there
	Consumers         int           // clients that each read everything
	RecordBytes       int           // of the value, 1024
	BatchBytes        int           // at most, before compression, 1 MiB less a little
	Linger            time.Duration // how long a batch waits for company
	Compression       string        // none, gzip, snappy, lz4, zstd
	Acks              string        // 0, 1, all
	Rate              float64       // records a second of all producers; 0: as fast as they are acknowledged
	Records           int64         // ends the load; 0: Duration does
	Duration          time.Duration // ends the load; 0: Records does
	Warmup            time.Duration // of the load, not measured
	InFlight          int           // records that a producer has unacknowledged at most, 200,000
	Pinned            bool          // a producer writes to one partition, so that it has one busy connection
	FlushMessages     int           // flush.messages of the topic: after how many records a log is synced; 0: as the broker does
}

// stampBytes is what a value starts with: the id of the run, the intended time.
const stampBytes = 16

// fill puts defaults in place of zero values. It returns an error about options
// that contradict each other.
func (o *Options) fill() error {
	o.defaults()
	return o.check()
}

func (o *Options) defaults() {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	text := func(v *string, d string) {
		if *v == "" {
			*v = d
		}
	}
	text(&o.Topic, "load")
	text(&o.Compression, "none")
	text(&o.Acks, "all")
	or(&o.Partitions, 6)
	or(&o.ReplicationFactor, 1)
	or(&o.RecordBytes, 1024)
	or(&o.BatchBytes, 1<<20-1000)
	or(&o.InFlight, 200_000)
}

func (o *Options) check() error {
	switch {
	case len(o.Brokers) == 0:
		return errors.New("name at least one broker")
	case o.Producers <= 0 && o.Consumers <= 0:
		return errors.New("ask for producers, consumers or both")
	case o.RecordBytes < stampBytes:
		return fmt.Errorf("a record of %d bytes has no room for its time: ask for %d or more", o.RecordBytes, stampBytes)
	case o.Records <= 0 && o.Duration <= 0:
		return errors.New("say when the load ends: by records or by duration")
	case o.Producers <= 0 && o.Records <= 0:
		return errors.New("readers alone need the number of records to read")
	case o.FlushMessages < 0 || o.Rate < 0 || o.Warmup < 0 || o.Duration > 0 && o.Warmup >= o.Duration:
		return errors.New("give rate, warm-up and flush messages of 0 or more, and a warm-up shorter than the duration")
	}
	if _, ok := codecs[o.Compression]; !ok {
		return fmt.Errorf("unknown compression %q: none, gzip, snappy, lz4 or zstd", o.Compression)
	}
	if _, ok := acks[o.Acks]; !ok {
		return fmt.Errorf("unknown acks %q: 0, 1 or all", o.Acks)
	}
	return nil
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
	"zstd": kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

// producing returns the options of a producer's client. As with Kafka's own
// client, acks=all is idempotent, and five requests are under way to a broker.
func (o *Options) producing() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...), kgo.RequiredAcks(acks[o.Acks]), kgo.ProducerLinger(o.Linger),
		kgo.ProducerBatchMaxBytes(int32(o.BatchBytes)), kgo.ProducerBatchCompression(codecs[o.Compression]),
		kgo.MaxBufferedRecords(o.InFlight + 1), kgo.UnknownTopicRetries(-1),
	}
	if o.Acks != "all" {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5))
	}
	if o.Pinned {
		return append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	return append(opts, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
}
