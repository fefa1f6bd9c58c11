// Package roster is the list of the replicas that a broker hosts.
package roster

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Roster finds replicas by name and by id. Connections read it.
type Roster struct {
	mu     sync.RWMutex
	byName map[model.TopicPartition]*api.Hosted
	byID   map[model.TopicIDPartition]*api.Hosted
}

// New returns an empty Roster.
func New() *Roster {
	return &Roster{byName: map[model.TopicPartition]*api.Hosted{}, byID: map[model.TopicIDPartition]*api.Hosted{}}
}

// Add takes a replica in. Of two with one name, ByName finds the newer one.
func (t *Roster) Add(h *api.Hosted) {
	t.mu.Lock()
	t.byName[h.TP], t.byID[h.ID] = h, h
	t.mu.Unlock()
}

// Remove takes a replica out, and not what came in its place.
func (t *Roster) Remove(h *api.Hosted) {
	t.mu.Lock()
	if t.byName[h.TP] == h {
		delete(t.byName, h.TP)
	}
	if t.byID[h.ID] == h {
		delete(t.byID, h.ID)
	}
	t.mu.Unlock()
}

// ByName returns the replica of tp, or nil.
func (t *Roster) ByName(tp model.TopicPartition) *api.Hosted {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[tp]
}

// ByID returns the replica of the topic id's partition, or nil.
func (t *Roster) ByID(id model.TopicIDPartition) *api.Hosted {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byID[id]
}

// All lists the replicas, in order of partition.
func (t *Roster) All() []*api.Hosted {
	t.mu.RLock()
	all := slices.Collect(maps.Values(t.byID))
	t.mu.RUnlock()
	slices.SortFunc(all, Compare)
	return all
}

// Compare sorts by name, and a topic that was made again after the one that it
// replaces or before it, but always the same way.
func Compare(a, b *api.Hosted) int {
	return cmp.Or(a.TP.Compare(b.TP), bytes.Compare(a.ID.TopicID[:], b.ID.TopicID[:]))
}
