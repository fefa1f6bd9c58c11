package storage

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// Truncated is what a truncation left.
type Truncated struct {
	LEO, Start model.Offset
	Pos        model.Position   // of LEO
	Producers  *producers.State // rebuilt from the log that is left; the caller's
}

// Truncate cuts the log to the offset and makes epochs the epoch cache (R4.12).
// A batch that the offset lies within goes whole. At or above LEO only the
// epochs change; below the first segment the log starts anew there.
func (l *Log) Truncate(to model.Offset, epochs []model.EpochStart, now model.Millis) (Truncated, error) {
	if err := l.usable(); err != nil {
		return Truncated{}, err
	}
	switch {
	case to >= l.leo:
	case to < l.segs[0].base:
		if err := l.restart(to, min(l.start, to), now); err != nil {
			return Truncated{}, err
		}
	default:
		if err := l.cutTo(to); err != nil {
			return Truncated{}, l.fail("truncate", err)
		}
	}
	if err := l.WriteEpochs(epochs); err != nil {
		return Truncated{}, err
	}
	return l.truncated(), nil
}

// Restart drops everything and starts an empty log at the offset, which becomes
// the log start too (R4.10, R4.13).
func (l *Log) Restart(at model.Offset, epochs []model.EpochStart, now model.Millis) (Truncated, error) {
	if err := l.usable(); err != nil {
		return Truncated{}, err
	}
	if err := l.restart(at, at, now); err != nil {
		return Truncated{}, err
	}
	if err := l.WriteEpochs(epochs); err != nil {
		return Truncated{}, err
	}
	return l.truncated(), nil
}

func (l *Log) truncated() Truncated {
	p := l.Producers()
	l.mu.Lock()
	defer l.mu.Unlock()
	return Truncated{LEO: l.leo, Start: l.start, Pos: l.endPos(), Producers: p}
}

// cutTo removes the records from the batch that holds `to` on, which lies in
// [first segment's base, LEO).
func (l *Log) cutTo(to model.Offset) error {
	v := l.view()
	keep := v.floor(to)
	s := v.segs[keep]
	leo, pos, err := l.cutPoint(s, v.size(keep), to)
	if err != nil {
		return err
	}
	if err := l.lower(leo, min(l.start, leo)); err != nil {
		return err
	}
	gone := v.segs[keep+1:]
	l.mu.Lock()
	l.segs = v.segs[: keep+1 : keep+1]
	l.leo = leo
	s.size.Store(pos)
	l.tail = nil
	l.mu.Unlock()
	if err := l.discard(gone); err != nil {
		return err
	}
	if err := s.truncate(pos, leo); err != nil {
		return err
	}
	if err := l.dropSnapshots(leo); err != nil {
		return err
	}
	if err := l.d.fs.SyncDir(l.dir); err != nil {
		return err
	}
	l.namesDirty = false
	return l.rebuildProducers()
}

// cutPoint finds where in the segment the batch that holds the offset begins.
func (l *Log) cutPoint(s *segment, end int64, to model.Offset) (model.Offset, int64, error) {
	f, err := s.log.acquire()
	if err != nil {
		return 0, 0, err
	}
	defer s.log.release()
	w := newWalk(f, 0, end)
	defer w.done()
	h, err := s.seek(w, to)
	if errors.Is(err, errEnd) {
		return to, end, nil // a gap: nothing at or after it in this segment
	}
	return min(to, h.Base), w.pos, err
}

// lower makes durable that recovery point, HW and log start sink, before
// anything is cut (R8.14): a checkpoint above the log would throw it away.
func (l *Log) lower(recovery, start model.Offset) error {
	l.mu.Lock()
	l.cuts++
	l.recovery = min(l.recovery, recovery)
	l.start = min(l.start, start)
	l.mu.Unlock()
	saved := &l.d.saved
	if err := l.d.checkpointRecovery(func() bool { return saved.recovery[l.tp] > recovery }); err != nil {
		return err
	}
	if err := l.d.lowerHW(l.tp, recovery); err != nil {
		return err
	}
	return l.d.checkpointStart(func() bool { return saved.start[l.tp] > start })
}

// discard takes segments off the disk, the last one first, so that a crash
// leaves a log without a hole. Their files go after the delay; who reads them
// goes on.
func (l *Log) discard(gone []*segment) error {
	for _, s := range slices.Backward(gone) {
		if err := l.retire(s); err != nil {
			return err
		}
	}
	return nil
}

// retire renames a segment's files to .deleted, the log first: what loading may
// find of the others are orphans, which it removes.
func (l *Log) retire(s *segment) error {
	for _, suffix := range segmentFiles {
		name := path.Join(l.dir, segmentName(s.base, suffix))
		aside := name + deletedSuffix
		err := l.d.fs.Rename(name, aside)
		if missing(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("discard %s: %w", s, err)
		}
		l.d.later(chore{remove: aside, after: l.cfg.Load().FileDeleteDelay})
	}
	l.namesDirty = true
	for _, f := range s.files() {
		f.kill()
	}
	return nil
}

// truncate cuts the segment's files; leo is the log end after it. The cut is
// durable at once: else the old tail could return after a crash and be followed
// by a newer segment that begins where it ends.
func (s *segment) truncate(pos int64, leo model.Offset) error {
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	err = f.Truncate(pos)
	if err == nil {
		err = f.Sync()
	}
	s.log.release()
	if err != nil {
		return err
	}
	if err := s.cutIndexes(pos, leo); err != nil {
		return err
	}
	return s.cutTxn(leo)
}

// cutIndexes drops the entries at and behind the cut and restores what the
// writer keeps of the segment's times.
func (s *segment) cutIndexes(pos int64, leo model.Offset) error {
	var e [timeEntrySize]byte
	n, err := s.index.floor(keyPosition, pos-1, e[:])
	if err != nil {
		return err
	}
	if err := s.index.cut(n + 1); err != nil {
		return err
	}
	for {
		ok, err := s.time.last(e[:])
		if err != nil {
			return err
		}
		if !ok || s.base+model.Offset(keyRelative(e[8:])) < leo {
			break
		}
		if err := s.time.cut(s.time.count() - 1); err != nil {
			return err
		}
	}
	s.badIndex.Store(false)
	if pos == 0 {
		s.firstKnown, s.firstTime = false, -1
	}
	_, err = s.loadTimes()
	return err
}

// cutTxn drops the transaction index entries at and above leo.
func (s *segment) cutTxn(leo model.Offset) error {
	if !s.hasTxn.Load() {
		return nil
	}
	fs := s.log.c.fs
	b, err := readFile(fs, s.txnPath())
	if err != nil {
		return err
	}
	entries, err := format.ParseTxnIndex(b)
	if err != nil {
		return err
	}
	keep := 0
	for keep < len(entries) && entries[keep].Last < leo {
		keep++
	}
	f, err := fs.Open(s.txnPath())
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(int64(keep*format.TxnEntrySize)), f.Close())
}

// dropSnapshots removes the producer snapshots above an offset: they tell of
// records that are gone. Its caller syncs the folder, for they must not return.
func (l *Log) dropSnapshots(above model.Offset) error {
	if l.snapped > above {
		l.snapped = model.UnknownOffset
	}
	infos, err := l.d.fs.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		base, suffix, ok := parseSegmentName(info.Name)
		if !ok || suffix != snapshotSuffix || base <= above {
			continue
		}
		l.namesDirty = true
		if err := l.d.fs.Remove(path.Join(l.dir, info.Name)); err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// restart drops all segments and begins an empty one. A crash may bring any of
// the old ones back, so none of them is trusted any more.
func (l *Log) restart(at, start model.Offset, now model.Millis) error {
	if err := l.lower(min(at, l.segs[0].base), start); err != nil {
		return err
	}
	gone := l.segs
	fresh := newSegment(l.d.files, l.dir, at)
	if err := l.discard(gone); err != nil {
		return l.fail("restart", err)
	}
	err := l.dropSnapshots(-1)
	if err == nil {
		err = fresh.create(now)
	}
	if err == nil {
		err = l.d.fs.SyncDir(l.dir)
	}
	if err != nil {
		return l.fail("restart", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segs, l.tail, l.producers = []*segment{fresh}, nil, nil
	l.start, l.leo = max(start, at), at
	l.namesDirty = false
	return nil
}
