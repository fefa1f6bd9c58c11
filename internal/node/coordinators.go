package node

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/coordinator"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
)

// groups is the group coordinator as api sees it.
type groups struct{ c *coordinator.Coordinator }

// Handle posts a group request.
func (g groups) Handle(r api.GroupRequest) {
	g.c.Handle(r.Req, r.ClientID, strings.TrimPrefix(r.Host, "/"), r.Reply)
}

// groupHost is this broker as its coordinator sees it: the partitions of
// __consumer_offsets in the replicas loop.
type groupHost struct{ l *replicas }

func (h groupHost) find(partition int32) *api.Hosted {
	return h.l.ByName(model.TopicPartition{Topic: coordinator.Topic, Partition: partition})
}

// askAgain is the pause between two looks at a leadership that is not settled.
const askAgain = 2 * time.Millisecond

// Bounds waits until this broker serves the partition in the epoch with nothing
// in flight.
func (h groupHost) Bounds(ctx context.Context, n int32, epoch model.Epoch) (start, end model.Offset, err model.Error) {
	for {
		settled := false
		ok := h.l.do(func(l *replicas) {
			start, end, err, settled = l.groupBounds(h.find(n), epoch)
		})
		if settled {
			return start, end, err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			ok = false
		}
		if !ok {
			return 0, 0, model.ErrNotLeaderOrFollower
		}
	}
}

func (l *replicas) groupBounds(hosted *api.Hosted, epoch model.Epoch) (start, end model.Offset, err model.Error, settled bool) {
	if hosted == nil {
		return 0, 0, model.None, false // the metadata may be ahead of the loop
	}
	r := hosted.Owner.(*replica)
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

// Read returns whole batches of the local log.
func (h groupHost) Read(n int32, from, end model.Offset, maxBytes int) ([]byte, error) {
	hosted := h.find(n)
	if hosted == nil {
		return nil, fmt.Errorf("%s-%d is not hosted here", coordinator.Topic, n)
	}
	s, err := hosted.Log.Read(from, maxBytes, end, true)
	if err != nil {
		return nil, err
	}
	defer s.Release()
	if s.Len == 0 {
		return nil, nil
	}
	buf := make([]byte, s.Len)
	if _, err := s.File.ReadAt(buf, s.Pos); err != nil && err != io.EOF {
		return nil, err
	}
	return buf, nil
}

// Append writes one batch of the coordinator (R2.21).
func (h groupHost) Append(n int32, epoch model.Epoch, batch []byte, done func(model.Error)) {
	op := &ownAppend{l: h.l, hosted: h.find(n), epoch: epoch, batch: batch, done: done}
	if op.hosted == nil || !h.l.inbox.post(op) {
		done(model.ErrNotLeaderOrFollower)
	}
}

// ownAppend is a batch that the broker itself writes to a partition that it
// leads: appended whatever the ISR is, done when the high watermark passes it
// in the same leadership, however long that takes.
type ownAppend struct {
	l      *replicas
	hosted *api.Hosted
	epoch  model.Epoch
	batch  []byte
	done   func(model.Error)
	r      *replica
	wait   partition.ProduceWait
}

func (op *ownAppend) turn(l *replicas) {
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
