package storage

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// roll ends the active segment and begins the next one for a batch of h. It
// begins at the log end, so that above the recovery point segments join without
// a gap: recovery takes a gap for lost bytes. Only a batch that lies too far
// away for its offset to be held begins a segment of its own.
func (l *Log) roll(h *record.Header, now model.Millis) (*segment, error) {
	base := l.leo
	if fits(base, h.LastOffset()) {
		return l.rollTo(base, now)
	}
	if err := l.sync(); err != nil {
		return nil, err
	}
	s, err := l.rollTo(h.Base, now)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.recovery = h.Base // nothing lies between it and what was synced
	l.mu.Unlock()
	return s, l.d.CheckpointRecovery()
}

// rollTo makes the new active segment at base (R8.13). What it leaves behind is
// made durable in the background, which then raises the recovery point.
func (l *Log) rollTo(base model.Offset, now model.Millis) (*segment, error) {
	cfg := l.cfg.Load()
	old := l.segs[len(l.segs)-1]
	if err := old.seal(cfg); err != nil {
		return nil, err
	}
	s := newSegment(l.d.files, l.dir, base)
	if base == old.base {
		return old, nil // nothing was in it
	}
	if l.RecoveryPoint() >= base {
		// Flushes counted the log file alone. As soon as there is a newer segment
		// this one is not read again.
		if err := old.sync(); err != nil {
			return nil, err
		}
	}
	if err := s.create(now); err != nil {
		return nil, err
	}
	l.namesDirty = true
	if err := l.snapshot(base, false); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.segs = append(slices.Clip(l.segs), s)
	l.tail = nil
	cuts := l.cuts
	l.mu.Unlock()
	l.d.later(chore{flush: l, upto: base, cuts: cuts})
	return s, nil
}

// snapshot writes the producer state at an offset without the ids that were idle
// for too long (R2.16), and removes snapshots that
// belong to no segment, but for the newest of them.
func (l *Log) snapshot(at model.Offset, durable bool) error {
	name := path.Join(l.dir, segmentName(at, snapshotSuffix))
	l.mu.Lock()
	var entries []producers.Entry
	if l.producers != nil {
		l.producers.Expire(l.d.opts.Now(), l.d.opts.ProducerExpiry)
		entries = l.producers.Entries()
	}
	l.mu.Unlock()
	b := format.Snapshot(entries)
	if l.snapped == at {
		if old, err := readFile(l.d.fs, name); err == nil && sameSnapshot(old, entries) {
			return nil
		}
	}
	f, err := l.d.fs.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil && durable {
		err = f.Sync()
	}
	l.namesDirty = true
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	l.snapped = at
	return l.dropStraySnapshots(at)
}

// sameSnapshot reports whether a file says the same in perhaps another order.
func sameSnapshot(b []byte, entries []producers.Entry) bool {
	old, err := format.ParseSnapshot(b)
	if err != nil || len(old) != len(entries) {
		return false
	}
	slices.SortFunc(old, func(a, b producers.Entry) int { return int(min(1, max(-1, a.ID-b.ID))) })
	return slices.Equal(old, entries)
}

// dropStraySnapshots removes the snapshots below newest that no segment begins
// at; they were taken when the log was closed or recovered.
func (l *Log) dropStraySnapshots(newest model.Offset) error {
	infos, err := l.d.fs.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		base, suffix, ok := parseSegmentName(info.Name)
		if !ok || suffix != snapshotSuffix || base >= newest {
			continue
		}
		if slices.ContainsFunc(l.segs, func(s *segment) bool { return s.base == base }) {
			continue
		}
		if err := l.d.fs.Remove(path.Join(l.dir, info.Name)); err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// Flush makes everything below LEO durable and raises the recovery point.
func (l *Log) Flush(now model.Millis) error {
	if err := l.usable(); err != nil {
		return err
	}
	if err := l.sync(); err != nil {
		return l.fail("flush", err)
	}
	l.lastFlush = now
	return nil
}

// FlushDue reports whether flush.ms has passed over records that are not
// durable; the owner asks it on a timer.
func (l *Log) FlushDue(now model.Millis) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && l.recovery < l.leo && int64(now-l.lastFlush) >= l.cfg.Load().FlushMs
}

// sync is Flush without the questions. Of the active segment only the log file
// counts: recovery reads that segment in any case and makes its indexes anew.
func (l *Log) sync() error {
	if err := l.rightEpochs(); err != nil {
		return err
	}
	v := l.view()
	first := v.floor(l.RecoveryPoint())
	for i, s := range v.segs[first:] {
		if i+first < len(v.segs)-1 {
			if err := s.sync(); err != nil {
				return err
			}
			continue
		}
		if err := s.log.sync(); err != nil {
			return err
		}
	}
	if err := l.syncNames(); err != nil {
		return err
	}
	l.mu.Lock()
	l.recovery = max(l.recovery, v.leo)
	l.mu.Unlock()
	return nil
}

// syncNames makes the folder's new names durable, and the folder's own.
func (l *Log) syncNames() error {
	if err := l.settleMetadata(); err != nil {
		return err
	}
	if !l.namesDirty {
		return nil
	}
	if err := l.d.fs.SyncDir(l.dir); err != nil {
		return err
	}
	l.namesDirty = false
	return nil
}

// sync makes a closed segment durable, with its snapshot (R8.13).
func (s *segment) sync() error {
	if err := errors.Join(s.log.sync(), s.index.f.sync(), s.time.f.sync()); err != nil {
		return err
	}
	fs := s.log.c.fs
	for _, suffix := range []string{txnSuffix, snapshotSuffix} {
		f, err := fs.Open(path.Join(s.dir, segmentName(s.base, suffix)))
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// settleMetadata makes partition.metadata durable, with the names of the log's
// folder and of its files: once, before the first bytes (R8.9).
func (l *Log) settleMetadata() error {
	if !l.metaDirty {
		return nil
	}
	f, err := l.d.fs.Open(path.Join(l.dir, metadataFile))
	switch {
	case err == nil:
		err = errors.Join(f.Sync(), f.Close())
	case missing(err):
		err = nil // lost, see SetTopicID
	}
	err = errors.Join(err, l.d.fs.SyncDir(l.dir), l.d.fs.SyncDir(l.d.path))
	if err != nil {
		return l.fail("settle metadata of", err)
	}
	l.metaDirty, l.namesDirty = false, false
	return nil
}

// WriteEpochs makes the epoch cache durable (R8.12). The file is not touched
// when it holds the same already.
func (l *Log) WriteEpochs(entries []model.EpochStart) error {
	if err := l.usable(); err != nil {
		return err
	}
	if !l.epochsDirty && slices.Equal(entries, l.epochs.Entries()) {
		return nil
	}
	if err := l.settleMetadata(); err != nil {
		return err
	}
	if err := writeFile(l.d.fs, path.Join(l.dir, epochsFile), format.Epochs(entries)); err != nil {
		return l.fail("write epochs of", err)
	}
	l.namesDirty = false
	l.keepEpochs(entries)
	l.epochsDirty, l.epochsWrong = false, false
	return nil
}

// rightEpochs replaces an epoch checkpoint that a start found not to fit the log,
// before bytes come to it, or are trusted, of which it would say the wrong epoch
// (R8.12).
func (l *Log) rightEpochs() error {
	if !l.epochsWrong {
		return nil
	}
	return l.WriteEpochs(l.epochs.Entries())
}

// flushBelow is the background's part of a roll: everything below upto becomes
// durable, then the recovery point rises, unless the log was cut meanwhile.
func (l *Log) flushBelow(upto model.Offset, cuts uint64) error {
	l.mu.Lock()
	stale := l.cuts != cuts || l.closed
	v := view{segs: l.segs, leo: l.leo}
	recovery := l.recovery
	l.mu.Unlock()
	if stale || recovery >= upto {
		return nil
	}
	for _, s := range v.segs[v.floor(recovery):] {
		if s.base > upto {
			break
		}
		err := s.syncBelow(upto)
		if err != nil && l.has(s, cuts) {
			return fmt.Errorf("flush %s %s: %w", l.tp, s, err)
		}
	}
	if err := l.d.fs.SyncDir(l.dir); err != nil && !l.isClosed() {
		return fmt.Errorf("flush %s: %w", l.tp, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == cuts && !l.closed {
		l.recovery = max(l.recovery, upto)
	}
	return nil
}

// syncBelow syncs a segment that ends at or before upto, or only the snapshot
// of the one that begins there.
func (s *segment) syncBelow(upto model.Offset) error {
	if s.base < upto {
		return s.sync()
	}
	f, err := s.log.c.fs.Open(path.Join(s.dir, segmentName(s.base, snapshotSuffix)))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// has reports whether a segment is part of the log, and no cut has begun since the
// log had so many: a cut takes a segment's files first.
func (l *Log) has(s *segment, cuts uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && l.cuts == cuts && slices.Contains(l.segs, s)
}

func (l *Log) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// usable says why the log may not be written any more.
func (l *Log) usable() error {
	if l.isClosed() {
		return fmt.Errorf("%s: %w", l.tp, ErrClosed)
	}
	return l.d.usable()
}

func (l *Log) keepEpochs(entries []model.EpochStart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs.Clear()
	for _, e := range entries {
		l.epochs.Assign(e.Epoch, e.Start)
	}
}
