package replicas

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/replicas/pace"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/task"
)

// jobKind says what the log writer is to do.
type jobKind uint8

const (
	jobAppend     jobKind = iota // write bytes, then report Appended
	jobTruncate                  // cut the log to to, then report Truncated
	jobRestart                   // drop everything and start at to, then report Truncated
	jobEpochs                    // write the epoch checkpoint, then report EpochPersisted
	jobRaiseStart                // move the log start, then report LogStartMoved
	jobRetain                    // apply retention below to, then report LogStartMoved if it moved
	jobCall                      // run call, which may touch any log
	jobPass                      // report that all before it is done
)

// job is one order of the replicas loop to the log writer. Orders for one log
// are carried out in the order given.
type job struct {
	kind   jobKind
	r      *replica
	bytes  []byte
	base   model.Offset
	to     model.Offset
	epoch  model.Epoch
	stamp  bool
	epochs []model.EpochStart // epoch cache to make durable, nil when unchanged
	call   func() error
}

func cloneEpochs(e []model.EpochStart) []model.EpochStart {
	if e == nil {
		return nil
	}
	return append(make([]model.EpochStart, 0, len(e)), e...)
}

func truncateJob(r *replica, t *partition.Truncate) job {
	kind := jobTruncate
	if t.Restart {
		kind = jobRestart
	}
	return job{kind: kind, r: r, to: t.To, epochs: append([]model.EpochStart{}, t.Epochs...)}
}

func epochsJob(r *replica, e *partition.PersistEpochs) job {
	return job{kind: jobEpochs, r: r, epoch: e.Epoch, epochs: append([]model.EpochStart{}, e.Epochs...)}
}

// report is what the log writer tells the loop about one job.
type report struct {
	kind jobKind
	r    *replica
	end  model.Offset
	pos  model.Position
	cut  storage.Truncated
	// epoch of a jobEpochs
	epoch model.Epoch
}

// logWriter is the loop that owns the files of one log directory: it appends,
// truncates, rolls and syncs. What came for one log while it was busy goes out
// in one write.
type logWriter struct {
	rt    *task.Runtime
	inbox *task.Queue[job]
	clock Clock
	tell  func(event)
	fail  func(error)
	meter Meter // nil counts nothing
	done  *task.Signal

	groups []*appendGroup // of this round, in order of first use
	free   []*appendGroup
	byLog  map[*replica]*appendGroup
	due    []*appendGroup // of groups, those to be synced
	disk   *pace.Disk
	out    []report
}

// appendGroup is the appends of one log in one round.
type appendGroup struct {
	r       *replica
	batches []storage.AppendBatch

	written storage.Appended
	synced  time.Duration // how long its sync took
	err     error         // of its sync
}

func newLogWriter(rt *task.Runtime, clock Clock, tell func(event), fail func(error)) *logWriter {
	return &logWriter{rt: rt, inbox: task.NewQueue[job](rt), clock: clock, tell: tell, fail: fail, disk: pace.New(rt),
		done: rt.NewSignal(), byLog: map[*replica]*appendGroup{}}
}

func (w *logWriter) post(jobs []job) { w.inbox.Post(jobs...) }

// do runs f between two jobs, waits for it and returns its error, or another one
// when the writer has ended.
func (w *logWriter) do(f func() error) error {
	var err error
	ran := w.rt.NewSignal()
	if w.inbox.Post(job{kind: jobCall, call: func() error { err = f(); ran.Close(); return nil }}) {
		w.rt.Wait(nil, task.Forever, ran, w.done)
	}
	if !ran.Closed() {
		return errors.New("the log writer has ended")
	}
	return err
}

// run is the writer's task. It ends when the inbox is closed and empty, or
// with the first failed write: nothing is retried into silence (R8.23).
func (w *logWriter) run() {
	defer func() {
		w.done.Close()
		w.tell(writerEnded{})
	}()
	waiter := w.rt.NewWaiter()
	var batch []job
	for {
		batch = w.inbox.Take(batch)
		if len(batch) == 0 {
			if w.inbox.Drained() {
				return
			}
			waiter.Wait(nil, task.Forever, w.inbox.Wake)
			continue
		}
		if err := w.Turn(batch); err != nil {
			w.inbox.Close()
			w.fail(err)
			return
		}
	}
}

// Turn carries out the jobs that came together and reports them.
func (w *logWriter) Turn(batch []job) error {
	for i := range batch {
		j := &batch[i]
		if j.kind == jobAppend {
			w.group(j.r).add(j)
			continue
		}
		if err := w.write(j.r); err != nil {
			return err
		}
		if err := w.carryOut(j); err != nil {
			return err
		}
	}
	if err := w.write(nil); err != nil {
		return err
	}
	if len(w.out) > 0 {
		w.tell(reports(slices.Clone(w.out)))
		clear(w.out)
		w.out = w.out[:0]
	}
	return nil
}

func (w *logWriter) group(r *replica) *appendGroup {
	if g := w.byLog[r]; g != nil {
		return g
	}
	var g *appendGroup
	if n := len(w.free); n > 0 {
		g, w.free = w.free[n-1], w.free[:n-1]
	} else {
		g = &appendGroup{}
	}
	g.r = r
	w.byLog[r] = g
	w.groups = append(w.groups, g)
	return g
}

func (g *appendGroup) add(j *job) {
	g.batches = append(g.batches, storage.AppendBatch{
		Bytes: j.bytes, Stamp: j.stamp, Base: j.base, Epoch: j.epoch, Epochs: j.epochs})
}

// write writes what waits for one log, or for all of them when r is nil: ahead
// of a job of another kind, for a call may be about any log, its removal even.
func (w *logWriter) write(r *replica) error {
	if r != nil {
		if g := w.byLog[r]; g != nil {
			return w.writeGroups([]*appendGroup{g})
		}
		return nil
	}
	if err := w.writeGroups(w.groups); err != nil {
		return err
	}
	for _, g := range w.groups {
		delete(w.byLog, g.r)
		g.r = nil
		w.free = append(w.free, g)
	}
	w.groups = w.groups[:0]
	return nil
}

// writeGroups appends to each log, syncs those that ask for it together, and reports.
func (w *logWriter) writeGroups(groups []*appendGroup) error {
	w.due = w.due[:0]
	for _, g := range groups {
		if len(g.batches) == 0 {
			continue
		}
		began := w.clock.Now()
		var err error
		if g.written, err = g.r.log.Append(w.clock.Wall(), g.batches...); err != nil {
			return err // storage names the log
		}
		if w.meter != nil {
			w.meter.Appended(w.clock.Now().Sub(began), len(g.batches))
		}
		if g.written.Flush {
			w.due = append(w.due, g)
		}
	}
	if err := w.sync(); err != nil {
		return err
	}
	for _, g := range groups {
		if len(g.batches) > 0 {
			w.out = append(w.out, report{kind: jobAppend, r: g.r, end: g.written.End, pos: g.written.Pos})
			clear(g.batches)
			g.batches = g.batches[:0]
		}
	}
	return nil
}

// sync makes durable what was written to the logs in w.due.
func (w *logWriter) sync() error {
	w.disk.Each(len(w.due), func(i int) time.Duration { return w.flush(w.due[i]) })
	var err error
	for _, g := range w.due {
		if w.meter != nil {
			w.meter.Flushed(g.synced)
		}
		err = errors.Join(err, g.err)
	}
	return err
}

// flush touches nothing but the group and its log.
func (w *logWriter) flush(g *appendGroup) time.Duration {
	began := w.clock.Now()
	g.err = g.r.log.Flush(w.clock.Wall())
	g.synced = w.clock.Now().Sub(began)
	return g.synced
}

// carryOut does one job that is no append.
func (w *logWriter) carryOut(j *job) error {
	rep := report{kind: j.kind, r: j.r, epoch: j.epoch}
	var err error
	switch j.kind {
	case jobTruncate:
		rep.cut, err = j.r.log.Truncate(j.to, j.epochs, w.clock.Wall())
	case jobRestart:
		rep.cut, err = j.r.log.Restart(j.to, j.epochs, w.clock.Wall())
	case jobEpochs:
		err = j.r.log.WriteEpochs(j.epochs)
	case jobRaiseStart:
		err = j.r.log.RaiseStart(j.to)
		rep.end = j.to
	case jobRetain:
		before := j.r.log.Start()
		if rep.end, err = j.r.log.ApplyRetention(w.clock.Wall(), j.to); err == nil && rep.end == before {
			return nil
		}
		rep.kind = jobRaiseStart
	case jobCall:
		return j.call()
	case jobPass:
	}
	if err != nil {
		return fmt.Errorf("write to the log of %s: %w", j.r.tp(), err)
	}
	w.out = append(w.out, rep)
	return nil
}

// close ends the writer once everything posted before is written.
func (w *logWriter) close() {
	w.inbox.Close()
	w.rt.Wait(nil, task.Forever, w.done)
}

// reports is the event that brings a round of reports to the loop.
type reports []report

func (rs reports) turn(l *Loop) {
	for i := range rs {
		rep := &rs[i]
		r := rep.r
		switch rep.kind {
		case jobAppend:
			l.appended(r, rep.end, rep.pos)
		case jobTruncate, jobRestart:
			r.ends = lastEnds{}
			l.in.truncated = partition.Truncated{LEO: rep.cut.LEO, LogStart: rep.cut.Start,
				Pos: rep.cut.Pos, Producers: rep.cut.Producers}
			l.step(r, &l.in.truncated)
		case jobEpochs:
			l.in.epochs = partition.EpochPersisted{Epoch: rep.epoch}
			l.step(r, &l.in.epochs)
			l.release(r)
		case jobRaiseStart:
			l.step(r, &partition.LogStartMoved{To: rep.end})
		}
		if rep.kind == jobPass || !r.p.InFlight() {
			l.landed(r)
		}
		l.wakeAll()
	}
}

// offline is the event of a log directory that failed: every replica stops and what
// waits for it is answered (R8.23). The log writer may be in the middle of a write, or
// of a disk that hangs: what it reads from is answered and given back when it ended.
type offline struct{}

func (offline) turn(l *Loop) {
	l.offline = true
	for _, r := range l.ordered {
		l.goOffline(r)
	}
}

func (l *Loop) goOffline(r *replica) {
	l.step(r, &partition.Stop{Err: model.ErrKafkaStorageError})
	l.release(r)
}

// writerEnded is the event of a log writer that will not touch a byte any more.
type writerEnded struct{}

func (writerEnded) turn(l *Loop) {
	for _, r := range l.ordered {
		l.abandon(r)
	}
}

// abandon answers what was on its way to a log that takes nothing any more.
func (l *Loop) abandon(r *replica) {
	appending := r.appending
	r.appending = nil
	for _, a := range appending {
		if part := &a.op.w.Parts[a.i]; part.Err == model.None {
			part.Err = model.ErrKafkaStorageError
		}
		l.partStored(a.op)
	}
	l.landed(r)
}
