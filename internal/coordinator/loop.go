package coordinator

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// event is anything that happens to the loop.
type event interface{ turn(c *Coordinator) }

// shard is one partition led here, in one epoch.
//
//	loading -> serving      the log was read
//	loading -> failed       the log could not be read
//	any     -> gone         the leadership ended
type shard struct {
	partition int32
	epoch     model.Epoch
	core      *group.Shard // nil while loading, and after a failure
	failed    bool
	stop      func() // ends the load
	writes    []group.Write
	dirty     bool
}

// refusal is why the shard cannot serve; None when it can.
func (sh *shard) refusal() model.Error {
	switch {
	case sh == nil || sh.failed:
		return model.ErrNotCoordinator
	case sh.core == nil:
		return model.ErrCoordinatorLoadInProgress
	}
	return model.None
}

func (c *Coordinator) loop() {
	w := c.rt.NewWaiter()
	var batch []event
	for {
		batch = c.inbox.Take(batch)
		c.Turn(batch)
		if c.inbox.Drained() {
			c.end()
			return
		}
		w.Wait(nil, c.sleep(), c.inbox.Wake)
	}
}

// Turn handles events, lets time act and sends the writes of all of that to the
// log, those of one partition together.
func (c *Coordinator) Turn(events []event) {
	c.now, c.wall = c.clock.Now(), c.clock.Wall()
	for _, e := range events {
		e.turn(c)
	}
	for _, n := range slices.Sorted(maps.Keys(c.shards)) {
		sh := c.shards[n]
		if sh.core == nil {
			continue
		}
		if next, ok := sh.core.NextDeadline(); ok && next <= c.now {
			c.act(sh, sh.core.Tick(c.now, c.wall))
		}
	}
	c.flush()
}

// sleep is how long nothing is to do.
func (c *Coordinator) sleep() time.Duration {
	d := idle
	for _, sh := range c.shards {
		if sh.core == nil {
			continue
		}
		if next, ok := sh.core.NextDeadline(); ok {
			d = min(d, next.Sub(c.clock.Now()))
		}
	}
	return max(d, 0)
}

// end answers what waits.
func (c *Coordinator) end() {
	for _, n := range slices.Sorted(maps.Keys(c.shards)) {
		c.release(c.shards[n])
	}
}

// act carries out what a shard decided. Writes wait for the end of the turn.
func (c *Coordinator) act(sh *shard, r group.Ready) {
	for _, reply := range r.Replies {
		reply.To.(func(kmsg.Response))(reply.Resp)
	}
	for _, reason := range r.Reasons {
		level := slog.LevelDebug
		switch reason.Code {
		case group.SessionEnded, group.JoinTimedOut, group.SyncTimedOut, group.AssignmentUnsaved:
			level = slog.LevelInfo
		}
		if ctx := context.Background(); c.log.Enabled(ctx, level) {
			c.log.Log(ctx, level, reason.String())
		}
	}
	if len(r.Writes) == 0 {
		return
	}
	sh.writes = append(sh.writes, r.Writes...)
	if !sh.dirty {
		sh.dirty = true
		c.dirty = append(c.dirty, sh)
	}
}

// flush sends the writes of this turn to the log. A refused write may lead to
// more of them.
func (c *Coordinator) flush() {
	for len(c.dirty) > 0 {
		dirty := c.dirty
		c.dirty = nil
		for _, sh := range dirty {
			sh.dirty = false
			writes := sh.writes
			sh.writes = nil
			c.write(sh, writes)
		}
	}
}

// write puts writes into as few batches as fit, in order, none of them torn. A
// write that is too large by itself is refused.
func (c *Coordinator) write(sh *shard, writes []group.Write) {
	var ids []uint64
	c.builder.Reset(record.PlainOptions())
	for _, w := range writes {
		size := sizeOf(w)
		if record.HeaderSize+size > c.maxBatch {
			c.send(sh, ids)
			ids = nil
			c.act(sh, sh.core.Failed(c.now, c.wall, w.ID, model.ErrMessageTooLarge))
			continue
		}
		if c.builder.Size()+size > c.maxBatch {
			c.send(sh, ids)
			ids = nil
		}
		ids = append(ids, w.ID)
		for _, r := range w.Records {
			c.builder.Add(c.wall, r.Key, r.Value)
		}
	}
	c.send(sh, ids)
}

// recordOverhead is the most that a record takes besides key and value:
// lengths, attributes, deltas.
const recordOverhead = 32

func sizeOf(w group.Write) int {
	n := 0
	for _, r := range w.Records {
		n += len(r.Key) + len(r.Value) + recordOverhead
	}
	return n
}

// send appends what the builder holds.
func (c *Coordinator) send(sh *shard, ids []uint64) {
	if len(ids) == 0 {
		return
	}
	batch := bytes.Clone(c.builder.Bytes())
	c.builder.Reset(record.PlainOptions())
	c.host.Append(sh.partition, sh.epoch, batch, func(err model.Error) {
		c.inbox.Post(&written{sh: sh, ids: ids, err: err})
	})
}

// written says what became of one batch.
type written struct {
	sh  *shard
	ids []uint64
	err model.Error
}

func (e *written) turn(c *Coordinator) {
	sh := e.sh
	if c.shards[sh.partition] != sh {
		return // of a leadership that ended; it answered everything
	}
	if e.err == model.None {
		c.act(sh, sh.core.Committed(c.now, c.wall, e.ids[len(e.ids)-1]))
		return
	}
	c.log.Info("group records were not written", "partition", sh.partition, "error", e.err)
	for _, id := range e.ids {
		c.act(sh, sh.core.Failed(c.now, c.wall, id, e.err))
	}
}

// moved is a change of the cluster's metadata.
type moved struct {
	led     []leadership
	deleted map[string]bool // topics
}

// leadership says whether a partition is led here, and in which epoch.
type leadership struct {
	partition int32
	here      bool
	epoch     model.Epoch
}

func (e *moved) turn(c *Coordinator) {
	for _, l := range e.led {
		sh := c.shards[l.partition]
		if sh != nil && l.here && sh.epoch == l.epoch {
			continue
		}
		if sh != nil {
			c.release(sh)
		}
		if l.here {
			c.acquire(l)
		}
	}
	if e.deleted == nil {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(c.shards)) {
		if sh := c.shards[n]; sh.core != nil {
			c.act(sh, sh.core.TopicsDeleted(c.now, c.wall, e.deleted))
		}
	}
}

// release lets go of a partition and answers all that waits for it.
func (c *Coordinator) release(sh *shard) {
	delete(c.shards, sh.partition)
	c.waiting = slices.DeleteFunc(c.waiting, func(o *shard) bool { return o == sh })
	sh.stop()
	sh.writes = nil
	if sh.core != nil {
		c.act(sh, sh.core.Close(c.now, c.wall))
		sh.core = nil
		c.log.Info("no longer coordinator of groups", "partition", sh.partition, "epoch", sh.epoch)
	}
	c.dirty = slices.DeleteFunc(c.dirty, func(o *shard) bool { return o == sh })
}
