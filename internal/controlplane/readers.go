package controlplane

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// served is what the readers serve from, at one moment.
type served struct {
	lead   leadership
	hw     model.Offset // everything before it is committed, and in view
	view   *projection.View
	img    *image.Image
	voters []Voter
}

// readers answers Fetch and FetchSnapshot of the metadata log. It owns the
// fetches that wait for a commit and what is known of the observers.
type readers struct {
	rt        *task.Runtime
	log       *slog.Logger
	clusterID string
	state     atomic.Pointer[served]
	changed   *task.Signal       // raised with a new state
	in        *task.Queue[*read] // closed to end the loop; one of each connection at most

	waiting   []*read
	observers map[observerKey]*observerState
}

// read is one Fetch or FetchSnapshot under way, or a question.
type read struct {
	ask      func() // run in the task of the readers; nil: a request
	req      *transport.Request
	fetch    *kmsg.FetchRequest
	snapshot *kmsg.FetchSnapshotRequest
	deadline time.Time // of a fetch that waits
}

type observerKey struct {
	id        model.BrokerID
	directory model.UUID
}

// observerState is what DescribeQuorum tells of a node that reads the log.
type observerState struct {
	end            model.Offset // as its last fetch said
	at             time.Time    // of its last fetch
	seen, caughtUp int64        // ms since the Unix epoch; -1 never
	sentHW         model.Offset // HW of the last answer
	lastEnd        model.Offset // log end when it fetched last
}

func newReaders(rt *task.Runtime, log *slog.Logger, clusterID string) *readers {
	return &readers{
		rt: rt, log: log, clusterID: clusterID, changed: rt.NewSignal(), in: task.NewQueue[*read](rt),
		observers: map[observerKey]*observerState{},
	}
}

// update publishes a new state; fetches that it completes are answered.
func (r *readers) update(s served) {
	if old := r.state.Load(); old != nil && old.lead == s.lead && old.hw == s.hw && old.view == s.view && old.img == s.img {
		return
	}
	r.state.Store(&s)
	r.changed.Raise()
}

// post hands a read over; false says that the readers have ended.
func (r *readers) post(x *read) bool { return r.in.Post(x) }

// run serves until in is closed.
func (r *readers) run() {
	w := r.rt.NewWaiter()
	var taken []*read
	for !r.in.Drained() {
		if w.Wait(nil, r.untilDeadline(), r.in.Wake, r.changed) != 0 {
			r.retry()
		}
		taken = r.in.Take(taken)
		for _, x := range taken {
			r.serve(x)
		}
	}
	for _, x := range r.waiting {
		x.req.CloseConn(transport.ErrStopping)
	}
}

// overdue is the wait for a newer view when the one at hand is out of date.
const overdue = time.Millisecond

func (r *readers) untilDeadline() time.Duration {
	if len(r.waiting) == 0 {
		return task.Forever
	}
	now, d := r.rt.Now(), maxFetchWait
	for _, x := range r.waiting {
		d = min(d, x.deadline.Sub(now))
	}
	return max(d, overdue)
}

func (r *readers) serve(x *read) {
	switch {
	case x.ask != nil:
		x.ask()
	case x.snapshot != nil:
		x.req.Reply(transport.Message(r.fetchSnapshot(x.snapshot)))
	default:
		if !r.fetch(x, true) {
			r.waiting = append(r.waiting, x)
		}
	}
}

// retry answers what can be answered now.
func (r *readers) retry() {
	r.waiting = slices.DeleteFunc(r.waiting, func(x *read) bool {
		if x.req.Conn.ClosedSignal().Closed() {
			x.req.ReplyNone()
			return true
		}
		return r.fetch(x, false)
	})
}
