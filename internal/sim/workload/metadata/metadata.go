// Package metadata is what a client knows of a cluster.
package metadata

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Cluster is what a client knows. As real clients do, it keeps the highest leader
// epoch of each partition and turns older news down.
type Cluster struct {
	brokers []broker // by id
	topics  []Topic  // by name
}

type broker struct {
	id   int32
	addr string
}

// Topic is one of its topics.
type Topic struct {
	Name       string
	ID         model.UUID
	Partitions []Partition // by number
}

// Partition is one of a topic; Leader is -1 when there is none.
type Partition struct {
	Leader   int32
	Epoch    int32
	Replicas []int32
}

// Addr is where a broker is; "" when it is not known.
func (m *Cluster) Addr(id int32) string {
	for _, b := range m.brokers {
		if b.id == id {
			return b.addr
		}
	}
	return ""
}

// Addrs are the addresses of the brokers that are alive, in order of their ids.
func (m *Cluster) Addrs() []string {
	var out []string
	for _, b := range m.brokers {
		out = append(out, b.addr)
	}
	return out
}

// IDs are the brokers that are alive, in order.
func (m *Cluster) IDs() []int32 {
	var out []int32
	for _, b := range m.brokers {
		out = append(out, b.id)
	}
	return out
}

// Topic returns the topic of a name; nil when it is not known.
func (m *Cluster) Topic(name string) *Topic {
	for i := range m.topics {
		if m.topics[i].Name == name {
			return &m.topics[i]
		}
	}
	return nil
}

// Partition returns one partition of the topic with this id, nil when it is not
// known.
func (m *Cluster) Partition(topic string, id model.UUID, p int32) *Partition {
	t := m.Topic(topic)
	if t == nil || t.ID != id || int(p) >= len(t.Partitions) {
		return nil
	}
	return &t.Partitions[p]
}

// Drop forgets a topic.
func (m *Cluster) Drop(name string) {
	m.topics = slices.DeleteFunc(m.topics, func(t Topic) bool { return t.Name == name })
}

// Learn takes over an answer: its brokers, and the news of its topics.
func (m *Cluster) Learn(resp *kmsg.MetadataResponse) {
	m.brokers = m.brokers[:0]
	for _, b := range resp.Brokers {
		m.brokers = append(m.brokers, broker{b.NodeID, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))})
	}
	slices.SortFunc(m.brokers, func(a, b broker) int { return cmp.Compare(a.id, b.id) })
	for i := range resp.Topics {
		m.learn(&resp.Topics[i])
	}
}

// learn takes over the news of one topic.
func (m *Cluster) learn(t *kmsg.MetadataResponseTopic) {
	if t.Topic == nil {
		return
	}
	at, known := slices.BinarySearchFunc(m.topics, *t.Topic, func(t Topic, name string) int { return cmp.Compare(t.Name, name) })
	if t.ErrorCode != 0 {
		if known && model.Error(t.ErrorCode) == model.ErrUnknownTopicOrPartition {
			m.topics = slices.Delete(m.topics, at, at+1)
		}
		return
	}
	if !known {
		m.topics = slices.Insert(m.topics, at, Topic{Name: *t.Topic, ID: model.UUID(t.TopicID)})
	}
	old := &m.topics[at]
	if old.ID != model.UUID(t.TopicID) {
		*old = Topic{Name: *t.Topic, ID: model.UUID(t.TopicID)}
	}
	slices.SortFunc(t.Partitions, func(a, b kmsg.MetadataResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
	for _, p := range t.Partitions {
		switch n := int(p.Partition); {
		case n == len(old.Partitions):
			old.Partitions = append(old.Partitions, Partition{Epoch: -1})
		case n > len(old.Partitions):
			return // news with a gap
		}
		if own := &old.Partitions[p.Partition]; p.LeaderEpoch >= own.Epoch {
			*own = Partition{Leader: p.Leader, Epoch: p.LeaderEpoch, Replicas: p.Replicas}
		}
	}
}
