package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// loadChunk is how much of a log is read at once.
const loadChunk = 1 << 20

// acquire begins to load a partition, or has it wait for its turn.
func (c *Coordinator) acquire(l leadership) {
	sh := &shard{partition: l.partition, epoch: l.epoch, stop: func() {}}
	c.shards[l.partition] = sh
	c.waiting = append(c.waiting, sh)
	c.loadNext()
}

// loadNext starts what may be read at the same time.
func (c *Coordinator) loadNext() {
	for c.loading < loaders && len(c.waiting) > 0 {
		sh := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.loading++
		ctx, stop := c.rt.WithCancel(context.Background())
		sh.stop = stop
		c.running.Go("load groups", func() {
			core, err := c.load(ctx, sh)
			c.inbox.Post(&loaded{sh: sh, core: core, err: err})
		})
	}
}

// loaded says that a log was read, or why not.
type loaded struct {
	sh   *shard
	core *group.Shard
	err  error
}

func (e *loaded) turn(c *Coordinator) {
	sh := e.sh
	c.loading--
	c.loadNext()
	if c.shards[sh.partition] != sh {
		return
	}
	if e.err != nil {
		sh.failed = true
		c.log.Error("cannot become coordinator of groups", "partition", sh.partition, "epoch", sh.epoch, "error", e.err)
		return
	}
	sh.core = e.core
	c.act(sh, sh.core.Loaded(c.now, c.wall))
}

// load reads a partition from its start to its end, committed or not (R2.21).
func (c *Coordinator) load(ctx context.Context, sh *shard) (*group.Shard, error) {
	began := c.clock.Now()
	start, end, code := c.host.Bounds(ctx, sh.partition, sh.epoch)
	if code != model.None {
		return nil, fmt.Errorf("wait for the leadership: %w", code)
	}
	core := group.New(c.cfg, c.clock.Now(), c.clock.Wall())
	l := loader{c: c, sh: sh, core: core}
	for at := start; at < end; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		set, err := c.host.Read(sh.partition, at, end, loadChunk)
		if err != nil {
			return nil, fmt.Errorf("read %s-%d at %d: %w", Topic, sh.partition, at, err)
		}
		next, err := l.replay(set)
		if err != nil {
			return nil, fmt.Errorf("replay %s-%d at %d: %w", Topic, sh.partition, at, err)
		}
		if next <= at {
			break // the rest up to end holds nothing any more: it was compacted away
		}
		at = next
	}
	c.log.Info("coordinator of groups", "partition", sh.partition, "epoch", sh.epoch, "records", l.records, "unread", l.unread,
		"took", c.clock.Now().Sub(began).Round(time.Millisecond))
	return core, nil
}

// loader folds batches into a shard.
type loader struct {
	c               *Coordinator
	sh              *shard
	core            *group.Shard
	records, unread int
}

// replay folds the batches of set in and returns the offset after them; an
// empty set gives UnknownOffset.
func (l *loader) replay(set []byte) (model.Offset, error) {
	next := model.UnknownOffset
	for h, batch := range record.Split(set) {
		next = h.Next()
		if !record.Valid(batch) {
			return next, errBadChecksum
		}
		if h.Control() {
			if p := record.ProducerOf(batch); p.ID != model.NoProducerID {
				l.core.EndTransaction(p.ID, p.Commit)
			}
			continue
		}
		id := model.NoProducerID
		if h.Transactional() {
			id = h.Producer().ID
		}
		err := record.Records(batch, func(r *record.Record) bool {
			l.fold(group.Record{Key: r.Key, Value: r.Value}, id, r.Offset)
			return true
		})
		if err != nil {
			return next, err
		}
	}
	return next, nil
}

var errBadChecksum = errors.New("a batch has a wrong checksum")

// maxComplaints bounds how many unreadable records are named in the log.
const maxComplaints = 5

func (l *loader) fold(r group.Record, id model.ProducerID, at model.Offset) {
	l.records++
	if err := l.core.Replay(r, id); err != nil {
		if l.unread++; l.unread <= maxComplaints {
			l.c.log.Warn("a record of the groups cannot be read", "partition", l.sh.partition, "offset", at, "error", err)
		}
	}
}
