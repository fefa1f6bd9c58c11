package workload

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Mover gives partitions other replicas, as many as they have, in another order.
// Now and then it thinks better of it while the replicas still move.
type Mover struct{}

// Name is that of the workload.
func (Mover) Name() string { return "admin-move" }

// Run goes on until ctx ends.
func (Mover) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	for env.restLong(ctx) {
		s, ok := c.somewhere(ctx)
		if !ok {
			return
		}
		target := c.target(s)
		if len(target) == 0 {
			continue
		}
		c.said("move", s, c.assign(ctx, s, target))
		for env.rest(ctx) && c.moving(ctx, s) {
			if env.chance(6) {
				c.said("stay", s, c.assign(ctx, s, nil))
			}
			if env.chance(10) {
				break
			}
		}
	}
}

// target picks live brokers, as many as the topic was created with replicas;
// nobody when there are too few.
func (c *client) target(s site) []int32 {
	ids := c.meta.IDs()
	n := len(s.meta.Replicas)
	for _, t := range c.env.Options.Topics {
		if t.Name == s.topic.Name {
			n = int(t.Replicas)
		}
	}
	if len(ids) < n {
		return nil
	}
	c.env.Rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:n]
}

// assign asks for other replicas; without any it cancels.
func (c *client) assign(ctx context.Context, s site, replicas []int32) model.Error {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = int32(adminTimeout.Milliseconds())
	t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	t.Topic = s.topic.Name
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	p.Partition, p.Replicas = s.partition, replicas
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	answer, err := c.askAny(ctx, req, adminTimeout)
	if err != nil {
		return noCode
	}
	resp := answer.(*kmsg.AlterPartitionAssignmentsResponse)
	if resp.ErrorCode != 0 {
		return model.Error(resp.ErrorCode)
	}
	return model.Error(resp.Topics[0].Partitions[0].ErrorCode)
}

// moving asks whether the partition still moves; no answer counts as no.
func (c *client) moving(ctx context.Context, s site) bool {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.TimeoutMillis = int32(adminTimeout.Milliseconds())
	if c.env.chance(2) {
		t := kmsg.NewListPartitionReassignmentsRequestTopic()
		t.Topic, t.Partitions = s.topic.Name, []int32{s.partition}
		req.Topics = append(req.Topics, t)
	}
	answer, err := c.askAny(ctx, req, adminTimeout)
	if err != nil {
		return false
	}
	for _, t := range answer.(*kmsg.ListPartitionReassignmentsResponse).Topics {
		if t.Topic == s.topic.Name && slices.ContainsFunc(t.Partitions,
			func(p kmsg.ListPartitionReassignmentsResponseTopicPartition) bool { return p.Partition == s.partition }) {
			return true
		}
	}
	return false
}
