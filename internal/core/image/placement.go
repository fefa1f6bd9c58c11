package image

import (
	"iter"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// PartitionsOf yields the partitions that have the broker among their replicas,
// by topic name and partition id. Its cost is a look at every partition, unless
// the broker has none.
func (i *Image) PartitionsOf(broker model.BrokerID) iter.Seq2[*Topic, int32] {
	count, _ := i.loads.get(broker)
	return i.scan(count.replicas, func(p *Partition) bool { return slices.Contains(p.Replicas, broker) })
}

// LedBy yields the partitions that the broker leads, like PartitionsOf.
func (i *Image) LedBy(broker model.BrokerID) iter.Seq2[*Topic, int32] {
	count, _ := i.loads.get(broker)
	return i.scan(count.leads, func(p *Partition) bool { return p.Leader == broker })
}

// scan yields the partitions that match; there are count of them.
func (i *Image) scan(count int, match func(*Partition) bool) iter.Seq2[*Topic, int32] {
	return func(yield func(*Topic, int32) bool) {
		left := count
		if left == 0 {
			return
		}
		for _, t := range i.byName.all() {
			for id, p := range t.Partitions {
				if !match(p) {
					continue
				}
				left--
				if !yield(t, int32(id)) || left == 0 {
					return
				}
			}
		}
	}
}

// LeaderCount is the number of partitions that the broker leads.
func (i *Image) LeaderCount(broker model.BrokerID) int {
	count, _ := i.loads.get(broker)
	return count.leads
}

// ReplicaCount is the number of partitions that have the broker among their
// replicas.
func (i *Image) ReplicaCount(broker model.BrokerID) int {
	count, _ := i.loads.get(broker)
	return count.replicas
}

// Leaderless yields the partitions without a leader, sorted by topic id. It
// costs only what it yields.
func (i *Image) Leaderless() iter.Seq[model.TopicIDPartition] { return keys(i.leaderless.all()) }

// LeaderlessCount is the number of partitions without a leader.
func (i *Image) LeaderlessCount() int { return i.leaderless.len }

// Reassigning yields the partitions with adding or removing replicas, sorted by
// topic id. It costs only what it yields.
func (i *Image) Reassigning() iter.Seq[model.TopicIDPartition] { return keys(i.moving.all()) }
