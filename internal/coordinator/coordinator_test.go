package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// cluster is brokers that share the logs of __consumer_offsets: whatever the
// leader appends is everywhere at once.
type cluster struct {
	t       *testing.T
	mu      sync.Mutex
	logs    map[int32][]byte // whole batches
	ends    map[int32]model.Offset
	batches int
	stuck   bool // the high watermark does not move
	waiting []func(model.Error)
	refuse  model.Error   // of appends
	gate    chan struct{} // loads wait for it
	img     *image.Image
	brokers []*Coordinator
}

const (
	partitions = 4
	maxBatch   = 10_000
)

var offsetsID = model.UUID{9}

// host is the cluster as one broker sees it.
type host struct{ *cluster }

func (h host) Bounds(ctx context.Context, p int32, _ model.Epoch) (model.Offset, model.Offset, model.Error) {
	select {
	case <-h.gate:
	case <-ctx.Done():
		return 0, 0, model.ErrNotLeaderOrFollower
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return 0, h.ends[p], model.None
}

func (h host) Read(p int32, from, end model.Offset, maxBytes int) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for head, batch := range record.Split(h.logs[p]) {
		if head.Next() > from {
			return batch, nil // one at a time
		}
	}
	return nil, errors.New("read past the end")
}

func (h host) Append(p int32, epoch model.Epoch, batch []byte, done func(model.Error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != model.None {
		done(h.refuse)
		return
	}
	if len(batch) > maxBatch {
		h.t.Errorf("a batch of %d bytes", len(batch))
	}
	record.Stamp(batch, h.ends[p], epoch)
	head, _ := record.ParseHeader(batch)
	h.logs[p] = append(h.logs[p], batch...)
	h.ends[p] = head.Next()
	h.batches++
	if h.stuck {
		h.waiting = append(h.waiting, done)
		return
	}
	done(model.None)
}

func (c *cluster) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// unstick lets the high watermark pass everything.
func (c *cluster) unstick() {
	c.set(func() {
		c.stuck = false
		for _, done := range c.waiting {
			done(model.None)
		}
		c.waiting = nil
	})
	synctest.Wait()
}

type testClock struct{ origin time.Time }

func (c testClock) Now() model.Time    { return model.Time(time.Since(c.origin)) }
func (c testClock) Wall() model.Millis { return model.Millis(time.Now().UnixMilli()) }

// newCluster starts two brokers; the first leads all partitions.
func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, logs: map[int32][]byte{}, ends: map[int32]model.Offset{}, gate: make(chan struct{}), img: image.New()}
	close(c.gate)
	for id := range model.BrokerID(2) {
		k := New(Options{
			ID: id, MaxBatch: maxBatch, Host: host{c}, Clock: testClock{time.Now()}, Log: slog.New(slog.DiscardHandler),
			Group: group.Config{
				MinSession: time.Second, MaxSession: time.Minute, MaxSize: 100, MetadataMax: 8000,
				Retention: time.Hour, CheckInterval: 10 * time.Minute, WriteTimeout: 5 * time.Second,
			},
		})
		k.Run()
		t.Cleanup(k.Close)
		c.brokers = append(c.brokers, k)
	}
	recs := []metalog.Record{&metalog.Topic{Name: Topic, TopicID: offsetsID}, &metalog.Topic{Name: "t", TopicID: model.UUID{1}}}
	for p := range int32(partitions) {
		recs = append(recs, &metalog.Partition{PartitionID: p, TopicID: offsetsID, Replicas: []model.BrokerID{0, 1}, ISR: []model.BrokerID{0, 1}})
	}
	recs = append(recs, &metalog.Partition{TopicID: model.UUID{1}, Replicas: []model.BrokerID{0}, ISR: []model.BrokerID{0}})
	c.apply(recs...)
	return c
}

func (c *cluster) apply(recs ...metalog.Record) {
	c.t.Helper()
	old := c.img
	c.img = old.Apply(recs, old.End()+1, 1)
	d := image.Diff(old, c.img)
	for _, k := range c.brokers {
		k.Apply(d)
	}
	synctest.Wait()
}

// move makes another broker lead a partition, NoBroker for none.
func (c *cluster) move(p int32, to model.BrokerID) {
	c.t.Helper()
	old := c.img
	change := metalog.NewPartitionChange(offsetsID, p)
	change.Leader = to
	c.apply(change)
	now := c.img.Partition(offsetsID, p)
	if now.Leader != to || now.LeaderEpoch == old.Partition(offsetsID, p).LeaderEpoch {
		c.t.Fatalf("the image says leader %d in epoch %d", now.Leader, now.LeaderEpoch)
	}
}

// post sends a request; the answer arrives in the channel.
func (c *cluster) post(broker int, req kmsg.Request) chan kmsg.Response {
	got := make(chan kmsg.Response, 2)
	c.brokers[broker].Handle(req, "client", "10.0.0.1", func(r kmsg.Response) { got <- r })
	synctest.Wait()
	return got
}

// ask sends a request that is answered at once.
func ask[R kmsg.Response](c *cluster, broker int, req kmsg.Request) R {
	c.t.Helper()
	return answered[R](c, c.post(broker, req))
}

func answered[R kmsg.Response](c *cluster, got chan kmsg.Response) R {
	c.t.Helper()
	select {
	case r := <-got:
		return r.(R)
	default:
		c.t.Fatal("no answer")
		panic("unreachable")
	}
}

func join(id string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 3, "g", id, 10_000, 30_000
	req.ProtocolType = "consumer"
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("m")}}
	return req
}

func syncGroup(id string, generation int32) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 4, "g", id, generation
	req.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: id, MemberAssignment: []byte("all")}}
	return req
}

func heartbeat(id string, generation int32) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 4, "g", id, generation
	return req
}

func commit(group string, offset int64, metadata string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group = 9, group
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.Metadata = offset, &metadata
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return req
}

func committed(r *kmsg.OffsetCommitResponse) model.Error {
	return model.Error(r.Topics[0].Partitions[0].ErrorCode)
}

func fetch(groups ...string) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 9
	for _, g := range groups {
		e := kmsg.NewOffsetFetchRequestGroup()
		e.Group = g
		req.Groups = append(req.Groups, e)
	}
	return req
}

// offsets prints "group:offset" or "group:ERROR" for each group.
func offsets(r *kmsg.OffsetFetchResponse) string {
	var out []string
	for _, g := range r.Groups {
		switch {
		case g.ErrorCode != 0:
			out = append(out, g.Group+":"+model.Error(g.ErrorCode).Error())
		case len(g.Topics) == 0:
			out = append(out, g.Group+":none")
		default:
			out = append(out, fmt.Sprintf("%s:%d", g.Group, g.Topics[0].Partitions[0].Offset))
		}
	}
	return strings.Join(out, " ")
}

// formed makes a stable group of one member and returns its id.
func formed(c *cluster) string {
	c.t.Helper()
	j := ask[*kmsg.JoinGroupResponse](c, 0, join(""))
	if j.ErrorCode != 0 || j.Generation != 1 {
		c.t.Fatalf("join: %v", j)
	}
	if s := ask[*kmsg.SyncGroupResponse](c, 0, syncGroup(j.MemberID, 1)); s.ErrorCode != 0 {
		c.t.Fatalf("sync: %v", s)
	}
	return j.MemberID
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
