package replicas

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/replicas/cuts"
)

// View is one replica for people.
type View struct {
	TP     model.TopicPartition
	Hosted *api.Hosted
	View   partition.View
	// Serving says that a leader takes requests: its epoch is safe on disk.
	Serving bool
	Cuts    []cuts.Cut // the newest truncations
	// Now is the loop's clock, which the times in View are readings of.
	Now model.Time
}

// Views describes the replicas of these topics, or of all, sorted by partition.
func (l *Loop) Views(topics []string) []View {
	var out []View
	l.do(func(l *Loop) {
		for _, r := range l.ordered {
			if len(topics) > 0 && !slices.Contains(topics, r.tp().Topic) {
				continue
			}
			for _, q := range r.quiet {
				l.hear(q)
			}
			out = append(out, View{TP: r.tp(), Hosted: r.hosted, View: r.p.View(), Serving: r.p.Serving(),
				Cuts: slices.Clone(r.cuts), Now: l.now})
		}
	})
	return out
}

// Parked is how many requests wait in the purgatory.
func (l *Loop) Parked() (produces, fetches int) {
	l.do(func(l *Loop) { produces, fetches = l.produces.Len(), l.fetches.Len() })
	return produces, fetches
}

// HighWatermarks returns those of all replicas, and whether one moved since the
// last call.
func (l *Loop) HighWatermarks() (hws map[model.TopicPartition]model.Offset, moved bool) {
	hws = map[model.TopicPartition]model.Offset{}
	l.do(func(l *Loop) {
		for _, r := range l.ordered {
			hw := r.p.Marks().HW
			hws[r.tp()] = hw
			moved = moved || hw != r.checkpointed
			r.checkpointed = hw
		}
	})
	return hws, moved
}

// Retain has retention applied to every log below its high watermark (R8.17).
func (l *Loop) Retain() { l.do((*Loop).retain) }

// retain orders it of the log writer, so that the core hears of it in its place
// among truncations.
func (l *Loop) retain() {
	for _, r := range l.ordered {
		l.jobs = append(l.jobs, job{kind: jobRetain, r: r, to: r.p.Marks().HW})
	}
}
