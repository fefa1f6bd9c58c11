// Command cmd puts a load on a Kafka cluster and prints what it measured as JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/tidemark-log/tidemark/bench/load"
)

func main() {
	o, create := options()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, create); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func options() (o load.Options, create bool) {
	brokers := flag.String("brokers", "127.0.0.1:9092", "where to connect first, comma-separated")
	flag.StringVar(&o.Topic, "topic", "load", "the topic")
	flag.BoolVar(&create, "create", true, "create the topic if it is not there")
	flag.IntVar(&o.Partitions, "partitions", 6, "partitions of the topic")
	flag.IntVar(&o.ReplicationFactor, "rf", 1, "replication factor of the topic")
	flag.IntVar(&o.Producers, "producers", 1, "producing clients; 0: consumers read what is there from the start")
	flag.IntVar(&o.Consumers, "consumers", 0, "clients that each read everything")
	flag.IntVar(&o.RecordBytes, "size", 1024, "bytes of a record's value, at least 16")
	flag.IntVar(&o.BatchBytes, "batch", 1<<20-1000, "bytes of a batch at most")
	flag.DurationVar(&o.Linger, "linger", 0, "how long a batch waits for company")
	flag.StringVar(&o.Compression, "compression", "none", "none, gzip, snappy, lz4 or zstd")
	flag.StringVar(&o.Acks, "acks", "all", "0, 1 or all; all is idempotent")
	flag.Float64Var(&o.Rate, "rate", 0, "records a second of all producers together, latency counted from the intended time; 0: as fast as acknowledged")
	flag.Int64Var(&o.Records, "records", 0, "records to send, or to read without producers; 0: until -duration is over")
	flag.DurationVar(&o.Duration, "duration", 0, "how long to send; 0: until -records are sent")
	flag.DurationVar(&o.Warmup, "warmup", 0, "the start of the load that is not measured")
	flag.IntVar(&o.InFlight, "in-flight", 200_000, "unacknowledged records of a producer at most")
	flag.BoolVar(&o.Pinned, "pinned", false, "each producer writes to one partition")
	flag.IntVar(&o.FlushMessages, "flush-messages", 0, "flush.messages of the topic that is created: a log is synced after so many records; 0: as the broker does")
	flag.Parse()
	o.Brokers = strings.Split(*brokers, ",")
	return o, create
}

func run(ctx context.Context, o load.Options, create bool) error {
	if create {
		if err := load.Create(ctx, o); err != nil {
			return fmt.Errorf("create topic %s: %w", o.Topic, err)
		}
	}
	res, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(res)
}
