package replicas

import (
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/replicas/cuts"
)

// account writes a truncation down ahead of the job that carries it out. A cut
// that removes no record is only told.
func (l *Loop) account(r *replica, c *partition.Cut) {
	l.events.Cut(r.tp(), *c)
	if c.From >= c.To {
		return
	}
	line := cuts.Cut{TimeMs: int64(l.wall), Topic: r.tp().Topic, Partition: r.tp().Partition,
		TopicID: r.hosted.ID.TopicID.String(), From: c.From, To: c.To, HW: c.HWBefore, BelowHW: c.BelowHW,
		Epochs: cloneEpochs(c.Epochs), LeaderEpoch: c.LeaderEpoch, Rule: c.Rule}
	r.cuts = cuts.Keep(r.cuts, line)
	l.jobs = append(l.jobs, job{kind: jobCall, r: r, call: func() error { return l.cuts.Write(line) }})
}
