// Package replicas is the loop that owns every partition of a broker.
package replicas

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/purgatory"
	"github.com/tidemark-log/tidemark/internal/replicas/cuts"
	"github.com/tidemark-log/tidemark/internal/replicas/isr"
	"github.com/tidemark-log/tidemark/internal/replicas/roster"
	"github.com/tidemark-log/tidemark/internal/replicas/timers"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// event is anything that happens to the replicas loop.
type event interface{ turn(l *Loop) }

// call is a function to run in the loop.
type call func(l *Loop)

func (f call) turn(l *Loop) { f(l) }

// Loop is the loop that owns every partition of this broker and the
// requests that wait for one. A Step is offset arithmetic, so one loop serves
// all; bytes are carried by connections and the log writer.
type Loop struct {
	id      model.BrokerID
	opts    Options
	clock   Clock
	log     *slog.Logger
	rt      *task.Runtime
	inbox   *task.Queue[event]
	writer  *logWriter
	isr     *isr.Sender
	events  Observer
	cuts    *cuts.Log
	startFn func(*source) // starts the fetcher of a new source

	// hosted is read by connections; the loop and the metadata loop write it.
	hosted *roster.Roster

	peers    partition.Peers
	all      map[model.TopicIDPartition]*replica
	ordered  []*replica // all, by partition
	sources  map[lane]*source
	lanes    int                                        // of each peer
	expected map[model.BrokerID]map[*replica]model.Time // followers that have yet to fetch from a new leader

	produces *purgatory.Purgatory[*replica]
	fetches  *purgatory.Purgatory[*replica]
	deletes  *purgatory.Purgatory[*replica]

	// steps counts what the cores were told.
	steps uint64

	// The turn under way.
	now   model.Time
	wall  model.Millis
	wakes []pendingWake
	keys  []*replica // of what is being parked
	in    inputs
	jobs  []job
	// proposals are for the ISR sender.
	proposals []isr.Proposal
	// waking is the replica whose waiters are being tried.
	waking *replica

	nextTick model.Time
	timers   timers.Queue
	planning []*source // sources to look at when the turn ends
	// parked are the fetches of followers in the purgatory, by the number of
	// their parking; parkings is the last one.
	parked   map[model.BrokerID]map[uint64]*fetchOp
	parkings uint64

	// offline says that the log directory failed.
	offline bool
	done    *task.Signal

	stopAsking context.CancelFunc // ends fetchers and the ISR sender
	fetchers   *task.Group
	isrDone    *task.Signal // the ISR sender has ended
}

// Options are what a loop works with.
type Options struct {
	ID       model.BrokerID
	Clock    Clock
	Log      *slog.Logger
	Observer Observer
	Meter    Meter  // nil counts nothing
	Dir      string // where truncations are accounted for

	Runtime *task.Runtime // nil: goroutines and the machine's clock
	FS      vfs.FS        // nil: vfs.OS

	LagMax         time.Duration // replica.lag.time.max.ms
	ProducerExpiry time.Duration
	Fetch          FetchOptions

	// Dial connects to another broker, Forward has the active controller answer,
	// Epoch is that of this broker's registration.
	Dial    func(ctx context.Context, id model.BrokerID) (*transport.Client, error)
	Forward func(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	Epoch   func() model.BrokerEpoch
	// Fail is told, once, that a write failed and the replicas are offline.
	Fail func(error)
}

// Clock is where the loop reads the time: a monotonic reading for the cores, the
// wall clock for record timestamps.
type Clock interface {
	Now() model.Time
	Wall() model.Millis
}

// pendingWake asks for a look at the waiters of a replica.
type pendingWake struct {
	r    *replica
	what partition.Wake
}

// inputs are the reused inputs of Step.
type inputs struct {
	produce   partition.Produce
	heard     partition.Heard
	appended  partition.Appended
	epochs    partition.EpochPersisted
	truncated partition.Truncated
	response  partition.FetchResponse
	answer    partition.ISRAnswer
	tick      partition.Tick
}

// Meter counts what the room moves, for metrics. Its methods are called from the
// log writer and the fetchers and must not block.
type Meter interface {
	Appended(took time.Duration, batches int)
	Flushed(took time.Duration)
	Replicated(bytes int)
}

// Observer is told what the cores decided, for logs and metrics. Its methods
// run in the replicas loop and must not block.
type Observer interface {
	Reasons(tp model.TopicPartition, rs []partition.Reason)
	Cut(tp model.TopicPartition, c partition.Cut)
}

// Start opens the account of truncations and starts the loop, its log
// writer and its ISR sender.
func Start(o Options) (*Loop, error) {
	l, err := newLoop(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := l.rt.WithCancel(context.Background())
	l.stopAsking = cancel
	l.startFn = func(s *source) { l.startFetcher(ctx, s) }
	l.rt.Go("replicas", l.run)
	l.rt.Go("log writer", l.writer.run)
	l.rt.Go("isr sender", func() {
		defer l.isrDone.Close()
		l.isr.Run(ctx)
	})
	return l, nil
}

// newLoop makes a loop whose owner turns it.
func newLoop(o Options) (*Loop, error) {
	fs := o.FS
	if fs == nil {
		fs = vfs.OS
	}
	account, err := cuts.Open(fs, o.Dir)
	if err != nil {
		return nil, err
	}
	rt := o.Runtime
	l := &Loop{
		id: o.ID, opts: o, clock: o.Clock, log: o.Log, events: o.Observer, cuts: account,
		rt: rt, hosted: roster.New(), inbox: task.NewQueue[event](rt), done: rt.NewSignal(), fetchers: rt.NewGroup(),
		peers: partition.Peers{}, all: map[model.TopicIDPartition]*replica{},
		sources: map[lane]*source{}, lanes: max(1, o.Fetch.Lanes), expected: map[model.BrokerID]map[*replica]model.Time{},
		parked: map[model.BrokerID]map[uint64]*fetchOp{},
	}
	l.writer = newLogWriter(rt, o.Clock, func(e event) { l.inbox.Post(e) }, func(err error) {
		l.GoOffline()
		o.Fail(err)
	})
	l.writer.meter = o.Meter
	l.isr = &isr.Sender{ID: o.ID, Runtime: rt, Forward: o.Forward, Epoch: o.Epoch,
		Tell:      func(as []isr.Answer) bool { return l.inbox.Post(isrAnswers(as)) },
		Proposals: task.NewQueue[isr.Proposal](rt)}
	l.isrDone = rt.NewSignal()
	l.now = l.clock.Now()
	l.produces = purgatory.New[*replica](l.now)
	l.fetches = purgatory.New[*replica](l.now)
	l.deletes = purgatory.New[*replica](l.now)
	l.nextTick = l.now.Add(o.LagMax / 2)
	return l, nil
}

// GoOffline answers everything with KAFKA_STORAGE_ERROR from here on: the log
// directory failed. The log writer ends behind what it was ordered before.
func (l *Loop) GoOffline() {
	l.inbox.Post(offline{})
	l.writer.inbox.Close()
}

// StopFetching ends what the loop asks of other nodes.
func (l *Loop) StopFetching() {
	l.stopAsking()
	l.do(func(l *Loop) { l.startFn = func(*source) {} })
	l.fetchers.Wait()
	l.rt.Wait(nil, task.Forever, l.isrDone)
}

// Close answers what waits, has written what was ordered, and ends the loop. It
// returns the high watermarks, for the last checkpoint (R8.18).
func (l *Loop) Close() map[model.TopicPartition]model.Offset {
	hws := map[model.TopicPartition]model.Offset{}
	l.do(func(l *Loop) {
		for _, r := range l.ordered {
			hws[r.tp()] = r.p.Marks().HW
			l.step(r, &partition.Stop{Err: model.ErrNotLeaderOrFollower})
			l.release(r)
		}
		l.wakeAll()
	})
	l.writer.close()
	l.close()
	return hws
}

// Write runs f in the log writer, between two of its orders: what f does to a
// log is done ahead of what is ordered after it.
func (l *Loop) Write(f func() error) error { return l.writer.do(f) }

// run is the loop's task. It ends when the inbox is closed and empty.
func (l *Loop) run() {
	defer l.done.Close()
	waiter := l.rt.NewWaiter()
	var batch []event
	for {
		batch = l.inbox.Take(batch)
		l.begin()
		for i, e := range batch {
			l.Turn(e)
			batch[i] = nil
		}
		l.expire()
		l.flush()
		if l.inbox.Drained() {
			return
		}
		waiter.Wait(nil, l.sleep(), l.inbox.Wake)
	}
}

// begin reads the clock once for the events that follow.
func (l *Loop) begin() { l.now, l.wall = l.clock.Now(), l.clock.Wall() }

// Turn handles one event, then wakes what it may have completed.
func (l *Loop) Turn(e event) {
	e.turn(l)
	l.wakeAll()
}

// expire lets time act.
func (l *Loop) expire() {
	l.produces.Advance(l.now)
	l.fetches.Advance(l.now)
	l.deletes.Advance(l.now)
	l.timers.Run(l.now)
	if l.now >= l.nextTick {
		l.nextTick = l.now.Add(l.opts.LagMax / 2)
		for _, r := range l.ordered {
			l.step(r, &l.in.tick)
		}
		l.forgetExpected(nil)
	}
	l.wakeAll()
}

// flush hands over what the turn decided, in one go each.
func (l *Loop) flush() {
	l.order()
	l.sendProposals()
	l.planAll()
}

// order sends off what the log writer is to do.
func (l *Loop) order() {
	if len(l.jobs) > 0 {
		l.writer.post(l.jobs)
		clear(l.jobs)
		l.jobs = l.jobs[:0]
	}
}

// sleep is how long the loop may wait for its next event.
func (l *Loop) sleep() time.Duration {
	next := l.nextTick
	for _, d := range [...]func() (model.Time, bool){
		l.produces.NextDeadline, l.fetches.NextDeadline, l.deletes.NextDeadline, l.timers.Next,
	} {
		if t, ok := d(); ok {
			next = min(next, t)
		}
	}
	return max(0, next.Sub(l.clock.Now()))
}

// close ends the loop once everything posted before was handled.
func (l *Loop) close() {
	l.inbox.Close()
	l.rt.Wait(nil, task.Forever, l.done)
}

// do runs f in the loop and waits for it. It reports false when the loop has
// ended.
func (l *Loop) do(f func(l *Loop)) bool {
	ran := l.rt.NewSignal()
	if !l.inbox.Post(call(func(l *Loop) { f(l); ran.Close() })) {
		return false
	}
	l.rt.Wait(nil, task.Forever, ran, l.done)
	return ran.Closed()
}

// step applies one input to a replica and carries out what every input may ask
// for. Append, Duplicate and Reply are the caller's.
func (l *Loop) step(r *replica, in partition.Input) partition.Ready {
	l.steps++
	rd := r.p.Step(l.now, l.wall, in)
	if rd.Cut != nil {
		l.account(r, rd.Cut)
	}
	if rd.Truncate != nil {
		l.jobs = append(l.jobs, truncateJob(r, rd.Truncate))
	}
	if rd.PersistEpochs != nil {
		l.jobs = append(l.jobs, epochsJob(r, rd.PersistEpochs))
	}
	if rd.RaiseLogStart != nil {
		l.jobs = append(l.jobs, job{kind: jobRaiseStart, r: r, to: *rd.RaiseLogStart})
	}
	if rd.AlterISR != nil {
		l.propose(r, rd.AlterISR)
	}
	if rd.FetchFrom != nil {
		l.fetchFrom(r, *rd.FetchFrom)
	}
	if rd.AskLeader {
		l.askLeader(r)
	}
	if rd.Backoff {
		l.backoff(r)
	}
	if rd.Wake != 0 {
		l.wakes = append(l.wakes, pendingWake{r, rd.Wake})
	}
	if len(rd.Reasons) > 0 {
		l.events.Reasons(r.tp(), rd.Reasons)
	}
	r.hosted.Generation.Store(r.p.Generation())
	if r.source != nil {
		l.position(r)
	}
	return rd
}

// wakeAll tries the waiters of every replica that something happened to:
// producers first, then fetches, then deletions, so that a follower's reply
// never overtakes the producer that it acknowledges.
func (l *Loop) wakeAll() {
	roused := 0
	for i := 0; i < len(l.wakes); i++ {
		for ; roused < len(l.wakes); roused++ { // all of them: one answer may tell of several
			l.rouse(l.wakes[roused])
		}
		w := l.wakes[i]
		l.waking = w.r
		if w.what&partition.WakeProduce != 0 {
			l.produces.Wake(w.r)
		}
		if w.what&partition.WakeFetch != 0 {
			l.fetches.Wake(w.r)
			l.ring(w.r)
		}
		if w.what&partition.WakeDelete != 0 {
			l.deletes.Wake(w.r)
		}
		l.waking = nil
	}
	clear(l.wakes)
	l.wakes = l.wakes[:0]
}
