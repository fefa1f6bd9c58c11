package node

import (
	"context"
	"errors"

	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/metrics"
)

// startHTTP opens the listener for metrics and health, if one is configured.
func (n *Node) startHTTP() error {
	if n.cfg.HTTPListen == "" {
		return nil
	}
	reg := metrics.New()
	if n.broker != nil {
		reg.CollectMarks(n.marks)
	}
	var err error
	n.http, err = reg.Listen(n.cfg.HTTPListen, n.health)
	return err
}

func (n *Node) stopHTTP(ctx context.Context) {
	if n.http != nil {
		n.http.Close(ctx)
		n.http = nil
	}
}

// health says why this node is not of use, or nil.
func (n *Node) health() error {
	if err := n.Err(); err != nil {
		return err
	}
	select {
	case <-n.Ready():
		return nil
	default:
		return errors.New("the broker is fenced: it has not caught up with the metadata yet, or reaches no controller")
	}
}

// marks are the offsets of all replicas at a scrape.
func (n *Node) marks() []metrics.Marks {
	var out []metrics.Marks
	n.broker.replicas.do(func(l *replicas) {
		for _, r := range l.all {
			m, v := r.p.Marks(), r.p.View()
			out = append(out, metrics.Marks{Topic: r.tp().Topic, Partition: r.tp().Partition, Leader: v.Role == partition.Leader,
				LogStart: int64(m.LogStart), HW: int64(m.HW), LEO: int64(m.LEO), LastStable: int64(m.LSO),
				Bytes: r.log.Size(), InSync: len(v.ISR)})
		}
	})
	return out
}
