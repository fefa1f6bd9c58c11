package replicas

import (
	"context"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/task"
)

// Bounds answers what ListOffsets may see (R9.5, R9.6).
func (l *Loop) Bounds(_ context.Context, asks []api.BoundQuery) {
	l.do(func(*Loop) {
		for i := range asks {
			bound(&asks[i])
		}
	})
}

func bound(a *api.BoundQuery) {
	r := a.Hosted.Owner.(*replica)
	marks := r.p.Marks()
	a.LogStart, a.StartEpoch = marks.LogStart, r.p.EpochAt(marks.LogStart)
	if a.AnyReplica && r.p.Role() == partition.Follower {
		_, a.Epoch = r.p.Leader()
		a.Bound, a.Err = marks.HW, model.None
		switch a.Isolation {
		case partition.ReadCommitted:
			a.Bound = marks.LSO
		case partition.ReadLogEnd:
			a.Bound = marks.LEO
		}
		return
	}
	a.Bound, a.Epoch, a.Err = r.p.ListBound(a.Current, a.Isolation)
}

// EpochEnds answers OffsetForLeaderEpoch (R4.23).
func (l *Loop) EpochEnds(_ context.Context, asks []api.EpochQuery) {
	l.do(func(*Loop) {
		for i := range asks {
			a := &asks[i]
			a.End, a.Err = a.Hosted.Owner.(*replica).p.EndOfEpoch(a.Current, a.Epoch)
		}
	})
}

// DeleteRecords raises log starts and waits until the low watermarks have
// followed (R3.27).
func (l *Loop) DeleteRecords(ctx context.Context, asks []api.DeleteQuery) {
	op := &deleteOp{asks: asks, done: l.rt.NewSignal()}
	if !l.inbox.Post(op) {
		return
	}
	if l.rt.Wait(ctx, task.Forever, op.done, l.done) != task.Ended {
		return
	}
	l.do(func(l *Loop) {
		if !op.over {
			op.given = true
			if len(op.waiting) > 0 {
				l.wakes = append(l.wakes, pendingWake{op.waiting[0], partition.WakeDelete})
			}
		}
	})
	l.rt.Wait(nil, task.Forever, op.done, l.done)
}

// deleteOp is a DeleteRecords request that waits for the followers.
type deleteOp struct {
	asks    []api.DeleteQuery
	targets []model.Offset
	waiting []*replica
	given   bool // the caller's time is up
	over    bool
	done    *task.Signal
}

// noDeadline is beyond any timeout: something else than time ends the wait.
const noDeadline = 1 << 60

func (op *deleteOp) turn(l *Loop) {
	op.targets = make([]model.Offset, len(op.asks))
	for i := range op.asks {
		a := &op.asks[i]
		r := a.Hosted.Owner.(*replica)
		a.LowWatermark = model.UnknownOffset
		target := a.Offset
		if target == -1 {
			target = r.p.Marks().HW
		}
		rd := l.step(r, &partition.DeleteRecords{Offset: a.Offset})
		if a.Err = rd.Err; rd.Err != model.None {
			continue
		}
		op.targets[i] = target
		op.waiting = append(op.waiting, r)
	}
	if len(op.waiting) == 0 {
		op.Complete()
		return
	}
	l.deletes.Park(l.now, op, l.now+noDeadline, op.waiting...)
}

// TryComplete reports whether all low watermarks are there.
func (op *deleteOp) TryComplete() bool {
	if op.given {
		return true
	}
	for i := range op.asks {
		if a := &op.asks[i]; a.Err == model.None && !op.reached(i) {
			return false
		}
	}
	return true
}

// reached reports whether one partition is decided: its low watermark has
// come, or it is led here no more.
func (op *deleteOp) reached(i int) bool {
	r := op.asks[i].Hosted.Owner.(*replica)
	return r.p.Role() != partition.Leader || r.p.LowWatermark() >= op.targets[i]
}

// Expire never has anything to mark: the caller's time ends the wait.
func (op *deleteOp) Expire() {}

// Complete fills in what became of each partition.
func (op *deleteOp) Complete() {
	for i := range op.asks {
		a := &op.asks[i]
		if a.Err != model.None {
			continue
		}
		r := a.Hosted.Owner.(*replica)
		switch {
		case r.p.Role() != partition.Leader:
			a.Err = model.ErrNotLeaderOrFollower
		case r.p.LowWatermark() < op.targets[i]:
			a.Err = model.ErrRequestTimedOut
		default:
			a.LowWatermark = r.p.LowWatermark()
		}
	}
	op.over = true
	op.done.Close()
}
