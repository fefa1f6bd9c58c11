package replicas

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// produceOp is one produce request in the loop: it counts the batches that are
// on their way to the log, then waits in the purgatory for the high watermark.
type produceOp struct {
	w        *api.Produce
	l        *Loop
	deadline model.Time
	storing  int // parts whose bytes the log writer may still need
	waits    []partition.ProduceWait
}

// Produce posts a produce request (Walk 1).
func (l *Loop) Produce(w *api.Produce) {
	op := &produceOp{w: w, l: l}
	if !l.inbox.Post(op) {
		op.refuseAll(model.ErrNotLeaderOrFollower)
		w.Stored()
		w.Done()
	}
}

func (op *produceOp) refuseAll(err model.Error) {
	for i := range op.w.Parts {
		if p := &op.w.Parts[i]; p.Err == model.None {
			p.Err = err
		}
	}
}

func (op *produceOp) turn(l *Loop) {
	op.deadline = l.now.Add(op.w.Timeout)
	op.waits = make([]partition.ProduceWait, len(op.w.Parts))
	op.storing = 1 // this turn itself
	for i := range op.w.Parts {
		if op.w.Parts[i].Err == model.None {
			l.producePart(op, i)
		}
	}
	l.partStored(op)
}

// producePart steps one batch into its partition.
func (l *Loop) producePart(op *produceOp, i int) {
	part := &op.w.Parts[i]
	r := part.Hosted.Owner.(*replica)
	if r.p.Role() == partition.Leader && !r.p.Serving() {
		op.storing++
		r.held = append(r.held, producePart{op, i})
		return
	}
	in := &l.in.produce
	*in = partition.Produce{Acks: int8(op.w.Acks), Batch: part.Producer, Bytes: int32(len(part.Batch))}
	rd := l.step(r, in)
	switch {
	case rd.Err != model.None:
		part.Err = rd.Err
		part.Leader, part.LeaderEpoch = r.p.Leader()
	case rd.Duplicate != nil:
		part.Base, part.Timestamp = rd.Duplicate.Base, rd.Duplicate.Timestamp
		op.waits[i] = partition.ProduceWait{End: rd.Duplicate.End, Leadership: r.p.Leadership()}
		if rd.Duplicate.End > r.p.Marks().LEO {
			op.storing++ // the original is still on its way to the log
			l.await(r, appending{rd.Duplicate.End, producePart{op, i}})
		}
	default:
		a := rd.Append
		part.Base = a.Base
		op.waits[i] = partition.ProduceWait{End: a.End, Leadership: r.p.Leadership()}
		op.storing++
		l.await(r, appending{a.End, producePart{op, i}})
		l.jobs = append(l.jobs, job{kind: jobAppend, r: r, bytes: part.Batch, base: a.Base, to: a.End,
			epoch: a.Epoch, stamp: true, epochs: cloneEpochs(a.Epochs)})
	}
}

// await adds a batch to those that the log writer has yet to report.
func (l *Loop) await(r *replica, a appending) {
	i := len(r.appending)
	for i > 0 && r.appending[i-1].end > a.end {
		i--
	}
	r.appending = slices.Insert(r.appending, i, a)
}

// release goes on with the parts that were held back, once the replica serves
// or leads no more.
func (l *Loop) release(r *replica) {
	if len(r.held) == 0 || (r.p.Role() == partition.Leader && !r.p.Serving()) {
		return
	}
	held := r.held
	r.held = nil
	for _, h := range held {
		l.producePart(h.op, h.i)
		l.partStored(h.op)
	}
}

// appended reports to the core what the log writer wrote and frees the
// requests whose last batch is in.
func (l *Loop) appended(r *replica, end model.Offset, pos model.Position) {
	r.ends.add(end, pos)
	l.in.appended = partition.Appended{End: end, Pos: pos}
	l.step(r, &l.in.appended)
	n := 0
	for n < len(r.appending) && r.appending[n].end <= end {
		l.partStored(r.appending[n].op)
		n++
	}
	if n > 0 {
		rest := copy(r.appending, r.appending[n:])
		clear(r.appending[rest:])
		r.appending = r.appending[:rest]
	}
	l.release(r)
}

// partStored notes that one part of op needs its bytes no more. The last one
// answers the request or parks it for the high watermark.
func (l *Loop) partStored(op *produceOp) {
	if op.storing--; op.storing > 0 {
		return
	}
	op.w.Stored()
	if op.w.Acks != -1 {
		op.Complete()
		return
	}
	keys := make([]*replica, 0, len(op.w.Parts))
	for i := range op.w.Parts {
		if p := &op.w.Parts[i]; p.Err == model.None {
			keys = append(keys, p.Hosted.Owner.(*replica))
		}
	}
	if len(keys) == 0 {
		op.Complete()
		return
	}
	l.produces.Park(l.now, op, op.deadline, keys...)
}

// TryComplete reports whether every part is decided (R2.18).
func (op *produceOp) TryComplete() bool {
	for i := range op.w.Parts {
		if p := &op.w.Parts[i]; p.Err == model.None {
			if done, _ := p.Hosted.Owner.(*replica).p.ProduceStatus(op.waits[i]); !done {
				return false
			}
		}
	}
	return true
}

// Expire marks what is still undecided as timed out.
func (op *produceOp) Expire() {
	for i := range op.w.Parts {
		p := &op.w.Parts[i]
		if p.Err != model.None {
			continue
		}
		if done, _ := p.Hosted.Owner.(*replica).p.ProduceStatus(op.waits[i]); !done {
			p.Err = model.ErrRequestTimedOut
		}
	}
}

// Complete fills in the answers and gives the request back.
func (op *produceOp) Complete() {
	for i := range op.w.Parts {
		p := &op.w.Parts[i]
		if p.Hosted != nil {
			r := p.Hosted.Owner.(*replica)
			if p.Err == model.None && op.w.Acks == -1 {
				_, p.Err = r.p.ProduceStatus(op.waits[i])
			}
			p.LogStart = r.p.Marks().LogStart
			if p.Err == model.ErrNotLeaderOrFollower {
				p.Leader, p.LeaderEpoch = r.p.Leader()
			}
		}
		if p.Err != model.None {
			p.Base, p.Timestamp = model.UnknownOffset, -1
		}
	}
	op.w.Done()
}
