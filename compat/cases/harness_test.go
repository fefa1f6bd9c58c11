// Package cases tests promises to users, each drawn from a bug that users of
// Kafka met. The tests run three real brokers on a network in memory and, but
// for those that need the disk's own time, on a fake clock: waits cost nothing.
// Loops run three times; with -full they run as often as the promise says.
package cases

import (
	"context"
	"flag"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/tidetest"
)

var full = flag.Bool("full", false, "run loops as often as the promise says, not three times")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loops is how often a case that says n runs.
func loops(n int) int {
	if *full {
		return n
	}
	return min(n, 3)
}

// world is a cluster with raw connections to its brokers.
type world struct {
	*tidetest.Cluster
	t     *testing.T
	conns map[int]*transport.Client
}

// inBubble runs f against a cluster on a fake clock.
func inBubble(t *testing.T, brokers int, f func(w *world), opts ...tidetest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(newWorld(t, brokers, opts...))
	})
}

func newWorld(t *testing.T, brokers int, opts ...tidetest.Option) *world {
	t.Helper()
	w := &world{t: t, conns: map[int]*transport.Client{}}
	w.Cluster = tidetest.New(t, brokers, append([]tidetest.Option{tidetest.InMemory()}, opts...)...)
	t.Cleanup(w.hangUp)
	return w
}

// hangUp closes all raw connections.
func (w *world) hangUp() {
	for id, c := range w.conns {
		c.Close()
		delete(w.conns, id)
	}
}

// dial opens a raw connection of its own to a broker.
func (w *world) dial(broker int) *transport.Client {
	w.t.Helper()
	c, err := transport.Dial(context.Background(), w.Addrs()[broker-1], transport.ClientOptions{ClientID: "case",
		Dial: func(ctx context.Context, addr string) (net.Conn, error) { return w.Dial(ctx, "tcp", addr) }})
	if err != nil {
		w.t.Fatalf("dial broker %d: %v", broker, err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// conn is the shared raw connection to a broker, made anew when it has ended.
func (w *world) conn(broker int) *transport.Client {
	w.t.Helper()
	if c := w.conns[broker]; c != nil {
		select {
		case <-c.Closed():
			c.Close()
		default:
			return c
		}
	}
	c, err := transport.Dial(context.Background(), w.Addrs()[broker-1], transport.ClientOptions{ClientID: "case",
		Dial: func(ctx context.Context, addr string) (net.Conn, error) { return w.Dial(ctx, "tcp", addr) }})
	if err != nil {
		w.t.Fatalf("dial broker %d: %v", broker, err)
	}
	w.conns[broker] = c
	return c
}

// ask sends a request, whose version is set, to a broker and returns its answer.
func ask[R kmsg.Response](w *world, broker int, req kmsg.Request) R {
	w.t.Helper()
	return askOn[R](w, w.conn(broker), req)
}

// askOn is ask on a connection of the test's own.
func askOn[R kmsg.Response](w *world, c *transport.Client, req kmsg.Request) R {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	resp, err := c.Do(ctx, req)
	if err != nil {
		w.t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp.(R)
}

// client is a franz-go client that looks for new leaders within 20 ms.
func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.Addrs()...), kgo.Dialer(w.Dial), kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		// A broker that dies under a new connection is not one that wants SASL.
		kgo.AlwaysRetryEOF()}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cl.Close)
	return cl
}

// batch is a record batch of these values, by no producer.
func batch(values ...string) []byte { return batchOf(record.PlainOptions(), values...) }

// batchOf is a record batch with header fields of the test's own.
func batchOf(o record.BatchOptions, values ...string) []byte {
	b := record.NewBuilder(o)
	for _, v := range values {
		b.Add(model.Millis(time.Now().UnixMilli()), nil, []byte(v))
	}
	return b.Bytes()
}

// produced is what one partition answered to a Produce.
type produced = kmsg.ProduceResponseTopicPartition

// produceRequest makes a Produce v9 for one partition.
func produceRequest(topic string, partition int32, acks int16, timeout time.Duration, set []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, int32(timeout.Milliseconds())
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, set
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// produce sends one batch to a broker and returns the partition's answer.
func (w *world) produce(broker int, topic string, acks int16, timeout time.Duration, set []byte) produced {
	w.t.Helper()
	resp := ask[*kmsg.ProduceResponse](w, broker, produceRequest(topic, 0, acks, timeout, set))
	return resp.Topics[0].Partitions[0]
}

// mustProduce writes values with acks=all to the leader, one batch each, and
// returns the offset of the first.
func (w *world) mustProduce(topic string, values ...string) int64 {
	w.t.Helper()
	first := int64(-1)
	for _, v := range values {
		p := w.produce(w.Leader(topic, 0), topic, -1, 30*time.Second, batch(v))
		if p.ErrorCode != 0 {
			w.t.Fatalf("produce %q: %v", v, model.Error(p.ErrorCode))
		}
		if first < 0 {
			first = p.BaseOffset
		}
	}
	return first
}

// fetched is what one partition answered to a Fetch.
type fetched = kmsg.FetchResponseTopicPartition

// wish is a Fetch of one partition. Zero values of the limits take Kafka's.
type wish struct {
	version        int16
	topic          string
	partition      int32
	offset         int64
	wait           time.Duration
	minBytes       int32
	maxBytes       int32
	partitionBytes int32
	currentEpoch   int32 // NoEpoch unless set by with...
	lastEpoch      int32
	rack           string
	committed      bool
}

// at wishes for records of a topic's partition 0 from an offset on, by Fetch v12
// without epochs.
func at(topic string, offset int64) wish {
	return wish{version: 12, topic: topic, offset: offset, minBytes: 1, maxBytes: 50 << 20, partitionBytes: 1 << 20,
		currentEpoch: -1, lastEpoch: -1}
}

// request makes the sessionless Fetch.
func (f wish) request() *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = f.version, int32(f.wait.Milliseconds()), f.minBytes, f.maxBytes
	req.SessionEpoch, req.Rack = -1, f.rack
	if f.committed {
		req.IsolationLevel = 1
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic = f.topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = f.partition, f.offset, f.partitionBytes
	p.CurrentLeaderEpoch, p.LastFetchedEpoch = f.currentEpoch, f.lastEpoch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// fetch sends the wish to a broker and returns the answer and how long it took.
func (w *world) fetch(broker int, f wish) (fetched, time.Duration) {
	w.t.Helper()
	start := time.Now()
	resp := askOn[*kmsg.FetchResponse](w, w.conn(broker), f.request())
	if resp.ErrorCode != 0 {
		w.t.Fatalf("fetch: %v", model.Error(resp.ErrorCode))
	}
	return resp.Topics[0].Partitions[0], time.Since(start)
}

// values are the records of an answer, from an offset on.
func (w *world) values(p fetched, from int64) []string {
	w.t.Helper()
	var out []string
	for _, b := range record.Split(p.RecordBatches) {
		if !record.Valid(b) {
			w.t.Fatalf("a batch with a bad checksum")
		}
		if err := record.Records(b, func(r *record.Record) bool {
			if int64(r.Offset) >= from {
				out = append(out, string(r.Value))
			}
			return true
		}); err != nil {
			w.t.Fatalf("records: %v", err)
		}
	}
	return out
}

// list asks a broker for an offset of partition 0 by ListOffsets v7; -1 is
// latest, -2 earliest.
func (w *world) list(broker int, topic string, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	w.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.CurrentLeaderEpoch, p.Timestamp = -1, timestamp
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.ListOffsetsResponse](w, broker, req).Topics[0].Partitions[0]
}

// code checks one error code.
func code(t testing.TB, what string, got int16, want ...model.Error) {
	t.Helper()
	for _, c := range want {
		if got == c.Code() {
			return
		}
	}
	t.Errorf("%s: %v, want %v", what, model.Error(got), want)
}

// about checks a time that should have passed.
func about(t testing.TB, what string, got, want, slack time.Duration) {
	t.Helper()
	if got < want-slack || got > want+slack {
		t.Errorf("%s took %v, want %v give or take %v", what, got, want, slack)
	}
}

// followers are the replicas of partition 0 other than its leader.
func (w *world) followers(topic string) []int {
	leader := w.Leader(topic, 0)
	var out []int
	for _, m := range w.Marks(topic, 0) {
		if m.Broker != leader {
			out = append(out, m.Broker)
		}
	}
	return out
}

// steady keeps a paused follower in the ISR for the time of a case.
func steady() []tidetest.Option {
	return []tidetest.Option{tidetest.Set("replica.lag.time.max.ms", "60000"), tidetest.Set("broker.session.timeout.ms", "60000")}
}

// brisk lets a slow follower leave the ISR after two seconds, and no broker be
// fenced meanwhile.
func brisk() []tidetest.Option {
	return []tidetest.Option{tidetest.Set("replica.lag.time.max.ms", "2000"), tidetest.Set("broker.session.timeout.ms", "60000")}
}

// minISR is the topic config of a minimum.
func minISR(n int) map[string]string {
	return map[string]string{"min.insync.replicas": fmt.Sprint(n)}
}

// pass lets fake time go by.
func pass(d time.Duration) { <-time.After(d) }
