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
	log       *slog.Logger
	clusterID string
	state     atomic.Pointer[served]
	wake      chan struct{}
	in        chan *read
	asks      chan func(*readers) // run in the goroutine of the readers
	quit      chan struct{}

	waiting   []*read
	observers map[observerKey]*observerState
}

// read is one Fetch or FetchSnapshot under way.
type read struct {
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
	end               model.Offset // as its last fetch said
	fetched, caughtUp time.Time
	sentHW            model.Offset // HW of the last answer
	lastEnd           model.Offset // log end when it fetched last
	lastFetchAt       time.Time
}

func newReaders(log *slog.Logger, clusterID string) *readers {
	return &readers{
		log: log, clusterID: clusterID, wake: make(chan struct{}, 1), in: make(chan *read, 64),
		asks: make(chan func(*readers), 16), quit: make(chan struct{}), observers: map[observerKey]*observerState{},
	}
}

// update publishes a new state; fetches that it completes are answered.
func (r *readers) update(s served) {
	if old := r.state.Load(); old != nil && old.lead == s.lead && old.hw == s.hw && old.view == s.view && old.img == s.img {
		return
	}
	r.state.Store(&s)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// post hands a read over; false says that the readers have ended.
func (r *readers) post(x *read) bool {
	select {
	case r.in <- x:
		return true
	case <-r.quit:
		return false
	}
}

// ask runs fn in the goroutine of the readers; false says that they have ended.
func (r *readers) ask(fn func(*readers)) bool {
	select {
	case r.asks <- fn:
		return true
	case <-r.quit:
		return false
	}
}

// run serves until quit is closed.
func (r *readers) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case x := <-r.in:
			r.serve(x)
		case <-r.wake:
			r.retry()
		case fn := <-r.asks:
			fn(r)
		case <-timer.C:
			r.retry()
		case <-r.quit:
			for _, x := range r.waiting {
				x.req.CloseConn(transport.ErrStopping)
			}
			return
		}
		timer.Reset(r.untilDeadline())
	}
}

func (r *readers) untilDeadline() time.Duration {
	d := time.Hour
	for _, x := range r.waiting {
		d = min(d, time.Until(x.deadline))
	}
	return max(d, 0)
}

func (r *readers) serve(x *read) {
	switch {
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
		select {
		case <-x.req.Conn.Closed():
			x.req.ReplyNone()
			return true
		default:
			return r.fetch(x, false)
		}
	})
}
