package least

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
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
	c, err := Listen(t.TempDir(), nodes, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Serve() }()
	t.Cleanup(func() {
		c.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
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
		req := kmsg.NewPtrProduceRequest()
		req.Version, req.Acks = 8, -1
		topic, part := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		part.Records = slices.Clone(batchOf(t))
		part.Records[len(part.Records)-1] ^= byte(spoil)
		topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
		req.Topics = append(req.Topics, topic)
		resp, err := cl.Broker(1).Request(t.Context(), req)
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

// batchOf takes a batch of one record off a client.
func batchOf(t *testing.T) []byte {
	t.Helper()
	c := serving(t, 1)
	cl := client(t, c, kgo.DefaultProduceTopic("t"))
	r, err := cl.ProduceSync(t.Context(), kgo.StringRecord("a value")).First()
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

func TestItsCommandStartsNamesAndEndsIt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	t.Setenv(asCommand, "1")
	self, dir := []string{os.Args[0]}, filepath.Join(t.TempDir(), "state")
	if err := start(self, dir, 1, port); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("%v\n%s", err, log)
	}
	pid, err := process(dir)
	if err != nil || ended(pid) {
		t.Errorf("process %d ended, or %v", pid, err)
	}
	if err := stop(dir); err != nil || !ended(pid) {
		t.Errorf("process %d goes on, %v", pid, err)
	}
	if err := Command(self, []string{"restart", "-d", dir}); err == nil {
		t.Error("it can be restarted")
	}
}

// asCommand makes the test's own binary the command.
const asCommand = "TIDEMARK_LEAST"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	if err := Command(os.Args[:1], os.Args[1:]); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}
