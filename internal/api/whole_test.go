package api_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/api/preview"
	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/replicas"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/vfs"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// broker is the whole way of Produce and Fetch as a node has it, from a connection to the
// logs: a listener, the handlers, the loop of the replicas and its log writer. It leads
// every partition of topic t alone.
type broker struct {
	t    *testing.T
	conn net.Conn
	in   []byte // the last answer
}

var topicID = model.UUID{7}

// clock goes on; the wall clock stands still.
type clock struct{ began time.Time }

func (c clock) Now() model.Time    { return model.Time(time.Since(c.began)) }
func (c clock) Wall() model.Millis { return today }

const today = model.Millis(1_700_000_000_000)

// unheard is an Observer that nobody listens to.
type unheard struct{}

func (unheard) Reasons(model.TopicPartition, []partition.Reason) {}
func (unheard) Cut(model.TopicPartition, partition.Cut)          {}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newBroker starts a broker whose logs lie in a folder of a disk. first sees each request
// before its handler does; nil does not.
func newBroker(t *testing.T, disk vfs.FS, folder string, partitions int32, first func(*transport.Request)) *broker {
	t.Helper()
	dir, err := storage.OpenDir(disk, folder, storage.DirOptions{ClusterID: "c", NodeID: 1, Manual: true})
	must(t, err)
	t.Cleanup(func() { dir.Close() })
	at := clock{time.Now()}
	loop, err := replicas.Start(replicas.Options{ID: 1, Clock: at, Log: slog.New(slog.DiscardHandler), Observer: unheard{},
		Dir: t.TempDir(), LagMax: 30 * time.Second, Fail: func(err error) { t.Error(err) }})
	must(t, err)
	t.Cleanup(func() {
		loop.StopFetching()
		loop.Close()
	})
	img := imageOf(partitions)
	lead(t, loop, dir, img)
	handlers := api.New(api.Options{ID: 1, Data: dataPath(loop, img, at)})
	t.Cleanup(handlers.Close)
	return &broker{t: t, in: make([]byte, 1<<20), conn: serve(t, func(r *transport.Request) {
		if first != nil {
			first(r)
		}
		handlers.Serve(r)
	})}
}

// serve returns a connection to a listener that has h serve requests.
func serve(t *testing.T, h transport.HandlerFunc) net.Conn {
	t.Helper()
	s, err := transport.Listen("127.0.0.1:0", transport.Options{
		Preview: func(version int16) transport.Preview { return preview.New(version) }})
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(h) }()
	conn, err := net.Dial("tcp", s.Addr().String())
	must(t, err)
	t.Cleanup(func() {
		conn.Close()
		s.Close(context.Background())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

func imageOf(partitions int32) *image.Image {
	recs := []metalog.Record{&metalog.RegisterBroker{BrokerID: 1, BrokerEpoch: 10}, &metalog.Topic{Name: "t", TopicID: topicID}}
	for id := range partitions {
		recs = append(recs, &metalog.Partition{PartitionID: id, TopicID: topicID, Leader: 1, Replicas: []model.BrokerID{1},
			ISR: []model.BrokerID{1}, Directories: []model.UUID{{1}}})
	}
	return image.New().Apply(recs, model.Offset(len(recs)), 1)
}

// lead has the loop lead all partitions, and returns when it does.
func lead(t *testing.T, loop *replicas.Loop, dir *storage.Dir, img *image.Image) {
	t.Helper()
	change := &replicas.Change{Peers: partition.Peers{1: {Epoch: 10}}}
	for id, to := range img.TopicByID(topicID).Partitions {
		tp := model.TopicPartition{Topic: "t", Partition: int32(id)}
		log, err := dir.Create(tp, topicID, storage.DefaultLogConfig(), today)
		must(t, err)
		h := &api.Hosted{TP: tp, ID: model.TopicIDPartition{TopicID: topicID, Partition: tp.Partition}, Log: log}
		change.Opened = append(change.Opened, replicas.Opened{Hosted: h, MinISR: 1})
		change.Assigned = append(change.Assigned, replicas.Assigned{Hosted: h, To: to})
	}
	loop.Change(change)
	for _, h := range loop.Hosted() {
		for settled := false; !settled; runtime.Gosched() {
			_, _, _, settled = loop.Settled(h, 0)
		}
	}
}

func dataPath(loop *replicas.Loop, img *image.Image, at clock) *api.DataPath {
	topic := config.TopicConfig(nil, nil)
	data := &api.DataPath{
		Self: 1, Replicas: loop, Image: func() *image.Image { return img }, Topic: func(string) *config.Topic { return &topic },
		Node: func(model.BrokerID, string) (wire.Node, bool) { return wire.Node{}, false },
		Now:  at.Now, Wall: at.Wall, FetchMaxBytes: 64 << 20,
	}
	data.Init(10, rand.New(rand.NewPCG(1, 2)).Int32)
	return data
}

// ask sends a frame and returns that of the answer, which lasts until the next one.
func (b *broker) ask(frame []byte) []byte {
	b.t.Helper()
	if _, err := b.conn.Write(frame); err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.ReadFull(b.conn, b.in[:4]); err != nil {
		b.t.Fatal(err)
	}
	answer := b.in[:binary.BigEndian.Uint32(b.in)]
	if _, err := io.ReadFull(b.conn, answer); err != nil {
		b.t.Fatal(err)
	}
	return answer
}

func frameOf(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 1)
}

// do sends a request and decodes its answer.
func do[R kmsg.Response](b *broker, req kmsg.Request) R {
	b.t.Helper()
	_, body, err := wire.ParseResponse(b.ask(frameOf(req)), wire.FlexibleResponseHeader(req.Key(), req.GetVersion()))
	must(b.t, err)
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	must(b.t, resp.ReadFrom(bytes.Clone(body)))
	return resp.(R)
}

// batchOf is a batch of small records.
func batchOf(records int) []byte {
	b := record.NewBuilder(record.PlainOptions())
	for range records {
		b.Add(today, []byte("key"), []byte("value"))
	}
	return b.Bytes()
}

// produceOf writes a batch to each of some partitions.
func produceOf(batch []byte, partitions int32) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 13, -1, 1000
	topic := kmsg.NewProduceRequestTopic()
	topic.TopicID = topicID
	for id := range partitions {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = id, batch
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	return req
}

// fetchOf reads so many bytes of each of some partitions from their starts on.
func fetchOf(bytes, partitions int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MinBytes, req.MaxBytes, req.SessionEpoch = 17, 1, 64<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.TopicID = topicID
	for id := range partitions {
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.PartitionMaxBytes = id, bytes
		topic.Partitions = append(topic.Partitions, part)
	}
	req.Topics = append(req.Topics, topic)
	return req
}

// produced checks that every batch was taken, and where it begins.
func (b *broker) produced(req *kmsg.ProduceRequest, base int64) {
	b.t.Helper()
	for _, p := range do[*kmsg.ProduceResponse](b, req).Topics[0].Partitions {
		if p.ErrorCode != 0 || p.BaseOffset != base {
			b.t.Errorf("partition %d: code %d, and the batch begins at %d, not %d", p.Partition, p.ErrorCode, p.BaseOffset, base)
		}
	}
}

// What a Produce and a Fetch allocate on their whole way depends on their partitions: ten
// records cost as much as ten thousand, be they looked at when all came or meanwhile.
func TestNothingIsAllocatedForEachRecord(t *testing.T) {
	few := wholeCosts(t, 10)
	for _, records := range []int{500, 10_000} {
		many := wholeCosts(t, records)
		for i, what := range []string{"Produce", "Fetch"} {
			t.Logf("a %s of 4 partitions: %v allocations with 10 records in each, %v with %d", what, few[i], many[i], records)
			if many[i] > few[i]+100 {
				t.Errorf("a %s allocates more with more records", what)
			}
		}
	}
}

// wholeCosts are the allocations of a Produce of so many records to each of four
// partitions, and of a Fetch of them.
func wholeCosts(t *testing.T, records int) [2]float64 {
	const partitions, rounds = 4, 20
	b := newBroker(t, vfs.OS, t.TempDir(), partitions, nil)
	batch := batchOf(records)
	produce, fetch := produceOf(batch, partitions), frameOf(fetchOf(int32(len(batch)), partitions))
	b.produced(produce, 0)
	frame := frameOf(produce)
	costs := [2]float64{testing.AllocsPerRun(rounds, func() { b.ask(frame) }), testing.AllocsPerRun(rounds, func() { b.ask(fetch) })}
	b.produced(produce, int64(records)*(1+1+rounds))
	if n := len(b.ask(fetch)); n < partitions*len(batch) {
		t.Errorf("%d bytes were fetched of %d batches of %d", n, partitions, len(batch))
	}
	return costs
}

// A large batch is summed, and its records are looked at, while it comes: that is not done
// again, so that what changes meanwhile is not noticed. It is in a small one, which comes at
// once.
func TestALargeBatchIsLookedAtOnce(t *testing.T) {
	b := newBroker(t, vfs.NewMem(), "/data", 1, func(r *transport.Request) {
		frame := r.Frame()
		for i := range 100 {
			frame[len(frame)-200+i] = 0xff // of its last records
		}
	})
	for records, want := range map[int]model.Error{100: model.ErrCorruptMessage, 10_000: model.None} {
		resp := do[*kmsg.ProduceResponse](b, produceOf(batchOf(records), 1))
		if got := model.Error(resp.Topics[0].Partitions[0].ErrorCode); got != want {
			t.Errorf("a batch of %d records that was changed: %v, not %v", records, got, want)
		}
	}
}

// A consumer that has read everything asks in its session and names nothing. It is told
// nothing, and a thousand partitions cost no more than one.
func TestAnIdleSessionOfAConsumerIsToldNothing(t *testing.T) {
	few, many := idleCosts(t, 1), idleCosts(t, 1000)
	t.Logf("%v allocations with 1 partition, %v with 1,000", few, many)
	if many > few+100 {
		t.Errorf("a turn with nothing to tell allocates more with more partitions: %v for one, %v for 1,000", few, many)
	}
}

// idleCosts are the allocations of a turn of a session of so many partitions in which
// nothing comes.
func idleCosts(t *testing.T, partitions int32) float64 {
	const rounds = 20
	b := newBroker(t, vfs.NewMem(), "/data", partitions, nil)
	req := fetchOf(1<<20, partitions)
	req.SessionEpoch, req.MaxWaitMillis = 0, 1
	opened := do[*kmsg.FetchResponse](b, req)
	if opened.SessionID == 0 || len(opened.Topics) != 1 || len(opened.Topics[0].Partitions) != int(partitions) {
		t.Fatalf("session %d of %d topics was opened: %v", opened.SessionID, len(opened.Topics), model.Error(opened.ErrorCode))
	}
	req.Topics, req.SessionID = nil, opened.SessionID
	var turns [][]byte
	for epoch := range int32(rounds + 1) { // the first one is not counted
		req.SessionEpoch = epoch + 1
		turns = append(turns, frameOf(req))
	}
	nothing := kmsg.NewFetchResponse()
	nothing.Version, nothing.SessionID = req.Version, opened.SessionID
	want := append([]byte{0, 0, 0, 1, 0}, nothing.AppendTo(nil)...)
	return testing.AllocsPerRun(rounds, func() {
		if got := b.ask(turns[0]); !bytes.Equal(got, want) {
			t.Errorf("the answer is %x, not %x", got, want)
		}
		turns = turns[1:]
	})
}
