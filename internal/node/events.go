package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/metrics"
	"github.com/tidemark-log/tidemark/internal/replicas"
)

// events is told what the cores decided and what connections did. It writes
// the few things that an operator should read, counts for Prometheus, and
// passes everything on to the Observer of the node's owner.
type events struct {
	log     *slog.Logger
	metrics *metrics.Registry // nil unless somebody may scrape
	next    replicas.Observer
}

// Reasons takes the reasons of one decision (R13.2).
func (e *events) Reasons(tp model.TopicPartition, rs []partition.Reason) {
	for _, r := range rs {
		switch r.Code {
		case partition.LeftByLag, partition.LeftUnheard:
			e.log.Info("replica falls out of the ISR", "partition", tp.String(), "broker", int32(r.Broker), "why", r.String())
			e.count(func(m *metrics.Registry) { m.Replication.Shrunk() })
		case partition.JoinProposed:
			e.log.Info("replica joins the ISR", "partition", tp.String(), "broker", int32(r.Broker), "why", r.String())
			e.count(func(m *metrics.Registry) { m.Replication.Expanded() })
		case partition.ISRRolledBack:
			e.log.Info("ISR change refused", "partition", tp.String(), "why", r.String())
			e.count(func(m *metrics.Registry) { m.Replication.RefusedISR() })
		}
	}
	e.next.Reasons(tp, rs)
}

// Cut takes the account of a truncation (R13.3). Cutting below the high
// watermark is allowed to the victim of an unclean election, and worth a warning.
func (e *events) Cut(tp model.TopicPartition, c partition.Cut) {
	below := int64(0)
	level := slog.LevelInfo
	if c.BelowHW {
		level = slog.LevelWarn
		below = int64(min(c.HWBefore, c.To) - c.From)
	}
	e.log.Log(context.Background(), level, "log truncated", "partition", tp.String(), "from", int64(c.From), "to", int64(c.To),
		"belowHW", c.BelowHW, "rule", c.Rule)
	e.count(func(m *metrics.Registry) { m.Replication.Truncated(int64(c.To-c.From), below) })
	e.next.Cut(tp, c)
}

func (e *events) count(f func(*metrics.Registry)) {
	if e.metrics != nil {
		f(e.metrics)
	}
}

// listenerMetrics counts what a listener does.
type listenerMetrics struct{ m *metrics.Registry }

// Answered counts one answer.
func (l listenerMetrics) Answered(key int16, took time.Duration) { l.m.API(key).Done(took) }

// Opened counts a connection.
func (l listenerMetrics) Opened() { l.m.Connections.Opened() }

// Refused counts a connection above the limits.
func (l listenerMetrics) Refused() { l.m.Connections.Refused() }

// logMetrics counts what the replicas' room moves.
type logMetrics struct{ m *metrics.Registry }

// logMeter is nil unless somebody may scrape.
func (n *Node) logMeter() replicas.Meter {
	if n.metrics == nil {
		return nil
	}
	return logMetrics{n.metrics}
}

// Appended counts one write to a log.
func (l logMetrics) Appended(took time.Duration, batches int) { l.m.Log.Appended(took, batches) }

// Flushed counts one sync of a log.
func (l logMetrics) Flushed(took time.Duration) { l.m.Log.Flushed(took) }

// Replicated counts bytes fetched from a leader.
func (l logMetrics) Replicated(bytes int) { l.m.Traffic.Replicated(bytes) }

// Closed counts a connection's end.
func (l listenerMetrics) Closed() { l.m.Connections.Closed() }
