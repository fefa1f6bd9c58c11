package workload

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// metadata is what a client knows of the cluster. As real clients do, it keeps
// the highest leader epoch of each partition and turns older news down.
type metadata struct {
	brokers []brokerMeta // by id
	topics  []topicMeta  // by name
}

type brokerMeta struct {
	id   int32
	addr string
	rack string
}

type topicMeta struct {
	name       string
	id         model.UUID
	partitions []partitionMeta // by number
}

// partitionMeta is one partition; leader is -1 when there is none.
type partitionMeta struct {
	leader   int32
	epoch    int32
	replicas []int32
	isr      []int32
}

func (m *metadata) addr(id int32) string {
	for _, b := range m.brokers {
		if b.id == id {
			return b.addr
		}
	}
	return ""
}

func (m *metadata) topic(name string) *topicMeta {
	for i := range m.topics {
		if m.topics[i].name == name {
			return &m.topics[i]
		}
	}
	return nil
}

// partition returns one partition of the topic with this id, nil when it is not
// known.
func (m *metadata) partition(topic string, id model.UUID, p int32) *partitionMeta {
	t := m.topic(topic)
	if t == nil || t.id != id || int(p) >= len(t.partitions) {
		return nil
	}
	return &t.partitions[p]
}

// ids are the brokers that are alive, in order.
func (m *metadata) ids() []int32 {
	var out []int32
	for _, b := range m.brokers {
		out = append(out, b.id)
	}
	return out
}

// refresh asks any broker for these topics. False: none answered.
func (c *client) refresh(ctx context.Context, topics ...string) bool {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	answer, err := c.askAny(ctx, req, 0)
	if err != nil {
		return false
	}
	resp := answer.(*kmsg.MetadataResponse)
	c.meta.brokers = c.meta.brokers[:0]
	for _, b := range resp.Brokers {
		n := brokerMeta{id: b.NodeID, addr: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))}
		if b.Rack != nil {
			n.rack = *b.Rack
		}
		c.meta.brokers = append(c.meta.brokers, n)
	}
	slices.SortFunc(c.meta.brokers, func(a, b brokerMeta) int { return cmp.Compare(a.id, b.id) })
	for i := range resp.Topics {
		c.meta.learn(&resp.Topics[i])
	}
	return true
}

// learn takes over the news of one topic.
func (m *metadata) learn(t *kmsg.MetadataResponseTopic) {
	if t.Topic == nil {
		return
	}
	at, known := slices.BinarySearchFunc(m.topics, *t.Topic, func(t topicMeta, name string) int { return cmp.Compare(t.name, name) })
	if t.ErrorCode != 0 {
		if known && model.Error(t.ErrorCode) == model.ErrUnknownTopicOrPartition {
			m.topics = slices.Delete(m.topics, at, at+1)
		}
		return
	}
	if !known {
		m.topics = slices.Insert(m.topics, at, topicMeta{name: *t.Topic, id: model.UUID(t.TopicID)})
	}
	old := &m.topics[at]
	if old.id != model.UUID(t.TopicID) {
		*old = topicMeta{name: *t.Topic, id: model.UUID(t.TopicID)}
	}
	slices.SortFunc(t.Partitions, func(a, b kmsg.MetadataResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
	for _, p := range t.Partitions {
		switch n := int(p.Partition); {
		case n == len(old.partitions):
			old.partitions = append(old.partitions, partitionMeta{epoch: -1})
		case n > len(old.partitions):
			return // news with a gap
		}
		if own := &old.partitions[p.Partition]; p.LeaderEpoch >= own.epoch {
			*own = partitionMeta{leader: p.Leader, epoch: p.LeaderEpoch, replicas: p.Replicas, isr: p.ISR}
		}
	}
}

// whole refreshes until every partition of the topic has a leader that is alive,
// and returns the topic; nil when ctx ended.
func (c *client) whole(ctx context.Context, topic string) *topicMeta {
	for n := 1; ; n++ {
		if c.refresh(ctx, topic) {
			if t := c.meta.topic(topic); t != nil && len(t.partitions) > 0 &&
				!slices.ContainsFunc(t.partitions, func(p partitionMeta) bool { return c.meta.addr(p.leader) == "" }) {
				return t
			}
		}
		if !c.pause(ctx, n) {
			return nil
		}
	}
}

// topic returns what is known of a topic, and asks until something is; nil when
// ctx ended.
func (c *client) topic(ctx context.Context, name string) *topicMeta {
	for n := 1; ; n++ {
		if t := c.meta.topic(name); t != nil {
			return t
		}
		if c.refresh(ctx, name); c.meta.topic(name) == nil && !c.pause(ctx, n) {
			return nil
		}
	}
}
