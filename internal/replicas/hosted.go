package replicas

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// hostedTable finds replicas by name and by id. Connections read it.
type hostedTable struct {
	mu     sync.RWMutex
	byName map[model.TopicPartition]*api.Hosted
	byID   map[model.TopicIDPartition]*api.Hosted
}

func (t *hostedTable) init() {
	t.byName = map[model.TopicPartition]*api.Hosted{}
	t.byID = map[model.TopicIDPartition]*api.Hosted{}
}

func (t *hostedTable) add(h *api.Hosted) {
	t.mu.Lock()
	t.byName[h.TP], t.byID[h.ID] = h, h
	t.mu.Unlock()
}

func (t *hostedTable) remove(h *api.Hosted) {
	t.mu.Lock()
	if t.byName[h.TP] == h {
		delete(t.byName, h.TP)
	}
	if t.byID[h.ID] == h {
		delete(t.byID, h.ID)
	}
	t.mu.Unlock()
}

// ByName returns the replica of tp hosted here, or nil.
func (l *Loop) ByName(tp model.TopicPartition) *api.Hosted {
	l.hosted.mu.RLock()
	defer l.hosted.mu.RUnlock()
	return l.hosted.byName[tp]
}

// ByID returns the replica of the topic id's partition hosted here, or nil.
func (l *Loop) ByID(id model.TopicIDPartition) *api.Hosted {
	l.hosted.mu.RLock()
	defer l.hosted.mu.RUnlock()
	return l.hosted.byID[id]
}

// Hosted lists the replicas hosted here, in order of partition.
func (l *Loop) Hosted() []*api.Hosted {
	l.hosted.mu.RLock()
	all := slices.Collect(maps.Values(l.hosted.byID))
	l.hosted.mu.RUnlock()
	slices.SortFunc(all, compareHosted)
	return all
}

// compareHosted sorts by name, and a topic that was made again after the one
// that it replaces or before it, but always the same way.
func compareHosted(a, b *api.Hosted) int {
	return cmp.Or(a.TP.Compare(b.TP), bytes.Compare(a.ID.TopicID[:], b.ID.TopicID[:]))
}

func compareReplicas(a, b *replica) int { return compareHosted(a.hosted, b.hosted) }

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
