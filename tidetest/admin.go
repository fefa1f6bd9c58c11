package tidetest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/cluster"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Delay has every byte of an InMemory cluster be under way for a while. Without
// it an exchange takes no time, and what happens between two messages is not
// seen.
func Delay(d time.Duration) Option {
	return func(o *cluster.Options) { o.Delay = d }
}

// Elect makes an in-sync replica the leader of a partition and returns its
// leader epoch once it takes requests. It does what an administrator does: the
// replica becomes the preferred one, then the preferred one is elected. The
// epoch rises by one, unless the replica leads already.
func (c *Cluster) Elect(topic string, p, broker int) int32 {
	c.t.Helper()
	if err := c.TryElect(context.Background(), topic, p, broker); err != nil {
		c.t.Fatalf("tidetest: elect broker %d: %v", broker, err)
	}
	epoch := int32(-1)
	c.until(fmt.Sprintf("broker %d leads %s-%d", broker, topic, p), func() bool {
		for _, m := range c.Marks(topic, p) {
			if m.Broker == broker && m.Leader {
				epoch = m.Epoch
			}
		}
		return epoch >= 0
	})
	return epoch
}

// TryElect is Elect without the wait for the new leader: for tests in which
// brokers fail meanwhile. The error is the controller's, or that of ctx.
func (c *Cluster) TryElect(ctx context.Context, topic string, p, broker int) error {
	part := c.partition(topic, p)
	if part == nil {
		return fmt.Errorf("there is no partition %s-%d", topic, p)
	}
	order := []int32{int32(broker)}
	for _, r := range part.Replicas {
		if int(r) != broker {
			order = append(order, int32(r))
		}
	}
	if part.Replicas[0] != model.BrokerID(broker) {
		if err := c.reassign(ctx, topic, p, order); err != nil {
			return err
		}
	}
	req := kmsg.NewPtrElectLeadersRequest()
	req.Version, req.TimeoutMillis = 2, int32(wait.Milliseconds())
	rt := kmsg.NewElectLeadersRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{int32(p)}
	req.Topics = append(req.Topics, rt)
	resp, err := c.admin(ctx, req)
	if err != nil {
		return err
	}
	switch e := model.Error(resp.(*kmsg.ElectLeadersResponse).Topics[0].Partitions[0].ErrorCode); e {
	case model.None, model.ErrElectionNotNeeded:
		return nil
	default:
		return e
	}
}

// Reassign gives a partition other replicas, the preferred leader first, and
// waits until they alone hold it.
func (c *Cluster) Reassign(topic string, p int, brokers ...int) {
	c.t.Helper()
	var target []int32
	for _, b := range brokers {
		target = append(target, int32(b))
	}
	if err := c.reassign(context.Background(), topic, p, target); err != nil {
		c.t.Fatalf("tidetest: reassign %s-%d to %v: %v", topic, p, brokers, err)
	}
	c.until(fmt.Sprintf("the replicas of %s-%d are %v", topic, p, brokers), func() bool {
		part := c.partition(topic, p)
		return slices.EqualFunc(part.Replicas, target, func(a model.BrokerID, b int32) bool { return int32(a) == b }) &&
			len(part.Adding)+len(part.Removing) == 0
	})
}

func (c *Cluster) reassign(ctx context.Context, topic string, p int, target []int32) error {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = int32(wait.Milliseconds())
	rt := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	rp.Partition, rp.Replicas = int32(p), target
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := c.admin(ctx, req)
	if err != nil {
		return err
	}
	r := resp.(*kmsg.AlterPartitionAssignmentsResponse)
	if e := model.Error(r.Topics[0].Partitions[0].ErrorCode); e != model.None {
		return fmt.Errorf("reassign: %w", e)
	}
	return nil
}

// admin sends a request to the active controller through the running node with
// the newest metadata, which no pause and no cut holds up.
func (c *Cluster) admin(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	n, newest := c.c.Node(1), model.Offset(-1)
	for id := 1; id <= c.c.Len(); id++ {
		if m := c.c.Node(id); m != nil && m.Image().End() > newest {
			n, newest = m, m.Image().End()
		}
	}
	if n == nil {
		return nil, fmt.Errorf("no broker is running")
	}
	return n.Forward(ctx, req)
}

// Running reports whether a broker's process is up, frozen or not.
func (c *Cluster) Running(broker int) bool { return c.c.Node(broker) != nil }

// LogDir is the directory of a broker's replica of a partition, for a test that
// edits files while the broker is down.
func (c *Cluster) LogDir(broker int, topic string, p int) string {
	return filepath.Join(c.c.Dir(broker), fmt.Sprintf("%s-%d", topic, p))
}

// Asked is how many requests a broker's replicas have sent to another broker
// since the cluster began: fetches, but for a few.
func (c *Cluster) Asked(from, to int) int64 { return c.c.Asked(from, to) }

// Leadership is who leads a partition in which epoch by the newest metadata; 0
// if nobody does.
func (c *Cluster) Leadership(topic string, p int) (broker int, epoch int32) {
	part := c.partition(topic, p)
	if part == nil || part.Leader <= 0 {
		return 0, -1
	}
	return int(part.Leader), int32(part.LeaderEpoch)
}

// WaitFor waits until holds does, for the 30 seconds that everything in this
// package is waited for at most; what completes "waited in vain until".
func (c *Cluster) WaitFor(what string, holds func() bool) {
	c.t.Helper()
	c.until(what, holds)
}
