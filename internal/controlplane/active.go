package controlplane

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/task"
)

// active is what only the deciding leader has. It is dropped whole with the
// leadership: nothing of it is in force before it is committed.
type active struct {
	epoch model.Epoch
	state *controller.State
	// outbox holds batches that the core has replayed and raft has not taken;
	// records counts theirs.
	outbox  [][]metalog.Record
	records int
	// blocked says that raft takes no more for now: decide nothing further.
	blocked bool
	level   int16 // metadata.version in force when the outbox was begun
	pending []pending
}

// pending is an answer that leaves once everything before end is committed.
type pending struct {
	end   model.Offset
	reply func()
}

// next is the offset that the next decided record will take.
func (a *active) next(n *quorum.Node) model.Offset { return n.Next() + model.Offset(a.records) }

// maxDecisions bounds the decisions of one turn, for heartbeats that come in the
// meantime go first.
const maxDecisions = 256

// enqueue takes a request for the core, or refuses it when another node leads.
func (l *loop) enqueue(c call) {
	if _, leads := l.node.Leading(); !leads {
		c.reply(refusal(c.req, model.ErrNotController))
		return
	}
	if hb, ok := c.req.(*kmsg.BrokerHeartbeatRequest); ok {
		l.beats.note(l, c.conn, hb)
		l.urgent = append(l.urgent, c)
		return
	}
	l.queue = append(l.queue, c)
}

func (l *loop) refuseAll() {
	for _, c := range append(l.urgent, l.queue...) {
		c.reply(refusal(c.req, model.ErrNotController))
	}
	l.urgent, l.queue = nil, nil
}

// followLeadership reacts to a leadership that began or ended. It reports
// whether this node began to decide: it does once the LeaderChange of its epoch
// is applied, for then its image shows all that its log holds.
func (l *loop) followLeadership() bool {
	epoch, leads := l.node.Leading()
	if l.active != nil && (!leads || l.active.epoch != epoch) {
		l.resign()
	}
	if !leads {
		l.refuseAll()
		return false
	}
	if l.active != nil || l.node.Applied().Epoch != epoch {
		return false
	}
	l.activate(epoch)
	return true
}

func (l *loop) activate(epoch model.Epoch) {
	now := l.now()
	if l.img.Read() != l.node.Next() {
		panic(fmt.Sprintf("controlplane: the image ends at %d, this leader's log at %d", l.img.Read(), l.node.Next()))
	}
	l.active = &active{epoch: epoch, state: controller.New(l.o.Core, l.img, now)}
	l.log.Info("this node is the active controller", "epoch", epoch, "offset", l.node.Applied().End)
	l.take(l.active.state.TakeOver(l.call(now)), nil)
	l.probeGone(now)
}

// probeGone dials at once the brokers to whose controllers there is no
// connection: a process that was both is likely to be gone, and nothing that it
// led should wait until its silence is noticed (R13.6).
func (l *loop) probeGone(now model.Time) {
	for _, v := range l.voters.list {
		b := l.img.Broker(v.ID)
		if b == nil || v.ID == l.o.NodeID || l.connected[v.ID] {
			continue
		}
		if p, ok := l.active.state.Disconnected(now, b.ID, b.Epoch); ok {
			l.probes.start(l, p)
		}
	}
}

// resign drops what is decided and not committed, and answers who waits for it.
func (l *loop) resign() {
	a := l.active
	if a == nil {
		return
	}
	l.active = nil
	l.log.Info("this node is not the active controller any more", "epoch", a.epoch)
	for _, p := range a.pending {
		p.reply()
	}
}

// decide has the core do what is due and answer requests, heartbeats first, and
// proposes the outcome.
func (l *loop) decide(now model.Time) {
	a := l.active
	if a == nil {
		return
	}
	a.blocked = false
	l.propose()
	for turn := 0; l.active == a && !a.blocked && turn < maxDecisions; turn++ {
		if a.state.NextDeadline() <= now {
			l.take(a.state.Tick(l.call(now)), nil)
		} else if c, ok := l.pop(); ok {
			l.handle(c, now)
		} else {
			break
		}
		if a.records >= controller.MaxBatch {
			break // the rest has its turn when these are on their way
		}
	}
	l.propose()
}

func (l *loop) handle(c call, now model.Time) {
	res, known := l.active.state.Handle(l.call(now), c.req)
	if !known {
		c.reply(refusal(c.req, model.ErrUnsupportedVersion))
		return
	}
	if err := l.readable(res.Records); err != nil {
		l.log.Error("request refused, for its records could not be read back", "key", c.req.Key(), "err", err)
		c.reply(refusal(c.req, model.ErrInvalidRequest))
		return
	}
	l.take(res, &c)
}

// readable reports whether every node could read the records back. A decision
// changes nothing before it is replayed, so one that would stop every reader of
// the log, such as a string beyond Kafka's limit, can still be dropped here.
func (l *loop) readable(recs []metalog.Record) (err error) {
	if len(recs) == 0 {
		return nil
	}
	defer func() {
		p := recover()
		if task.Killed(p) {
			panic(p)
		}
		if p != nil {
			err = fmt.Errorf("write records: %v", p)
		}
	}()
	level := l.active.state.Image().Feature(featureMetadata)
	for rest := recs; len(rest) > 0; {
		n := min(len(rest), controller.MaxBatch)
		b := metalog.AppendBatch(nil, 0, l.active.epoch, 0, rest[:n], level)
		if _, err := metalog.DecodeBatches(b, func(metalog.Batch) error { return nil }); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (l *loop) pop() (call, bool) {
	from := &l.urgent
	if len(*from) == 0 {
		from = &l.queue
	}
	if len(*from) == 0 {
		return call{}, false
	}
	c := (*from)[0]
	(*from)[0] = call{}
	*from = (*from)[1:]
	return c, true
}

// take replays a decision and queues its records and its answer.
func (l *loop) take(res controller.Result, c *call) {
	a := l.active
	if a.records == 0 {
		a.level = a.state.Image().Feature(featureMetadata)
	}
	for _, recs := range res.Batches() {
		a.add(recs)
		a.state.Replay(recs, a.next(l.node), a.epoch)
	}
	l.explain(res.Reasons)
	for _, p := range res.Probes {
		l.probes.start(l, p)
	}
	if c == nil || res.Response == nil {
		return
	}
	end, reply, req, resp := a.next(l.node), c.reply, c.req, res.Response
	a.pending = append(a.pending, pending{end, func() {
		// After a newer epoch has written, nobody here knows whose these are.
		if at := l.node.Applied(); at.End < end || at.Epoch != a.epoch {
			resp = refusal(req, model.ErrNotController)
		}
		reply(resp)
	}})
}

// add puts records into the outbox: into its last batch if they fit there.
func (a *active) add(recs []metalog.Record) {
	a.records += len(recs)
	if n := len(a.outbox); n > 0 && len(a.outbox[n-1])+len(recs) <= controller.MaxBatch {
		last := a.outbox[n-1]
		a.outbox[n-1] = append(last[:len(last):len(last)], recs...)
		return
	}
	a.outbox = append(a.outbox, recs)
}

func (l *loop) explain(reasons []controller.Reason) {
	if len(reasons) == 0 || !l.log.Enabled(nil, slog.LevelInfo) {
		return
	}
	for _, r := range reasons {
		l.log.Info(r.String())
	}
}

// propose hands the outbox to raft, one entry for about a batch of records.
func (l *loop) propose() {
	a := l.active
	if a == nil {
		return
	}
	level := a.writeLevel()
	for len(a.outbox) > 0 {
		n, records := 0, 0
		for n < len(a.outbox) && (n == 0 || records+len(a.outbox[n]) <= controller.MaxBatch) {
			records += len(a.outbox[n])
			n++
		}
		_, err := l.node.Propose(l.wall(), level, a.outbox[:n]...)
		switch {
		case errors.Is(err, quorum.ErrDropped):
			a.blocked = true
			return
		case err != nil:
			l.log.Info("records could not be proposed", "err", err)
			l.resign()
			return
		}
		a.outbox, a.records = a.outbox[n:], a.records-records
	}
	a.outbox = nil
}

// writeLevel is the metadata.version that records are written in: the lower of
// what was in force before and after the outbox, for either is understood.
func (a *active) writeLevel() int16 {
	after := a.state.Image().Feature(featureMetadata)
	switch {
	case after == 0:
		return metalog.Level
	case a.level == 0:
		return after
	}
	return min(a.level, after)
}

// complete sends the answers whose records, and whatever they saw, are committed.
func (l *loop) complete() {
	a := l.active
	if a == nil {
		return
	}
	end, n := l.node.Applied().End, 0
	for n < len(a.pending) && a.pending[n].end <= end {
		a.pending[n].reply()
		n++
	}
	a.pending = a.pending[n:]
}
