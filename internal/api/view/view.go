// Package view is an image as the clients of one listener see it.
package view

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// View is an image as the clients of one listener see it.
type View struct {
	Image    *image.Image
	Listener string
	// hideDead leaves replicas out that cannot be reached, as version 0 wants.
	hideDead bool
	reach    map[model.BrokerID]bool
	room     []int32 // for the lists of ids, taken in pieces
}

// roomChunk is how many ids are allocated at a time.
const roomChunk = 1024

// New makes the view of an image for an answer of Metadata of this version.
func New(img *image.Image, listener string, version int16) *View {
	v := &View{Image: img, Listener: listener, hideDead: version == 0, reach: make(map[model.BrokerID]bool)}
	for _, b := range img.Brokers() {
		_, v.reach[b.ID] = Endpoint(b, listener)
	}
	return v
}

// Alive says whether clients can reach a broker.
func (v *View) Alive(id model.BrokerID) bool { return v.reach[id] }

// Partition describes one partition. A leader that clients cannot reach is no
// leader to them (case B22).
func (v *View) Partition(id int32, p *image.Partition, out *kmsg.MetadataResponseTopicPartition) {
	out.Default()
	out.Partition, out.LeaderEpoch = id, int32(p.LeaderEpoch)
	out.Replicas, out.ISR = v.IDs(p.Replicas), v.IDs(p.ISR)
	out.OfflineReplicas = v.Offline(p.Replicas)
	out.Leader = int32(p.Leader)
	switch {
	case !v.Alive(p.Leader):
		out.Leader, out.ErrorCode = int32(model.NoBroker), model.ErrLeaderNotAvailable.Code()
	case len(out.Replicas) < len(p.Replicas):
		out.ErrorCode = model.ErrReplicaNotAvailable.Code()
	}
}

// IDs lists brokers in an answer.
func (v *View) IDs(brokers []model.BrokerID) []int32 {
	out := v.list(len(brokers))
	for _, id := range brokers {
		if !v.hideDead || v.Alive(id) {
			out = append(out, int32(id))
		}
	}
	return out
}

// Offline lists those of the replicas that clients cannot reach.
func (v *View) Offline(replicas []model.BrokerID) []int32 {
	dead := 0
	for _, id := range replicas {
		if !v.Alive(id) {
			dead++
		}
	}
	out := v.list(dead)
	for _, id := range replicas {
		if !v.Alive(id) {
			out = append(out, int32(id))
		}
	}
	return out
}

// list is an empty list with room for n ids.
func (v *View) list(n int) []int32 {
	if n > len(v.room) {
		v.room = make([]int32, max(n, roomChunk))
	}
	out := v.room[:0:n]
	v.room = v.room[n:]
	return out
}

// Endpoint is where a live broker listens under the listener's name.
func Endpoint(b *image.Broker, listener string) (metalog.Endpoint, bool) {
	if b == nil || b.Fenced {
		return metalog.Endpoint{}, false
	}
	for _, e := range b.Endpoints {
		if e.Name == listener {
			return e, true
		}
	}
	return metalog.Endpoint{}, false
}
