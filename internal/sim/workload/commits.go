package workload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// commit commits the member's positions once.
func (m *member) commit(ctx context.Context) model.Error {
	if len(m.r.positions) == 0 {
		return model.None
	}
	if !m.find(ctx) {
		return noCode
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.TopicID = m.r.positions[0].id
	for _, p := range m.r.positions {
		if p.offset < 0 {
			continue
		}
		cp := kmsg.NewOffsetCommitRequestTopicPartition()
		cp.Partition, cp.Offset, cp.LeaderEpoch = p.partition, p.offset, p.epoch
		t.Partitions = append(t.Partitions, cp)
	}
	req.Topics = append(req.Topics, t)
	ops := m.c.env.commitCalled(m.group, t.TopicID, t.Partitions)
	answer, err := m.c.ask(ctx, m.coordinator, req, 0)
	if err != nil {
		m.c.env.commitReturned(ops, t.Partitions, nil)
		return noCode
	}
	resp := answer.(*kmsg.OffsetCommitResponse)
	m.c.env.commitReturned(ops, t.Partitions, resp)
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			if rp.ErrorCode != 0 {
				return model.Error(rp.ErrorCode)
			}
		}
	}
	return model.None
}

// resume sets the positions to what the group has committed; those without a
// commit begin at the earliest offset. It tries until it knows or the generation
// is over.
func (m *member) resume(ctx context.Context) bool {
	if len(m.r.positions) == 0 {
		return true
	}
	for n := 1; n < 20; n++ {
		e := m.fetchOffsets(ctx)
		if e == model.None {
			return true
		}
		if !m.settled(ctx, e) || !m.c.pause(ctx, n) {
			return false
		}
	}
	return false
}

// fetchOffsets asks once for the group's offsets.
func (m *member) fetchOffsets(ctx context.Context) model.Error {
	if !m.find(ctx) {
		return noCode
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch = m.group, -1
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.TopicID = m.r.positions[0].id
	for _, p := range m.r.positions {
		t.Partitions = append(t.Partitions, p.partition)
	}
	g.Topics = append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	answer, err := m.c.ask(ctx, m.coordinator, req, 0)
	if err != nil {
		m.coordinator = ""
		return noCode
	}
	group := answer.(*kmsg.OffsetFetchResponse).Groups[0]
	if group.ErrorCode != 0 {
		return model.Error(group.ErrorCode)
	}
	for _, rt := range group.Topics {
		for _, rp := range rt.Partitions {
			if rp.ErrorCode != 0 {
				return model.Error(rp.ErrorCode)
			}
		}
	}
	for _, rt := range group.Topics {
		for _, rp := range rt.Partitions {
			m.resumeOne(&rp)
		}
	}
	return model.None
}

func (m *member) resumeOne(rp *kmsg.OffsetFetchResponseGroupTopicPartition) {
	for _, p := range m.r.positions {
		if p.partition != rp.Partition {
			continue
		}
		if rp.Offset >= 0 {
			p.offset, p.epoch = rp.Offset, rp.LeaderEpoch
		}
		m.c.env.resumed(m.group, p, rp.Offset)
	}
}
