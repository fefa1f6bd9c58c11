package controlplane

import (
	"fmt"
	"path"
	"time"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// checkpointEvery makes a checkpoint of new records that are few, as Kafka's
// metadata.log.max.snapshot.interval.ms does.
const checkpointEvery = time.Hour

// checkpointing is the writing of checkpoints: one at a time, of an image that
// does not change, in a task of its own.
type checkpointing struct {
	since   int64 // bytes of records committed since the last one
	size    int64 // about the bytes of the last one: the image's size
	running bool
	next    model.Time // when few records are enough
	err     error      // a checkpoint could not be written: the disk fails
}

// written says that a checkpoint is on disk.
type written struct {
	snap quorum.Snapshot
	size int64
	err  error
}

// maybeCheckpoint starts a checkpoint when enough was written since the last.
func (l *loop) maybeCheckpoint() error {
	c := &l.checkpoint
	if c.next == 0 {
		c.next = l.now().Add(checkpointEvery)
	}
	due := c.since >= max(l.o.SnapshotBytes, c.size) || c.since > 0 && l.now() >= c.next
	if !due || c.running || l.img.InTransaction() || l.img.Feature(featureMetadata) == 0 {
		return nil
	}
	if err := l.dir.Roll(); err != nil {
		return err
	}
	c.running, c.since, c.next = true, 0, l.now().Add(checkpointEvery)
	snap := quorum.Snapshot{Point: l.node.Applied(), Conf: l.node.Conf()}
	img, last, wall := l.img, l.lastStamp, l.wall()
	l.group.Go("checkpoint", func() {
		size, err := writeCheckpoint(l.fs, l.o.Dir, img, last, wall, snap)
		l.post(written{snap, size, err})
	})
	return nil
}

// writeCheckpoint writes the image as the checkpoint at snap and returns its
// size.
func writeCheckpoint(fs vfs.FS, dir string, img *image.Image, last, now model.Millis, snap quorum.Snapshot) (int64, error) {
	if img.End() != snap.End || img.Epoch() != snap.Epoch {
		return 0, fmt.Errorf("the image ends at %d in epoch %d, the log at %d in epoch %d", img.End(), img.Epoch(), snap.End, snap.Epoch)
	}
	id, err := projection.WriteCheckpoint(fs, dir, img, last, now)
	if err != nil {
		return 0, err
	}
	info, err := fs.Stat(path.Join(dir, id.FileName()))
	if err != nil {
		return 0, fmt.Errorf("stat the new checkpoint: %w", err)
	}
	return info.Size, nil
}

// checkpointWritten lets the raft log begin at the checkpoint.
func (l *loop) checkpointWritten(ev written) {
	c := &l.checkpoint
	c.running, c.size = false, ev.size
	if c.err = ev.err; c.err != nil {
		c.err = fmt.Errorf("write checkpoint: %w", c.err)
		return
	}
	if ev.snap.Index <= l.rlog.LastSnapshot().Index {
		return // a newer one came from the leader meanwhile
	}
	c.err = l.wal.Compact(ev.snap, l.rlog.State(), l.rlog.After(ev.snap.Index))
	if c.err == nil {
		l.rlog.Compact(ev.snap, min(keepEntries, l.o.SnapshotBytes))
		c.err = l.dir.Added(projection.ID{End: ev.snap.End, Epoch: ev.snap.Epoch})
	}
	l.log.Info("checkpoint written", "offset", ev.snap.End, "epoch", ev.snap.Epoch, "bytes", ev.size)
}
