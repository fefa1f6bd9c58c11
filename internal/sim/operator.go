package sim

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// patience is how long an operator looks at a partition without a leader.
const patience = 10 * time.Second

// operate does what only an operator may, in a cluster that was mended a while
// ago: where no replica is known to hold all that was acknowledged, and an unclean
// election is not allowed, somebody has to choose.
func (r *run) operate() {
	now := r.w.stage.Now()
	if now < max(r.since, r.byHand)+patience {
		return
	}
	r.byHand = now
	img := r.w.image()
	if img == nil {
		return
	}
	req := kmsg.NewPtrElectLeadersRequest()
	req.Version, req.ElectionType, req.TimeoutMillis = 2, 1, int32(patience.Milliseconds())
	for tp := range img.Leaderless() {
		p := img.Partition(tp.TopicID, tp.Partition)
		if len(p.ISR)+len(p.ELR)+len(p.LastKnownELR) > 0 {
			continue
		}
		t := kmsg.NewElectLeadersRequestTopic()
		t.Topic, t.Partitions = img.TopicByID(tp.TopicID).Name, []int32{tp.Partition}
		req.Topics = append(req.Topics, t)
	}
	if len(req.Topics) == 0 {
		return
	}
	m := r.w.members[0]
	n, p := m.node, m.machine.Process()
	r.w.stage.Note("operator", "unclean elections of %d partitions", len(req.Topics))
	p.Go("operator", func() {
		ctx, cancel := p.Runtime.WithTimeout(context.Background(), patience)
		defer cancel()
		n.Forward(ctx, req) // what came of it is seen next time
	})
}

// image is the newest metadata that a node knows; nil when none runs.
func (w *world) image() *image.Image {
	var newest *image.Image
	for _, m := range w.members {
		if m.node == nil || !m.machine.Running() {
			continue
		}
		if img := m.node.Image(); newest == nil || img.End() > newest.End() {
			newest = img
		}
	}
	return newest
}

// spares reports whether the disk of m may be lost: with it, no more replicas
// lack what they once had than min.insync.replicas protects from.
func (w *world) spares(m *member) bool {
	if w.plan.Unclean {
		return true
	}
	lost := 0
	for _, other := range w.members {
		if other != m && other.broker && other.empty && !w.whole(other) {
			lost++
		}
	}
	return lost < w.plan.MinISR-1
}

// whole reports whether a broker that lost something has it all again: it is in
// the ISR of all its partitions, and they have leaders.
func (w *world) whole(m *member) bool {
	img := w.image()
	if img == nil || img.Broker(m.id) == nil || img.Broker(m.id).Fenced {
		return false
	}
	for t, n := range img.PartitionsOf(m.id) {
		if p := t.Partitions[n]; p.Leader == model.NoBroker || !slices.Contains(p.ISR, m.id) {
			return false
		}
	}
	m.empty = false
	return true
}
