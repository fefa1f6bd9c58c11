// Package tidetest runs a cluster of real brokers inside a Go test: replication,
// elections and failures as in production, in this process.
package tidetest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/cluster"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// wait bounds everything that a cluster is waited for.
const wait = 30 * time.Second

// Cluster is a set of brokers, with ids from 1, that ends with its test.
type Cluster struct {
	t testing.TB
	c *cluster.Cluster
}

// Option changes the cluster that New starts.
type Option func(*cluster.Options)

// Set gives every broker one of Kafka's keys.
func Set(key, value string) Option {
	return func(o *cluster.Options) { o.Set[key] = value }
}

// Racks places the brokers, in order of their ids.
func Racks(racks ...string) Option {
	return func(o *cluster.Options) { o.Racks = racks }
}

// InMemory puts the cluster's network into memory, so that the test may run in a
// synctest bubble on a fake clock. Clients reach it with Cluster.Dial.
func InMemory() Option {
	return func(o *cluster.Options) { o.Memory = true }
}

// Log receives what an operator would read.
func Log(l *slog.Logger) Option {
	return func(o *cluster.Options) { o.Log = l }
}

// New starts brokers and returns when all of them serve clients. The cluster
// ends, without a goroutine or a file left, when the test does.
func New(t testing.TB, brokers int, opts ...Option) *Cluster {
	t.Helper()
	o := cluster.Options{Nodes: brokers, Dir: t.TempDir(), Set: map[string]string{}, Faults: true}
	for _, f := range opts {
		f(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	c, err := cluster.Start(ctx, o)
	if err != nil {
		t.Fatalf("tidetest: %v", err)
	}
	t.Cleanup(c.Abandon)
	return &Cluster{t: t, c: c}
}

// Addrs are the brokers' addresses, in order of their ids: a client's seeds.
func (c *Cluster) Addrs() []string { return c.c.Addrs() }

// Dial connects to a broker: the dialer of a client of an InMemory cluster.
func (c *Cluster) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	return c.c.Dial(ctx, addr)
}

// CreateTopic creates a topic and waits until every partition is replicated.
// config is Kafka's topic keys; nil is fine.
func (c *Cluster) CreateTopic(topic string, partitions, replicas int, config map[string]string) {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, int32(wait.Milliseconds())
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, int32(partitions), int16(replicas)
	for k, v := range config {
		rc := kmsg.NewCreateTopicsRequestTopicConfig()
		rc.Name, rc.Value = k, kmsg.StringPtr(v)
		rt.Configs = append(rt.Configs, rc)
	}
	req.Topics = append(req.Topics, rt)
	resp := c.forward(req).(*kmsg.CreateTopicsResponse)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		c.t.Fatalf("tidetest: create topic %s: %v", topic, model.Error(code))
	}
	c.until(fmt.Sprintf("%d replicas of each partition of %s fetch", replicas, topic), func() bool {
		for p := range partitions {
			marks := c.Marks(topic, p)
			if len(marks) != replicas || !slices.ContainsFunc(marks, func(m Mark) bool { return m.Leader }) {
				return false
			}
			for _, m := range marks {
				if m.Leader && slices.ContainsFunc(m.RemoteLEO, func(r Remote) bool { return r.LEO < 0 }) {
					return false
				}
			}
		}
		return true
	})
}

// forward has the active controller answer, whichever running node knows it.
func (c *Cluster) forward(req kmsg.Request) kmsg.Response {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	for id := 1; id <= c.c.Len(); id++ {
		if n := c.c.Node(id); n != nil {
			resp, err := n.Forward(ctx, req)
			if err != nil {
				c.t.Fatalf("tidetest: %T: %v", req, err)
			}
			return resp
		}
	}
	c.t.Fatalf("tidetest: no broker is running")
	return nil
}

// Kill ends a broker as SIGKILL would.
func (c *Cluster) Kill(broker int) { c.must(c.c.Kill(broker)) }

// Restart starts a broker that is down and waits until it serves.
func (c *Cluster) Restart(broker int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	c.must(c.c.Restart(ctx, broker))
}

// Stop ends a broker in an orderly way: its leaderships move first.
func (c *Cluster) Stop(broker int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	c.must(c.c.Stop(ctx, broker))
}

// Pause freezes a broker as SIGSTOP would: its connections stay, nothing moves.
func (c *Cluster) Pause(broker int) { c.c.Pause(broker) }

// Resume ends a Pause.
func (c *Cluster) Resume(broker int) { c.c.Resume(broker) }

// Cut stops all traffic between two brokers until Heal.
func (c *Cluster) Cut(a, b int) { c.c.Cut(a, b) }

// Heal ends a Cut.
func (c *Cluster) Heal(a, b int) { c.c.Heal(a, b) }

func (c *Cluster) must(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Fatalf("tidetest: %v", err)
	}
}

// Leader is the broker that leads a partition by the newest metadata, 0 if none.
func (c *Cluster) Leader(topic string, p int) int {
	if part := c.partition(topic, p); part != nil && part.Leader > 0 {
		return int(part.Leader)
	}
	return 0
}

// ISR is the in-sync replicas of a partition by the newest metadata, sorted.
func (c *Cluster) ISR(topic string, p int) []int {
	part := c.partition(topic, p)
	if part == nil {
		return nil
	}
	var out []int
	for _, b := range part.ISR {
		out = append(out, int(b))
	}
	slices.Sort(out)
	return out
}

// PartitionEpoch is the number of a partition's newest state: each change of its
// leader, its ISR or its replicas adds one. It is -1 for what does not exist.
func (c *Cluster) PartitionEpoch(topic string, p int) int32 {
	if part := c.partition(topic, p); part != nil {
		return int32(part.PartitionEpoch)
	}
	return -1
}

// Controller is the node that is the active controller by its own account, 0 if
// none is.
func (c *Cluster) Controller() int {
	best, epoch := 0, model.NoEpoch
	for id := 1; id <= c.c.Len(); id++ {
		if n := c.c.Node(id); n != nil {
			if active, e := n.Active(); int(active) == id && e > epoch {
				best, epoch = id, e
			}
		}
	}
	return best
}

// newest is the newest image that a running node has.
func (c *Cluster) newest() *image.Image {
	img := image.New()
	for id := 1; id <= c.c.Len(); id++ {
		if n := c.c.Node(id); n != nil && n.Image().End() > img.End() {
			img = n.Image()
		}
	}
	return img
}

func (c *Cluster) partition(topic string, p int) *image.Partition {
	t := c.newest().TopicByName(topic)
	if t == nil || p >= len(t.Partitions) {
		return nil
	}
	return t.Partitions[p]
}

// WaitISR waits until exactly these brokers are in sync.
func (c *Cluster) WaitISR(topic string, p int, brokers ...int) {
	c.t.Helper()
	want := slices.Sorted(slices.Values(brokers))
	c.until(fmt.Sprintf("ISR of %s-%d is %v", topic, p, want), func() bool {
		return slices.Equal(c.ISR(topic, p), want)
	})
}

// WaitLeader waits until a partition has a leader other than these and returns it.
func (c *Cluster) WaitLeader(topic string, p int, not ...int) int {
	c.t.Helper()
	leader := 0
	c.until(fmt.Sprintf("%s-%d has a leader other than %v", topic, p, not), func() bool {
		leader = c.Leader(topic, p)
		return leader != 0 && !slices.Contains(not, leader)
	})
	return leader
}

// WaitHW waits until the leader's high watermark is at least offset.
func (c *Cluster) WaitHW(topic string, p int, offset int64) {
	c.t.Helper()
	c.until(fmt.Sprintf("HW of %s-%d is at least %d", topic, p, offset), func() bool {
		for _, m := range c.Marks(topic, p) {
			if m.Leader && m.HW >= offset {
				return true
			}
		}
		return false
	})
}

// Mark is where one replica stands.
type Mark struct {
	Broker            int
	Leader            bool  // and takes requests
	Epoch             int32 // leader epoch
	LogStart, HW, LEO int64
	// RemoteLEO is what a leader remembers of each follower.
	RemoteLEO []Remote
}

// Remote is a follower as its leader knows it; LEO is -1 before its first fetch.
type Remote struct {
	Broker int
	LEO    int64
	InISR  bool
}

// Marks are the marks of a partition's replicas on the brokers that run, in
// order of broker ids.
func (c *Cluster) Marks(topic string, p int) []Mark {
	var out []Mark
	for id := 1; id <= c.c.Len(); id++ {
		n := c.c.Node(id)
		if n == nil {
			continue
		}
		for _, v := range n.Views() {
			if v.TP.Topic == topic && int(v.TP.Partition) == p {
				out = append(out, mark(id, v.Serving, v.View))
			}
		}
	}
	return out
}

func mark(id int, serving bool, v partition.View) Mark {
	m := Mark{Broker: id, Leader: serving, Epoch: int32(v.LeaderEpoch),
		LogStart: int64(v.Marks.LogStart), HW: int64(v.Marks.HW), LEO: int64(v.Marks.LEO)}
	for _, r := range v.Remotes {
		m.RemoteLEO = append(m.RemoteLEO, Remote{Broker: int(r.ID), LEO: int64(r.LEO), InISR: r.InISR})
	}
	return m
}

// until asks again and again, as often as the cluster can change, until what
// holds or the wait is over.
func (c *Cluster) until(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(wait)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			c.t.Fatalf("tidetest: waited %v in vain until %s", wait, what)
		}
		<-tick.C
	}
}
