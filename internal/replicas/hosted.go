package replicas

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/replicas/roster"
)

// ByName returns the replica of tp hosted here, or nil.
func (l *Loop) ByName(tp model.TopicPartition) *api.Hosted { return l.hosted.ByName(tp) }

// ByID returns the replica of the topic id's partition hosted here, or nil.
func (l *Loop) ByID(id model.TopicIDPartition) *api.Hosted { return l.hosted.ByID(id) }

// Hosted lists the replicas hosted here, in order of partition.
func (l *Loop) Hosted() []*api.Hosted { return l.hosted.All() }

func compareReplicas(a, b *replica) int { return roster.Compare(a.hosted, b.hosted) }

// include and exclude keep the replicas in order.
func (l *Loop) include(r *replica) {
	i, _ := slices.BinarySearchFunc(l.ordered, r, compareReplicas)
	l.all[r.hosted.ID] = r
	l.ordered = slices.Insert(l.ordered, i, r)
}

func (l *Loop) exclude(r *replica) {
	delete(l.all, r.hosted.ID)
	if i, ok := slices.BinarySearchFunc(l.ordered, r, compareReplicas); ok {
		l.ordered = slices.Delete(l.ordered, i, i+1)
	}
}
