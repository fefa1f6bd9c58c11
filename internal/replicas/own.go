package replicas

import (
	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
)

// Settled returns the bounds of a log that this broker leads in the epoch, once
// it serves with nothing in flight. Settled with NOT_LEADER_OR_FOLLOWER says that
// it will not; unsettled, that it is worth another look.
func (l *Loop) Settled(h *api.Hosted, epoch model.Epoch) (start, end model.Offset, err model.Error, settled bool) {
	if !l.do(func(l *Loop) { start, end, err, settled = h.Owner.(*replica).settled(epoch) }) {
		return 0, 0, model.ErrNotLeaderOrFollower, true
	}
	return start, end, err, settled
}

func (r *replica) settled(epoch model.Epoch) (start, end model.Offset, err model.Error, settled bool) {
	_, at := r.p.Leader()
	switch {
	case at > epoch || r.stopped():
		return 0, 0, model.ErrNotLeaderOrFollower, true
	case at < epoch || !r.p.Serving() || r.p.InFlight():
		return 0, 0, model.None, false
	}
	m := r.p.Marks()
	return m.LogStart, m.LEO, model.None, true
}

// Append writes one batch of the broker itself to a partition that it leads in
// the epoch (R2.21). done is called once, perhaps from the loop: without an error
// when the batch is committed.
func (l *Loop) Append(h *api.Hosted, epoch model.Epoch, batch []byte, done func(model.Error)) {
	if !l.inbox.Post(&ownAppend{hosted: h, epoch: epoch, batch: batch, done: done}) {
		done(model.ErrNotLeaderOrFollower)
	}
}

// ownAppend is a batch that the broker itself writes to a partition that it
// leads: appended whatever the ISR is, done when the high watermark passes it
// in the same leadership, however long that takes.
type ownAppend struct {
	hosted *api.Hosted
	epoch  model.Epoch
	batch  []byte
	done   func(model.Error)
	r      *replica
	wait   partition.ProduceWait
}

func (op *ownAppend) turn(l *Loop) {
	op.r = op.hosted.Owner.(*replica)
	if _, at := op.r.p.Leader(); at != op.epoch || !op.r.p.Serving() {
		op.done(model.ErrNotLeaderOrFollower)
		return
	}
	h, _ := record.ParseHeader(op.batch)
	in := &l.in.produce
	*in = partition.Produce{Acks: 1, Bytes: int32(len(op.batch)),
		Batch: producers.Batch{ID: model.NoProducerID, Epoch: -1, BaseSequence: -1, Records: h.LastOffsetDelta + 1, MaxTimestamp: h.MaxTimestamp}}
	rd := l.step(op.r, in)
	if rd.Err != model.None {
		op.done(rd.Err)
		return
	}
	a := rd.Append
	op.wait = partition.ProduceWait{End: a.End, Leadership: op.r.p.Leadership()}
	l.jobs = append(l.jobs, job{kind: jobAppend, r: op.r, bytes: op.batch, base: a.Base, to: a.End,
		epoch: a.Epoch, stamp: true, epochs: cloneEpochs(a.Epochs)})
	l.produces.Park(l.now, op, l.now+noDeadline, op.r)
}

// TryComplete reports whether the batch is decided.
func (op *ownAppend) TryComplete() bool {
	done, _ := op.r.p.ProduceStatus(op.wait)
	return done
}

// Expire never comes: there is no deadline.
func (op *ownAppend) Expire() {}

// Complete tells the coordinator. An ISR below its minimum is no failure here:
// the batch is committed.
func (op *ownAppend) Complete() {
	_, err := op.r.p.ProduceStatus(op.wait)
	if err == model.ErrNotEnoughReplicasAfterAppend {
		err = model.None
	}
	op.done(err)
}
