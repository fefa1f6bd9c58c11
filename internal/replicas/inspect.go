package replicas

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/purgatory"
)

// Inspect calls f with every replica hosted here, in order of partition. Like
// Steps and Overdue it is for checkers: only while no task runs, or from inside
// the loop. f changes nothing.
func (l *Loop) Inspect(f func(*api.Hosted, *partition.Partition)) {
	for _, r := range l.ordered {
		f(r.hosted, r.p)
	}
}

// Asked tells when a follower for which a replica is quiet sent its last request,
// or, if it is quiet no more, the last one while it was. See Inspect for who may
// call it.
func (l *Loop) Asked(h *api.Hosted, follower model.BrokerID) (at model.Time, quiet bool) {
	r := h.Owner.(*replica)
	at = partition.Never
	for _, u := range r.rested {
		if u.follower == follower {
			at = u.until
		}
	}
	for _, q := range r.quiet {
		if q.s.follower == follower {
			at, quiet = max(at, q.s.asked), true
		}
	}
	return at, quiet
}

// Steps counts what the cores were told so far: while it stands still, so do
// they. See Inspect for who may call it.
func (l *Loop) Steps() uint64 { return l.steps }

// lateBy is how long after its deadline a request may still be parked. The purgatory
// takes a deadline for its next full millisecond, which comes on top.
const lateBy = time.Millisecond

// waiting is what is parked here.
type waiting interface {
	purgatory.Op
	// ready reports, without changing anything, whether it could be answered now.
	ready() bool
	// String names it and the partitions it waits for.
	String() string
}

// Overdue returns an error that names a request which is parked although it could
// be answered, or although its time is up (I32). It changes nothing. See Inspect
// for who may call it.
func (l *Loop) Overdue() error {
	now := l.clock.Now()
	var err error
	for _, p := range [...]*purgatory.Purgatory[*replica]{l.produces, l.fetches, l.deletes} {
		p.Each(func(op purgatory.Op, due model.Time) {
			w := op.(waiting)
			switch {
			case err != nil:
			case now > due.Add(lateBy):
				err = fmt.Errorf("%s is parked %v after its deadline (I32)", w, now.Sub(due))
			case w.ready():
				err = fmt.Errorf("%s is parked and could be answered (I32)", w)
			}
		})
	}
	return err
}

// ParkedFetches calls f with every fetch that waits here, in the order of their parking:
// who fetches, for how many bytes it waits, whether it will be answered soon for news
// of a HW, and what it asks of each replica. See Inspect for who may call it.
func (l *Loop) ParkedFetches(f func(by model.BrokerID, minBytes int64, news bool, parts []api.FetchPart)) {
	l.fetches.Each(func(op purgatory.Op, _ model.Time) {
		w := op.(*fetchOp)
		f(w.f.Replica, w.f.MinBytes, w.newsAt != partition.Never, w.f.Parts)
	})
}

func (op *produceOp) ready() bool { return op.TryComplete() }
func (op *ownAppend) ready() bool { return op.TryComplete() }
func (op *deleteOp) ready() bool  { return op.TryComplete() }

// ready looks at all partitions as they are now. A reader is sent to a replica
// that is nearer when it asks; nobody wakes it for that.
func (op *fetchOp) ready() bool {
	bytes, told := int64(0), op.newsAt != partition.Never
	if told && op.l.clock.Now() > op.newsAt.Add(newsWait+2*lateBy) {
		return true
	}
	for i := range op.f.Parts {
		p := &op.f.Parts[i]
		in := p.Request
		in.RackAware = false
		reply := p.Hosted.Owner.(*replica).p.Peek(in)
		if reply.Now || reply.News && !told {
			return true
		}
		bytes += reply.Bytes
	}
	if op.s != nil && op.s.op == op {
		for _, q := range op.s.quiet {
			if reply := q.r.p.Peek(q.part.Request); reply.Now || reply.News || reply.Bytes > 0 {
				return true
			}
		}
	}
	return op.now || bytes >= op.f.MinBytes
}

func (op *produceOp) String() string {
	return "a produce to" + namesOf(len(op.w.Parts), func(i int) *api.Hosted { return op.w.Parts[i].Hosted })
}

func (op *ownAppend) String() string {
	return "the broker's own batch for " + op.hosted.TP.String()
}

func (op *fetchOp) String() string {
	return fmt.Sprintf("a fetch by %d of%s", op.f.Replica,
		namesOf(len(op.f.Parts), func(i int) *api.Hosted { return op.f.Parts[i].Hosted }))
}

func (op *deleteOp) String() string {
	return "a deletion in" + namesOf(len(op.asks), func(i int) *api.Hosted { return op.asks[i].Hosted })
}

func namesOf(n int, of func(i int) *api.Hosted) string {
	var s strings.Builder
	for i := range n {
		if h := of(i); h != nil {
			s.WriteString(" " + h.TP.String())
		}
	}
	return s.String()
}
