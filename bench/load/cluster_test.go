package load_test

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/bench/load"
	"github.com/tidemark-log/tidemark/tidetest"
)

// Loads of each kind, one after the other on the same topic: each counts its own
// records alone, and readers get exactly what was acknowledged.
func TestEveryRecordIsAcknowledgedAndReadByEveryReader(t *testing.T) {
	c := tidetest.New(t, 3)
	topic := load.Options{Brokers: c.Addrs(), Partitions: 4, ReplicationFactor: 3}
	if err := load.Create(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	for _, l := range []struct {
		name          string
		change        func(*load.Options)
		records, read int64
		latencies     bool
	}{
		{"closed loop", func(o *load.Options) { o.Producers, o.Consumers, o.Records = 2, 2, 501 }, 501, 1002, true},
		{"one in flight", func(o *load.Options) { o.Producers, o.InFlight, o.Pinned, o.Records = 5, 1, true, 100 }, 100, 0, true},
		{"acks=1, compressed", func(o *load.Options) { o.Producers, o.Acks, o.Compression, o.Records = 1, "1", "lz4", 100 }, 100, 0, true},
		{"open loop", func(o *load.Options) {
			o.Producers, o.Consumers, o.Rate, o.Duration, o.Warmup = 2, 1, 1000, 200*time.Millisecond, 50*time.Millisecond
		}, 150, 150, true},
		{"readers alone", func(o *load.Options) { o.Consumers, o.Records = 1, 901 }, 0, 901, false},
	} {
		o := topic
		o.RecordBytes = 100
		l.change(&o)
		got, err := load.Run(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", l.name, err)
		}
		if got.Records != l.records || got.Read < l.read || got.Bytes != l.records*100 || (got.Produce != nil) != l.latencies {
			t.Errorf("%s: %+v", l.name, got)
		}
		if got.EndToEnd != nil && (got.Read != l.read || got.EndToEnd.Count != l.read) {
			t.Errorf("%s: %d were read, %+v", l.name, got.Read, got.EndToEnd)
		}
	}
}

// Records that are too large end the load with an error.
func TestALoadThatIsRefusedFails(t *testing.T) {
	c := tidetest.New(t, 1)
	o := load.Options{Brokers: c.Addrs(), Topic: "large", Producers: 1, Consumers: 1, Records: 10, RecordBytes: 2 << 20}
	if err := load.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, err := load.Run(t.Context(), o); err == nil {
		t.Errorf("%+v", got)
	}
}
