package load_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

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

func TestTheFirstRecordIsAcknowledgedByAllReplicas(t *testing.T) {
	c := tidetest.New(t, 3)
	if err := load.First(t.Context(), c.Addrs(), 3); err != nil {
		t.Fatal(err)
	}
	if err := load.AwaitInSync(t.Context(), c.Addrs(), "first", 3, 3); err != nil {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := load.First(ended, c.Addrs(), 9); err == nil {
		t.Error("three brokers hold nine replicas")
	}
}

func TestAKilledLeaderIsAnOutage(t *testing.T) {
	c := tidetest.New(t, 3)
	o := load.Options{Brokers: c.Addrs(), Topic: "watched", Partitions: 3, ReplicationFactor: 3}
	if err := load.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w, err := load.NewWatch(t.Context(), o.Brokers, o.Topic, o.Partitions, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Outage(t.Context(), time.Now(), []int32{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	led, controller, err := load.Leaders(t.Context(), o.Brokers, o.Topic)
	if err != nil || len(led) != 3 || controller < 1 || controller > 3 {
		t.Fatalf("%v are led, %d controls, %v", led, controller, err)
	}
	at := time.Now()
	c.Kill(2)
	if d, err := w.Outage(t.Context(), at, led[2]); err != nil || d <= 0 {
		t.Errorf("%v, %v", d, err)
	}
	if led, _, err = load.Leaders(t.Context(), o.Brokers, o.Topic); err != nil || len(led[2]) != 0 {
		t.Errorf("%v are led, %v", led, err)
	}
	c.Restart(2)
	if err := load.Prefer(t.Context(), o.Brokers, o.Topic); err != nil {
		t.Fatal(err)
	}
	if led, _, err = load.Leaders(t.Context(), o.Brokers, o.Topic); err != nil || len(led[2]) != 1 {
		t.Errorf("%v are led, %v", led, err)
	}
}

func TestIdleGroupsHaveAnOffsetEach(t *testing.T) {
	c := tidetest.New(t, 3)
	o := load.Options{Brokers: c.Addrs(), Topic: "read"}
	if err := load.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, to := range []int{5, 40} {
		if err := load.CommitIdle(t.Context(), c.Addrs(), o.Topic, to/8, to); err != nil {
			t.Fatal(err)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	all := kadm.NewClient(cl).FetchManyOffsets(t.Context(), "idle-0", "idle-39")
	for name, got := range all {
		if at, ok := got.Fetched.Lookup(o.Topic, 0); !ok || at.At != 0 || got.Err != nil {
			t.Errorf("%s: %+v, %v", name, at, got.Err)
		}
	}
	groups, err := kadm.NewClient(cl).ListGroups(t.Context())
	if err != nil || len(groups) != 40 || len(all) != 2 {
		t.Errorf("%d groups, %v", len(groups), err)
	}
}
