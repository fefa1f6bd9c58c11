package workload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
)

// Timestamps that stand for offsets in ListOffsets.
const (
	latest   int64 = -1
	earliest int64 = -2
)

// listOffset asks the leader once where a partition's log begins or ends, and
// tells the history. False: it did not say.
func (c *client) listOffset(ctx context.Context, p *position, which int64, isolation int8) (int64, bool) {
	m := c.meta.Partition(p.topic, p.id, p.partition)
	if m == nil || m.Leader < 0 {
		c.refresh(ctx, p.topic)
		return 0, false
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel, req.TimeoutMillis = -1, isolation, 1000
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = p.topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.CurrentLeaderEpoch, rp.Timestamp = p.partition, m.Epoch, which
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	answer := c.named(ctx, m.Leader, p, req)
	if answer == nil {
		return 0, false
	}
	r := answer.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	if e := model.Error(r.ErrorCode); e != model.None {
		if outcome.Stale(e) {
			c.refresh(ctx, p.topic)
		}
		return 0, false
	}
	c.env.listed(p, which, isolation, r.Offset)
	return r.Offset, true
}

// named sends a request that names a topic, not its id, to a broker. Where topics
// come again under their names, the answer counts only if the broker knew the
// right one before and after; nil is no answer.
func (c *client) named(ctx context.Context, broker int32, p *position, req kmsg.Request) kmsg.Response {
	if !c.knows(ctx, broker, p) {
		c.refresh(ctx, p.topic)
		return nil
	}
	answer, err := c.askBroker(ctx, broker, req, 0)
	if err != nil || !c.knows(ctx, broker, p) {
		c.refresh(ctx, p.topic)
		return nil
	}
	return answer
}

// knows says whether the topic that bears the name on this broker is the one of
// the position.
func (c *client) knows(ctx context.Context, broker int32, p *position) bool {
	if !c.env.Options.DeleteTopics {
		return true
	}
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(p.topic)
	req.Topics = append(req.Topics, t)
	answer, err := c.askBroker(ctx, broker, req, 0)
	return err == nil && model.UUID(answer.(*kmsg.MetadataResponse).Topics[0].TopicID) == p.id
}

// validate asks the leader of a new epoch where the epoch of the last record that
// was read ended: if before the position, what was read is gone (KIP-320).
func (r *reader) validate(ctx context.Context, p *position, m *metadata.Partition) bool {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
	rt.Topic = p.topic
	rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	rp.Partition, rp.CurrentLeaderEpoch, rp.LeaderEpoch = p.partition, m.Epoch, p.epoch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	answer := r.c.named(ctx, m.Leader, p, req)
	if answer == nil {
		r.c.pause(ctx, 3)
		return false
	}
	a := answer.(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0]
	if e := model.Error(a.ErrorCode); e != model.None {
		if outcome.Stale(e) {
			r.c.refresh(ctx, p.topic)
		}
		r.c.pause(ctx, 2)
		return false
	}
	switch {
	case a.LeaderEpoch < 0 || a.EndOffset < 0: // the leader knows nothing of that time
		r.c.env.note("%s-%d: epoch %d is not known", p.topic, p.partition, p.epoch)
		return r.begin(ctx, p, earliest)
	case a.EndOffset < p.offset:
		was := p.offset
		p.offset, p.epoch = a.EndOffset, a.LeaderEpoch
		r.c.env.truncated(p, was)
	}
	return true
}
