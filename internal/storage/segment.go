package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// segment is one run of offsets: a log file and its indexes. The fields that
// are not atomic belong to the writer of the log.
type segment struct {
	base  model.Offset
	dir   string
	log   *file
	index index
	time  index
	size  atomic.Int64 // bytes of whole batches in the log file

	// The largest timestamp and the last offset of the first batch that has it;
	// -1 without any (R8.4).
	maxTime, maxTimeLast atomic.Int64
	// badIndex is set when the offset index lied; then it is not used again.
	badIndex atomic.Bool
	hasTxn   atomic.Bool

	lastTime   model.Millis // of the last time index entry; -1 without one
	sinceIndex int64        // bytes since the last index entry
	firstTime  model.Millis // largest time of the first batch; -1 none
	firstKnown bool
	created    model.Millis // when the segment was begun, or loaded
	modified   atomic.Int64 // when the log file was written last
}

func newSegment(c *fileCache, dir string, base model.Offset) *segment {
	s := &segment{
		base: base, dir: dir, log: c.file(path.Join(dir, segmentName(base, logSuffix))),
		index:    index{f: c.file(path.Join(dir, segmentName(base, indexSuffix))), size: offsetEntrySize},
		time:     index{f: c.file(path.Join(dir, segmentName(base, timeSuffix))), size: timeEntrySize},
		lastTime: -1, firstTime: -1,
	}
	s.maxTime.Store(-1)
	s.maxTimeLast.Store(-1)
	return s
}

// create makes the segment's files, empty.
func (s *segment) create(now model.Millis) error {
	s.created = now
	s.modified.Store(int64(now))
	return errors.Join(s.log.create(), s.index.f.create(), s.time.f.create())
}

// files are the files that the segment may hold open.
func (s *segment) files() [3]*file { return [...]*file{s.log, s.index.f, s.time.f} }

// rest closes them until they are needed.
func (s *segment) rest() {
	for _, f := range s.files() {
		f.rest()
	}
}

func (s *segment) txnPath() string { return path.Join(s.dir, segmentName(s.base, txnSuffix)) }

// noted tells the segment that a batch of h was written at pos: indexes and
// times follow (R8.3, R8.4).
func (s *segment) noted(h *record.Header, pos int64, cfg *LogConfig) error {
	s.seen(h)
	if s.sinceIndex > int64(cfg.IndexIntervalBytes) {
		if err := s.addIndex(h.LastOffset(), pos, cfg); err != nil {
			return err
		}
	}
	s.sinceIndex += int64(h.Size())
	return nil
}

// loadFirst reads the time of the segment's first batch.
func (s *segment) loadFirst() error {
	if s.size.Load() == 0 {
		return nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer s.log.release()
	w := newWalk(f, 0, s.size.Load())
	defer w.done()
	h, err := w.peek()
	if err == nil {
		s.firstKnown, s.firstTime = true, h.MaxTimestamp
	}
	return err
}

// seen keeps the times of a batch.
func (s *segment) seen(h *record.Header) {
	if !s.firstKnown {
		s.firstKnown, s.firstTime = true, h.MaxTimestamp
	}
	if int64(h.MaxTimestamp) > s.maxTime.Load() {
		s.maxTimeLast.Store(int64(h.LastOffset()))
		s.maxTime.Store(int64(h.MaxTimestamp))
	}
}

func (s *segment) addIndex(last model.Offset, pos int64, cfg *LogConfig) error {
	var e [offsetEntrySize]byte
	binary.BigEndian.PutUint32(e[:], uint32(last-s.base))
	binary.BigEndian.PutUint32(e[4:], uint32(pos))
	if err := s.index.add(e[:], cfg.SegmentIndexBytes); err != nil {
		return err
	}
	s.sinceIndex = 0
	return s.addTime(cfg.SegmentIndexBytes)
}

// addTime adds a time index entry if the largest time grew.
func (s *segment) addTime(maxBytes int32) error {
	t := s.maxTime.Load()
	if t <= int64(s.lastTime) {
		return nil
	}
	var e [timeEntrySize]byte
	binary.BigEndian.PutUint64(e[:], uint64(t))
	binary.BigEndian.PutUint32(e[8:], uint32(s.maxTimeLast.Load()-int64(s.base)))
	s.lastTime = model.Millis(t)
	return s.time.add(e[:], maxBytes)
}

// mustRoll reports whether a batch of h may not go into the segment (R8.3, R8.4).
func (s *segment) mustRoll(h *record.Header, now model.Millis, cfg *LogConfig) bool {
	size := s.size.Load()
	switch {
	case size > int64(cfg.SegmentBytes)-int64(h.Size()):
		return size > 0 || !fits(s.base, h.LastOffset())
	case size > 0 && s.waited(h.MaxTimestamp, now) > cfg.SegmentMs-s.jitter(cfg):
		return true
	case size > 0 && s.full(0, cfg):
		return true
	}
	return !fits(s.base, h.LastOffset())
}

// full reports whether an index has no room once it took so many entries more;
// the time index keeps a slot for the entry of the roll.
func (s *segment) full(more int, cfg *LogConfig) bool {
	room := int(cfg.SegmentIndexBytes)
	return s.index.count()+more >= room/offsetEntrySize || s.time.count()+more >= room/timeEntrySize-1
}

// waited is how long the segment has been open: by the records' time if the
// first batch has one, else by the clock.
func (s *segment) waited(t, now model.Millis) int64 {
	if s.firstKnown && s.firstTime >= 0 {
		return int64(t - s.firstTime)
	}
	return int64(now - s.created)
}

// jitter spreads rolls of segments that began together.
func (s *segment) jitter(cfg *LogConfig) int64 {
	if cfg.SegmentJitterMs <= 0 {
		return 0
	}
	h := uint64(s.base+1) * 0x9e3779b97f4a7c15
	for _, c := range s.dir {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return int64(h % uint64(min(cfg.SegmentJitterMs, max(cfg.SegmentMs, 1))))
}

// seal ends an active segment: last time entry, index files cut to size.
func (s *segment) seal(cfg *LogConfig) error {
	if err := s.addTime(cfg.SegmentIndexBytes); err != nil {
		return err
	}
	return errors.Join(s.index.trim(), s.time.trim())
}

// largest is the time that retention counts by: the records', or that of the
// last write when they have none.
func (s *segment) largest() model.Millis {
	if t := s.maxTime.Load(); t >= 0 {
		return model.Millis(t)
	}
	return model.Millis(s.modified.Load())
}

// near sets the walk to a batch at or before the one that holds target, by the
// offset index. An entry that does not fit the log is not believed.
func (s *segment) near(w *walk, key entryKey, target int64) error {
	w.pos = 0
	if s.badIndex.Load() {
		return nil
	}
	i, err := s.index.floor(key, target, w.index[:])
	if err != nil || i < 0 {
		return err
	}
	last := s.base + model.Offset(keyRelative(w.index[:]))
	pos := keyPosition(w.index[:])
	if pos >= 0 && pos < w.end {
		w.pos = pos
		if h, err := w.peek(); err == nil && h.LastOffset() == last {
			return nil
		}
		w.pos = 0
	}
	if w.end <= s.size.Load() { // else the log was cut under this reader
		s.badIndex.Store(true)
	}
	return nil
}

// seek moves the walk to the batch that holds target, or the first after it.
// errEnd when all batches before w.end lie below target.
func (s *segment) seek(w *walk, target model.Offset) (record.Header, error) {
	if err := s.near(w, keyRelative, int64(target-s.base)); err != nil {
		return record.Header{}, err
	}
	for {
		h, err := w.peek()
		if err != nil || h.LastOffset() >= target {
			return h, err
		}
		w.skip(h)
	}
}

// boundary returns the end of the last batch that ends at or before limit, not
// before from, where a batch begins; and the offset that follows it.
func (s *segment) boundary(w *walk, from, limit int64) (int64, model.Offset, error) {
	if err := s.near(w, keyPosition, limit); err != nil {
		return 0, 0, err
	}
	w.pos = max(w.pos, from)
	next := model.UnknownOffset
	for {
		h, err := w.peek()
		if errors.Is(err, errEnd) {
			return w.pos, next, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if w.pos+int64(h.Size()) > limit {
			return w.pos, h.Base, nil
		}
		next = h.Next()
		w.skip(h)
	}
}

// segmentFiles are the suffixes of what belongs to a segment, the log first:
// without it the others are orphans that loading removes.
var segmentFiles = [...]string{logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix}

func (s *segment) String() string { return fmt.Sprintf("segment %d", s.base) }
