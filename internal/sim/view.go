package sim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/sim/check"
	"github.com/tidemark-log/tidemark/internal/sim/stage"
	"github.com/tidemark-log/tidemark/internal/sim/workload"
)

// brokerView is a broker as the checkers see it.
func (r *run) brokerView(m *member) check.Broker {
	return check.Broker{ID: m.id,
		Replicas: func(visit func(check.Replica)) {
			m.node.Replicas().Inspect(func(h *api.Hosted, p *partition.Partition) {
				visit(check.Replica{TP: h.TP, ID: h.ID, P: p, Log: h.Log, Asked: func(b model.BrokerID) (model.Time, bool) {
					return m.node.Replicas().Asked(h, b)
				}})
			})
		},
		Synced: func(tp model.TopicPartition) []byte {
			return m.machine.Disk.Files().Synced(path.Join("/data", tp.String(), "leader-epoch-checkpoint"))
		},
		Parked: func(visit func(check.Parked)) { m.parked(visit) },
		Overdue: func() error {
			if m.node == nil {
				return nil
			}
			return m.node.Replicas().Overdue()
		},
	}
}

// parked visits the fetches that wait at a broker.
func (m *member) parked(visit func(check.Parked)) {
	m.node.Replicas().ParkedFetches(func(by model.BrokerID, minBytes int64, news bool, parts []api.FetchPart) {
		w := check.Parked{By: by, MinBytes: minBytes}
		for i := range parts {
			if h := parts[i].Hosted; h != nil {
				w.Asks = append(w.Asks, check.Ask{ID: h.ID, FetchRequest: parts[i].Request, News: news})
			}
		}
		visit(w)
	})
}

// tell fills in how the run went.
func (r *run) tell(res *Result) {
	s := r.w.stage
	res.Steps, res.Lasted, res.Digest, res.Faults = s.Steps(), s.Now(), s.Digest(), r.w.faults
	res.Records = r.history.Acknowledged()
	res.Clean = r.set.AllClean()
}

// clientOptions are what the clients may do under a plan.
func clientOptions(p *Plan) workload.Options {
	trims := slices.Contains(p.Workloads, workload.Trimmer{Kept: true}.Name()) || slices.Contains(p.Workloads, workload.Trimmer{}.Name())
	kept := !trims && !p.Unclean && !slices.Contains(p.Workloads, workload.Tuner{}.Name()) &&
		!slices.Contains(p.Workloads, workload.Churn{}.Name())
	o := workload.Options{Kept: kept, UncleanElections: p.Unclean, DeleteRecords: true, Retention: true, DeleteTopics: !trims,
		MinInSync: p.MinISR == 1, NoELR: p.NoELR, Lanes: p.Fetchers > 0, Records: 200, Pace: p.Pace}
	for n := range p.Racks {
		o.Racks = append(o.Racks, rackOf(n))
	}
	for i := range 1 + p.Seed%2 {
		o.Topics = append(o.Topics, workload.Topic{Name: fmt.Sprintf("topic-%d", i+1),
			Partitions: int32(p.Partitions), Replicas: int16(p.Replication)})
	}
	return o
}

// drawWorkloads chooses who uses the cluster: always somebody who writes and
// somebody who reads.
func drawWorkloads(r *rand.Rand, p *Plan) []string {
	var writers, all []string
	for _, x := range workload.All() {
		all = append(all, x.Name())
		if strings.Contains(x.Name(), "produce") || strings.Contains(x.Name(), "idempotent") {
			writers = append(writers, x.Name())
		}
	}
	if len(all) == 0 {
		return nil
	}
	out := []string{writers[r.IntN(len(writers))]}
	for range 1 + r.IntN(5) {
		out = append(out, all[r.IntN(len(all))])
	}
	return out
}

// handler takes a node's log into the trace.
func (r *run) handler(m *stage.Machine) slog.Handler {
	if r.o.Trace == nil {
		return slog.DiscardHandler
	}
	return &traceHandler{r: r, who: m.Name}
}

// traceHandler writes log records as lines of the trace.
type traceHandler struct {
	r     *run
	who   string
	attrs string
}

// Enabled leaves out what is for debugging.
func (h *traceHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle writes one line.
func (h *traceHandler) Handle(_ context.Context, rec slog.Record) error {
	var b strings.Builder
	b.WriteString(rec.Message)
	b.WriteString(h.attrs)
	rec.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.r.o.Trace(h.r.w.stage.Now(), h.who, b.String())
	return nil
}

// WithAttrs keeps the attributes, but for the node's own name.
func (h *traceHandler) WithAttrs(as []slog.Attr) slog.Handler {
	c := *h
	for _, a := range as {
		if a.Key != "node" && a.Key != "controller" && a.Key != "observer" {
			c.attrs += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
	}
	return &c
}

// WithGroup has no groups.
func (h *traceHandler) WithGroup(string) slog.Handler { return h }
