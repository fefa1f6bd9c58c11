package replicas

import (
	"errors"
	"log/slog"
	"path"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// crank is the replicas loop and the log writer of broker 1 without goroutines:
// the test turns both by hand. Its logs lie in memory, its clock stands still.
type crank struct {
	*Loop
	t      *testing.T
	time   *stoppedClock
	dir    *storage.Dir
	told   []event                // what the log writer has to tell the loop
	writes int                    // writes to log segments
	broken bool                   // writes to log segments fail
	onSync func(log string) error // at each sync of a log segment; nil does nothing
}

var errDisk = errors.New("the disk is broken")

// unheard is an Observer that nobody listens to.
type unheard struct{}

func (unheard) Reasons(model.TopicPartition, []partition.Reason) {}
func (unheard) Cut(model.TopicPartition, partition.Cut)          {}

// stoppedClock moves only when a test moves it.
type stoppedClock struct{ now model.Time }

func (c *stoppedClock) Now() model.Time    { return c.now }
func (c *stoppedClock) Wall() model.Millis { return 1_700_000_000_000 + model.Millis(c.now/1e6) }

func newCrank(t *testing.T) *crank {
	t.Helper()
	c := &crank{t: t, time: &stoppedClock{now: model.Time(time.Hour)}}
	fs := vfs.Faulty(vfs.NewMem(), func(op vfs.Op) error { return c.disk(op) })
	var err error
	if c.dir, err = storage.OpenDir(fs, "/data", storage.DirOptions{ClusterID: "c", NodeID: 1, Manual: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.dir.Close() })
	l, err := newLoop(Options{ID: 1, Clock: c.time, Log: slog.New(slog.DiscardHandler), Observer: unheard{}, Dir: t.TempDir(),
		LagMax: 30 * time.Second, Fetch: FetchOptions{Backoff: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	l.startFn = func(*source) {}
	l.writer.tell = func(e event) { c.told = append(c.told, e) }
	l.peers = partition.Peers{1: {Epoch: 10}, 2: {Epoch: 20}, 3: {Epoch: 30}}
	c.Loop = l
	return c
}

// turn has the loop handle events, as one batch of its inbox.
func (c *crank) turn(events ...event) {
	c.begin()
	for _, e := range events {
		c.Turn(e)
	}
	c.expire()
	c.flush()
}

// posted has the loop handle what was posted.
func (c *crank) posted() { c.turn(c.inbox.Take(nil)...) }

// write has the log writer carry out its orders in one go; tell brings the
// reports to the loop.
func (c *crank) write() {
	c.t.Helper()
	if err := c.writer.Turn(c.writer.inbox.Take(nil)); err != nil {
		c.t.Fatalf("the log writer fails: %v", err)
	}
}

func (c *crank) tell() {
	told := c.told
	c.told = nil
	for _, rs := range told {
		c.turn(rs)
	}
}

// settle turns both until the log writer has nothing to do.
func (c *crank) settle() {
	c.t.Helper()
	for c.writer.inbox.Len() > 0 || len(c.told) > 0 {
		c.write()
		c.tell()
	}
}

// wait lets time pass.
func (c *crank) wait(d time.Duration) {
	c.time.now = c.time.now.Add(d)
	c.turn()
}

// idOf names the partition of a topic by a number.
func idOf(n byte) model.TopicIDPartition { return model.TopicIDPartition{TopicID: model.UUID{n}} }

// hosted takes a new partition in, which has no leader yet.
func (c *crank) hosted(n byte) *replica {
	c.t.Helper()
	tp := model.TopicPartition{Topic: string('a' + rune(n))}
	log, err := c.dir.Create(tp, idOf(n).TopicID, storage.DefaultLogConfig(), 0)
	if err != nil {
		c.t.Fatal(err)
	}
	h := &api.Hosted{TP: tp, ID: idOf(n), Log: log}
	c.turn(call(func(l *Loop) { l.host(Opened{Hosted: h, MinISR: 1}) }))
	return h.Owner.(*replica)
}

// assigned makes leader lead r in an epoch; all three brokers are in the ISR unless
// isr says otherwise.
func (c *crank) assigned(r *replica, leader model.BrokerID, epoch model.Epoch, isr ...model.BrokerID) {
	if isr == nil {
		isr = []model.BrokerID{1, 2, 3}
	}
	p := &image.Partition{Replicas: []model.BrokerID{1, 2, 3}, ISR: isr, Leader: leader, LeaderEpoch: epoch,
		PartitionEpoch: model.PartitionEpoch(epoch)}
	c.turn(call(func(l *Loop) { l.assign(Assigned{Hosted: r.hosted, To: p}) }))
}

// assignedAt changes the ISR of what broker 1 leads in epoch 1.
func (c *crank) assignedAt(r *replica, version model.PartitionEpoch, isr ...model.BrokerID) {
	p := &image.Partition{Replicas: []model.BrokerID{1, 2, 3}, ISR: isr, Leader: 1, LeaderEpoch: 1, PartitionEpoch: version}
	c.turn(call(func(l *Loop) { l.assign(Assigned{Hosted: r.hosted, To: p}) }))
}

// led returns a new partition that broker 1 leads and serves in epoch 1.
func (c *crank) led(n byte, isr ...model.BrokerID) *replica {
	c.t.Helper()
	r := c.hosted(n)
	c.assigned(r, 1, 1, isr...)
	c.settle()
	return r
}

// followed returns a new partition that broker 2 leads in epoch 1.
func (c *crank) followed(n byte) *replica {
	c.t.Helper()
	r := c.hosted(n)
	c.assigned(r, 2, 1)
	c.settle()
	return r
}

// asked is a produce request and what became of it.
type asked struct {
	api.Produce
	stored, done int
}

// batchOf makes a batch of records with values of that many bytes.
func batchOf(opts record.BatchOptions, records, bytes int) []byte {
	b := record.NewBuilder(opts)
	for range records {
		b.Add(1, nil, make([]byte, bytes))
	}
	return b.Bytes()
}

// produce makes a request of one small batch for each replica.
func produce(acks int16, to ...*replica) *asked {
	w := &asked{Produce: api.Produce{Acks: acks, Timeout: time.Minute}}
	for _, r := range to {
		w.Parts = append(w.Parts, partOf(r, batchOf(record.PlainOptions(), 1, 10)))
	}
	w.Stored, w.Done = func() { w.stored++ }, func() { w.done++ }
	return w
}

func partOf(r *replica, batch []byte) api.ProducePart {
	h, _ := record.ParseHeader(batch)
	return api.ProducePart{Hosted: r.hosted, Batch: batch, Producer: h.Producer(), Base: model.UnknownOffset}
}

func (c *crank) post(ws ...*asked) {
	for _, w := range ws {
		c.Produce(&w.Produce)
	}
	c.posted()
}

// poll is a fetch request and what became of it.
type poll struct {
	api.Fetch
	done int
}

// fetchOf asks for replicas from their offsets on, as a consumer or a follower.
func fetchOf(who model.BrokerID, wait time.Duration, minBytes int64, offset model.Offset, of ...*replica) *poll {
	f := &poll{Fetch: api.Fetch{Replica: who, MaxWait: wait, MinBytes: minBytes, MaxBytes: 1 << 20}}
	for _, r := range of {
		_, epoch := r.p.Leader()
		req := partition.FetchRequest{Replica: who, ReplicaEpoch: model.BrokerEpoch(10 * who), LeaderEpoch: epoch, Offset: offset,
			Pos: model.UnknownPosition, LastEpoch: model.NoEpoch, MaxBytes: 1 << 20}
		if minBytes > 1 {
			req.Pos, _ = r.log.Locate(offset)
		}
		f.Parts = append(f.Parts, api.FetchPart{Hosted: r.hosted, Request: req})
	}
	f.Done = func() { f.done++ }
	return f
}

func (c *crank) ask(fs ...*poll) {
	for _, f := range fs {
		c.Fetch(&f.Fetch)
	}
	c.posted()
}

// disk is asked before every operation on files.
func (c *crank) disk(op vfs.Op) error {
	if op.Kind == vfs.OpSync && path.Ext(op.Path) == ".log" && c.onSync != nil {
		return c.onSync(op.Path)
	}
	if op.Kind != vfs.OpWrite || path.Ext(op.Path) != ".log" {
		return nil
	}
	c.writes++
	if c.broken {
		return errDisk
	}
	return nil
}

// sourceOf is what is fetched from a leader.
func (c *crank) sourceOf(leader model.BrokerID) *source {
	c.t.Helper()
	s := c.sources[lane{leader: leader}]
	if s == nil {
		c.t.Fatalf("nothing is fetched from broker %d", leader)
	}
	return s
}

// wish tells the loop that the fetcher of s is ready, and returns its next
// request, if there is one now.
func (c *crank) wish(s *source, full bool) (fetchPlan, bool) {
	c.turn(wantPlan{s: s, full: full})
	return c.planned(s)
}

func (c *crank) planned(s *source) (fetchPlan, bool) {
	if plans := s.plans.Take(nil); len(plans) > 0 {
		return plans[0], true
	}
	return fetchPlan{}, false
}

// answer is a leader's answer that holds what each part says; freed counts how
// often its bytes were given back.
type answer struct {
	fetched
	freed int
}

func answerOf(s *source, parts ...fetchedPart) *answer {
	a := &answer{fetched: fetched{s: s, parts: parts}}
	a.free = func() { a.freed++ }
	return a
}

// batchesFor is a part that brings one batch of records to r, from its end on.
func batchesFor(r *replica, records int) fetchedPart {
	opts := record.PlainOptions()
	opts.Base, opts.LeaderEpoch = r.p.Marks().LEO, 1
	b := batchOf(opts, records, 10)
	h, _ := record.ParseHeader(b)
	return fetchedPart{id: r.hosted.ID, data: b, resp: partition.FetchResponse{Diverging: model.UndefinedEpochEnd,
		Batches: []partition.FetchedBatch{{Base: h.Base, Last: h.LastOffset(), Epoch: h.LeaderEpoch, Bytes: int32(len(b)), Producer: h.Producer()}}}}
}

// errorFor is a part that refuses r.
func errorFor(r *replica, err model.Error) fetchedPart {
	return fetchedPart{id: r.hosted.ID, resp: partition.FetchResponse{Err: err, Diverging: model.UndefinedEpochEnd}}
}

// names lists the topics of a plan's parts.
func names(parts []planPart) string {
	out := ""
	for _, p := range parts {
		out += p.tp.Topic
	}
	return out
}
