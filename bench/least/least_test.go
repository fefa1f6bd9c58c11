package least

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/bench/load"
)

// serving starts a cluster that ends with the test.
func serving(t *testing.T, nodes int) *Cluster {
	t.Helper()
	c, end := started(t, nodes)
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// started starts a cluster and returns what ends it. It must leave no file and no
// connection open then.
func started(t *testing.T, nodes int) (*Cluster, func() error) {
	t.Helper()
	c, err := Listen(t.TempDir(), nodes, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Serve() }()
	return c, func() error {
		c.Close()
		err := <-ended
		for _, p := range c.logs {
			if _, err := p.file.Stat(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s is open: %v", p.file.Name(), err)
			}
		}
		if left, err := os.ReadDir(c.dir); len(left) > 0 || len(c.conns) > 0 || err != nil {
			t.Errorf("%d files and %d connections are left, %v", len(left), len(c.conns), err)
		}
		return err
	}
}

func TestAClusterThatEndedMakesNoFiles(t *testing.T) {
	c, end := started(t, 1)
	if _, err := c.at("t", 0); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if _, err := c.at("t", 1); err == nil {
		t.Error("a partition was made after the end")
	}
	if _, err := os.Stat(filepath.Join(c.dir, "t-1.log")); err == nil {
		t.Error("a file is left")
	}
}

// The load itself tells when it did not read what was acknowledged.
func TestTheClientOfALoadIsServed(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		c := serving(t, nodes)
		o := load.Options{Brokers: c.Addresses(), ReplicationFactor: nodes, Producers: 2, Consumers: 1, Records: 20_000}
		if err := load.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			res, err := load.Run(t.Context(), o)
			if err != nil || res.All != 20_000 || res.Read != 20_000 {
				t.Fatalf("%d nodes: %+v, %v", nodes, res, err)
			}
		}
		res, err := load.Run(t.Context(), load.Options{Brokers: c.Addresses(), Consumers: 1, Records: 40_000})
		if err != nil || res.Read != 40_000 {
			t.Errorf("%d nodes: %+v, %v", nodes, res, err)
		}
	}
}

// What is read has offsets without a gap and the values that were sent, also from the
// middle of a batch on.
func TestRecordsComeBackAsTheyWere(t *testing.T) {
	c := serving(t, 1)
	cl := client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	var want [][]byte
	for i := range 3000 {
		value := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 1+i%900)
		want = append(want, value)
		cl.Produce(t.Context(), &kgo.Record{Topic: "t", Partition: 4, Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	const from = 1234
	reader := client(t, c, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {4: kgo.NewOffset().At(from)}}))
	var got [][]byte
	for len(got) < len(want)-from {
		fetches := reader.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != int64(from+len(got)) {
				t.Errorf("offset %d came in place of %d", r.Offset, from+len(got))
			}
			got = append(got, r.Value)
		})
	}
	if !slices.EqualFunc(got, want[from:], bytes.Equal) {
		t.Error("other values came back")
	}
}

func client(t *testing.T, c *Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(c.Addresses()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// A floor that does not look would be too low.
func TestAWrongSumIsRefusedAndLeavesNothing(t *testing.T) {
	c := serving(t, 1)
	cl := client(t, c)
	produce := func(spoil int) int16 {
		records := batchOf(t, "a value")
		records[len(records)-1] ^= byte(spoil)
		resp, err := cl.Broker(1).Request(t.Context(), produceOf(8, -1, records))
		if err != nil {
			t.Fatal(err)
		}
		return resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
	}
	if err := cl.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		spoil int
		code  int16
		end   int64
	}{{1, kerr.CorruptMessage.Code, 0}, {0, 0, 1}, {128, kerr.CorruptMessage.Code, 1}, {0, 0, 2}} {
		if code := produce(step.spoil); code != step.code {
			t.Errorf("%+v: code %d", step, code)
		}
		l, err := c.at("t", 0)
		if err != nil || l.next != step.end || len(l.batches) != int(step.end) {
			t.Errorf("%+v: the log ends at %d, %v", step, l.next, err)
		}
	}
}

// produceOf asks for partition 0 of topic t.
func produceOf(version, acks int16, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks = version, acks
	topic, part := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	part.Records = records
	topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	return req
}

// batchOf takes a batch of one record off a client.
func batchOf(t *testing.T, value string) []byte {
	t.Helper()
	c := serving(t, 1)
	cl := client(t, c, kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	r, err := cl.ProduceSync(t.Context(), kgo.StringRecord(value)).First()
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.at("t", r.Partition)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, l.size)
	if _, err := l.file.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if got := binary.BigEndian.Uint32(b[8:]); int64(got)+12 != l.size {
		t.Fatalf("a batch of %d bytes in a log of %d", got, l.size)
	}
	return b
}
