package node

import (
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/explain"
	"github.com/tidemark-log/tidemark/internal/replicas"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// explainReplicas answers Tidemark's own request for what this broker knows of
// its replicas.
func (b *broker) explainReplicas(r *transport.Request) {
	var req explain.ReplicasRequest
	if err := explain.Decode(r.Body, &req); err != nil {
		r.CloseConn(fmt.Errorf("decode a request for replicas: %w", err))
		return
	}
	// The views are taken in the replicas loop, so the connection's reader only
	// starts the work.
	b.explaining.Go("explain", func() {
		body, err := explain.Encode(b.explain(req.Topics))
		if err != nil {
			r.CloseConn(err)
			return
		}
		r.Reply(raw(body))
	})
}

// raw is a response body that is encoded already.
type raw []byte

// Layout sends the bytes as they are.
func (b raw) Layout(l *transport.Layout) error { l.Bytes(b); return nil }

func (b *broker) explain(topics []string) explain.Replicas {
	out := explain.Replicas{Broker: int32(b.n.cfg.NodeID), NowMs: int64(b.n.clock.Wall()), Partitions: []explain.Partition{}}
	for _, v := range b.replicas.Views(topics) {
		out.Partitions = append(out.Partitions, explainPartition(v))
	}
	return out
}

func explainPartition(v replicas.View) explain.Partition {
	w := v.View
	p := explain.Partition{
		Topic: v.TP.Topic, Partition: v.TP.Partition, Role: w.Role.String(),
		Leader: int32(w.Leader), LeaderEpoch: int32(w.LeaderEpoch), PartitionEpoch: int32(w.PartitionEpoch),
		LogStart: int64(w.Marks.LogStart), LSO: int64(w.Marks.LSO), HW: int64(w.Marks.HW), LEO: int64(w.Marks.LEO),
		Replicas: ids(w.Replicas), ISR: ids(w.ISR), MinISR: w.MinISR, PendingISR: w.PendingISR,
	}
	if w.Role == partition.Leader {
		p.MaximalISR = ids(w.MaximalISR)
		p.HoldsHW = w.HoldsHW.String()
	}
	for _, c := range v.Cuts {
		p.Cuts = append(p.Cuts, explain.Cut{TimeMs: c.TimeMs, From: int64(c.From), To: int64(c.To), HW: int64(c.HW),
			BelowHW: c.BelowHW, LeaderEpoch: int32(c.LeaderEpoch), Rule: c.Rule})
	}
	for _, r := range w.Remotes {
		e := explain.Remote{ID: int32(r.ID), LEO: int64(r.LEO), LastFetchMs: ago(v.Now, r.LastFetch),
			LastCaughtUpMs: ago(v.Now, r.LastCaughtUp), InISR: r.InISR}
		if !r.InISR {
			e.Why = r.Why.String()
		}
		p.Remotes = append(p.Remotes, e)
	}
	return p
}

func ids(in []model.BrokerID) []int32 {
	out := make([]int32, 0, len(in))
	for _, id := range in {
		out = append(out, int32(id))
	}
	return out
}

// ago is how long before now a reading was, in milliseconds; -1 for what has
// not happened.
func ago(now, then model.Time) int64 {
	if then <= 0 {
		return -1
	}
	return now.Sub(then).Milliseconds()
}
