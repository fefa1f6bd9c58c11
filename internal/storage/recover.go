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

// recover checks the segments. Those below the recovery point, and all after a
// clean stop, are trusted unless an index is plainly wrong; the others are read
// again, and cut at the first damage (R8.21). Above the recovery point segments
// join without a gap, for the writer rolls at the log end: a gap is lost bytes.
func (r *loader) recover() error {
	first := len(r.segs)
	if !r.clean {
		first = r.floor(r.recovery)
	}
	for i := 0; i < len(r.segs); i++ {
		s := r.segs[i]
		if i < first {
			if err := r.trust(s, i); err != nil {
				return err
			}
			continue
		}
		if i > first && s.base != r.leo {
			return r.dropFrom(i, "it does not join the one before")
		}
		whole, err := r.reread(s)
		if err != nil {
			return err
		}
		if !whole {
			return r.dropFrom(i+1, "the one before was cut")
		}
	}
	return nil
}

// floor is the index of the segment that holds the offset.
func (r *loader) floor(o model.Offset) int {
	i := len(r.segs) - 1
	for i > 0 && r.segs[i].base > o {
		i--
	}
	return max(i, 0)
}

// dropFrom removes the segments from i on.
func (r *loader) dropFrom(i int, why string) error {
	if i == len(r.segs) {
		return nil
	}
	r.l.d.opts.Log.Warn("segments are dropped in recovery", "log", r.l.tp.String(), "from", r.segs[i].base, "why", why)
	err := r.l.discard(r.segs[i:])
	r.segs = r.segs[:i]
	return err
}

// trust looks at the ends of a segment and its indexes only. If they do not fit
// the segment is read again.
func (r *loader) trust(s *segment, i int) error {
	end, err := r.sane(s)
	if err == nil && i+1 < len(r.segs) && end > r.segs[i+1].base {
		err = fmt.Errorf("%w: it ends at %d, behind the next one's base %d", ErrCorrupt, end, r.segs[i+1].base)
	}
	if err == nil {
		r.leo, r.producers = end, nil
		return nil
	}
	if !errors.Is(err, ErrCorrupt) && !missing(err) {
		return err
	}
	r.l.d.opts.Log.Warn("segment is read again", "log", r.l.tp.String(), "segment", s.base, "why", err)
	return r.rebuild(s)
}

// rebuild reads a segment again that lies below the recovery point. Its offset
// index is away until all else is durable, so that a crash does not leave files
// that were made anew in part where nobody looks at them.
func (r *loader) rebuild(s *segment) error {
	name, fs := path.Join(s.dir, segmentName(s.base, indexSuffix)), r.l.d.fs
	s.index.f.rest()
	err := fs.Remove(name)
	if missing(err) {
		err = nil
	}
	if err == nil {
		err = fs.SyncDir(s.dir)
	}
	if err != nil {
		return err
	}
	s.index.f.renamed(name + tmpSuffix)
	if _, err := r.reread(s); err != nil {
		return err
	}
	if err := errors.Join(s.sync(), fs.SyncDir(s.dir)); err != nil {
		return err
	}
	s.index.f.renamed(name)
	return errors.Join(fs.Rename(name+tmpSuffix, name), fs.SyncDir(s.dir))
}

// scanWithoutIndex is the size up to which a segment may be without index
// entries and nobody minds.
const scanWithoutIndex = 64 << 10

// sane checks what is cheap to check and returns the segment's end.
func (r *loader) sane(s *segment) (model.Offset, error) {
	for _, f := range []struct {
		suffix string
		entry  int64
	}{{indexSuffix, offsetEntrySize}, {timeSuffix, timeEntrySize}, {txnSuffix, format.TxnEntrySize}} {
		size, ok := r.sizes[segmentName(s.base, f.suffix)]
		if !ok && f.suffix != txnSuffix || size%f.entry != 0 {
			return 0, fmt.Errorf("%w: %s is missing or cut", ErrCorrupt, f.suffix)
		}
	}
	size := s.size.Load()
	if size == 0 && (s.index.n > 0 || s.time.n > 0) || s.index.n == 0 && size > scanWithoutIndex {
		return 0, fmt.Errorf("%w: %d index entries for %d bytes", ErrCorrupt, s.index.n, size)
	}
	if s.hasTxn.Load() {
		b, err := readFile(r.l.d.fs, s.txnPath())
		if err != nil {
			return 0, err
		}
		if _, err := format.ParseTxnIndex(b); err != nil {
			return 0, err
		}
	}
	if size == 0 {
		return s.base, nil
	}
	end, err := s.loadTimes()
	if err == nil && s.badIndex.Load() {
		err = fmt.Errorf("%w: the offset index does not fit the log", ErrCorrupt)
	}
	if err == nil {
		err = s.saneTime(end)
	}
	return end, err
}

// saneTime checks the last time index entry against the batch it names.
func (s *segment) saneTime(end model.Offset) error {
	var e [timeEntrySize]byte
	ok, err := s.time.last(e[:])
	if err != nil {
		return err
	}
	if !ok {
		if s.maxTime.Load() >= 0 {
			return fmt.Errorf("%w: the time index is empty", ErrCorrupt)
		}
		return nil
	}
	last := s.base + model.Offset(keyRelative(e[8:]))
	if last < s.base || last >= end {
		return fmt.Errorf("%w: the time index names offset %d", ErrCorrupt, last)
	}
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer s.log.release()
	w := newWalk(f, 0, s.size.Load())
	defer w.done()
	h, err := s.seek(w, last)
	if err != nil {
		return err
	}
	if h.LastOffset() != last || int64(h.MaxTimestamp) != keyTime(e[:]) {
		return fmt.Errorf("%w: the time index does not fit the log", ErrCorrupt)
	}
	return nil
}

// loadTimes finds the largest timestamp: that of the last time index entry, or a
// larger one behind the last offset index entry, for they are added together. It
// returns the segment's end.
func (s *segment) loadTimes() (model.Offset, error) {
	s.lastTime, s.sinceIndex = -1, 0
	s.maxTime.Store(-1)
	s.maxTimeLast.Store(-1)
	var e [timeEntrySize]byte
	ok, err := s.time.last(e[:])
	if err != nil {
		return 0, err
	}
	if ok {
		s.lastTime = model.Millis(keyTime(e[:]))
		s.maxTimeLast.Store(int64(s.base) + keyRelative(e[8:]))
		s.maxTime.Store(int64(s.lastTime))
	}
	f, err := s.log.acquire()
	if err != nil {
		return 0, err
	}
	defer s.log.release()
	w := newWalk(f, 0, s.size.Load())
	defer w.done()
	if err := s.near(w, keyPosition, w.end); err != nil {
		return 0, err
	}
	end := s.base
	for {
		h, err := w.peek()
		if errors.Is(err, errEnd) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		if w.pos == 0 {
			s.firstKnown, s.firstTime = true, h.MaxTimestamp
		}
		s.seen(&h)
		end = h.Next()
		w.skip(h)
	}
}

// reread reads a segment's batches, makes its indexes anew and folds epochs and
// producers in. It cuts the log behind the last good batch and reports whether
// it was whole.
func (r *loader) reread(s *segment) (bool, error) {
	if s.size.Load() == 0 && r.bare(s) {
		r.leo = s.base
		return true, nil
	}
	state, err := r.stateAt(s.base)
	if err != nil {
		return false, err
	}
	if err := s.resetIndexes(); err != nil {
		return false, err
	}
	f, err := s.log.acquire()
	if err != nil {
		return false, err
	}
	defer s.log.release()
	w := newWalk(f, 0, s.size.Load())
	defer w.done()
	g := &rereading{r: r, s: s, w: w, state: state, next: s.base, buf: make([]byte, checkWindow)}
	whole, err := g.run()
	if err != nil {
		return false, err
	}
	if !whole {
		r.l.d.opts.Log.Warn("log is cut at the first damage", "log", r.l.tp.String(), "segment", s.base,
			"offset", g.next, "bytes", s.size.Load()-w.pos)
		if err := f.Truncate(w.pos); err != nil {
			return false, err
		}
	}
	s.size.Store(w.pos)
	r.leo, r.producers = g.next, state
	s.sinceIndex = 0
	return whole, s.seal(r.l.cfg.Load())
}

// bare reports whether an empty segment's indexes are there and empty, too.
func (r *loader) bare(s *segment) bool {
	index, ok1 := r.sizes[segmentName(s.base, indexSuffix)]
	time, ok2 := r.sizes[segmentName(s.base, timeSuffix)]
	return ok1 && ok2 && index == 0 && time == 0 && !s.hasTxn.Load()
}

// resetIndexes empties the index files; a lost one is made again.
func (s *segment) resetIndexes() error {
	s.lastTime, s.sinceIndex, s.firstKnown = -1, 0, false
	s.maxTime.Store(-1)
	s.maxTimeLast.Store(-1)
	s.badIndex.Store(false)
	s.index.reset()
	s.time.reset()
	err := errors.Join(s.index.f.create(), s.time.f.create())
	if err == nil && s.hasTxn.Swap(false) {
		err = s.log.c.fs.Remove(s.txnPath())
	}
	return err
}

func (x *index) reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.n, x.pending, x.grown = 0, nil, false
}

// rereading is one pass over a segment.
type rereading struct {
	r     *loader
	s     *segment
	w     *walk
	state *producers.State
	next  model.Offset // the end so far
	buf   []byte
}

func (g *rereading) run() (bool, error) {
	for {
		h, err := g.w.peek()
		switch {
		case errors.Is(err, errEnd):
			return true, nil
		case errors.Is(err, ErrCorrupt):
			return false, nil
		case err != nil:
			return false, err
		}
		// Epochs never fall along a log (I2): a batch of an older epoch is what
		// a lost truncation left.
		if h.Base < g.next || !fits(g.s.base, h.LastOffset()) || h.LeaderEpoch < g.r.epoch {
			return false, nil
		}
		if ok, err := g.w.valid(h, g.buf); !ok || err != nil {
			return false, err
		}
		if err := g.take(h); err != nil {
			return false, err
		}
		g.next, g.r.epoch = h.Next(), h.LeaderEpoch
		g.w.skip(h)
	}
}

// take notes a good batch.
func (g *rereading) take(h record.Header) error {
	l := g.r.l
	if err := g.s.noted(&h, g.w.pos, l.cfg.Load()); err != nil {
		return err
	}
	l.learnEpoch(&h)
	aborted, ok, err := g.w.fold(h, g.state)
	if err != nil || !ok {
		return err
	}
	return l.addAborted(g.s, format.AbortedTxn(aborted))
}

// fold applies the batch at pos to the state.
func (w *walk) fold(h record.Header, state *producers.State) (producers.Aborted, bool, error) {
	if h.ProducerID < 0 {
		return producers.Aborted{}, false, nil
	}
	b := h.Producer()
	if h.Control() {
		batch, err := w.whole(h)
		if err != nil {
			return producers.Aborted{}, false, err
		}
		b = record.ProducerOf(batch)
	}
	aborted, ok := state.Apply(b)
	return aborted, ok, nil
}

// stateAt is the producer state at an offset where a segment begins or the log
// ends: the newest good snapshot at or below it, and what the log adds to that.
func (r *loader) stateAt(at model.Offset) (*producers.State, error) {
	if r.producers != nil && r.leo == at {
		return r.producers, nil
	}
	return r.l.producersAt(r.segs, at)
}

// producersAt is the producer state at an offset from the newest good snapshot at
// or below it, the batches right before that, and what the log adds since.
func (l *Log) producersAt(segs []*segment, at model.Offset) (*producers.State, error) {
	state, from, err := l.newestSnapshot(segs[0].base, at)
	if err == nil && state.Len() > 0 {
		err = recall(segs, from, state)
	}
	if err == nil {
		err = replay(segs, from, at, state)
	}
	return state, err
}

// recallTail is how many bytes before a snapshot are read again.
const recallTail = 256 << 10

// recall reads what comes right before a snapshot at an offset: the snapshot knows
// one batch of each producer, but a client may send five again (R2.10, R2.16).
// Where that part of the log cannot be read, less is known, and a retry of what is
// forgotten is refused.
func recall(segs []*segment, at model.Offset, state *producers.State) error {
	first, left := len(segs), int64(recallTail)
	for first > 0 && left > 0 {
		if first--; segs[first].base < at {
			left -= segs[first].size.Load()
		}
	}
	tail := producers.New()
	for i, s := range segs[first:] {
		if s.base >= at {
			break
		}
		from := int64(0)
		if i == 0 {
			from = max(0, -left)
		}
		err := s.foldFrom(func(w *walk) error { return s.near(w, keyPosition, from) }, at, tail)
		switch {
		case errors.Is(err, ErrCorrupt):
			return nil
		case err != nil:
			return fmt.Errorf("recall producers of %s: %w", s, err)
		}
	}
	state.Recall(tail)
	return nil
}

// replay folds the batches of [from, to) into the state.
func replay(segs []*segment, from, to model.Offset, state *producers.State) error {
	for i, s := range segs {
		if s.base >= to {
			break
		}
		if i+1 < len(segs) && segs[i+1].base <= from {
			continue
		}
		if err := s.replay(from, to, state); err != nil {
			return fmt.Errorf("replay producers of %s: %w", s, err)
		}
	}
	return nil
}

func (s *segment) replay(from, to model.Offset, state *producers.State) error {
	return s.foldFrom(func(w *walk) error {
		_, err := s.seek(w, from)
		return err
	}, to, state)
}

// foldFrom folds the batches from a place on, up to an offset, into the state.
func (s *segment) foldFrom(place func(*walk) error, to model.Offset, state *producers.State) error {
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer s.log.release()
	w := newWalk(f, 0, s.size.Load())
	defer w.done()
	for err = place(w); err == nil; {
		var h record.Header
		if h, err = w.peek(); err != nil || h.Base >= to {
			break
		}
		if _, _, err = w.fold(h, state); err == nil {
			w.skip(h)
		}
	}
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// newestSnapshot loads the newest good producer snapshot within the offsets, and
// its offset; an empty state of the log's first offset when there is none. What
// lies below the first segment tells nothing of the records between the two. Bad
// ones are removed (R8.6).
func (l *Log) newestSnapshot(first, at model.Offset) (*producers.State, model.Offset, error) {
	infos, err := l.names()
	if err != nil {
		return nil, 0, err
	}
	for _, info := range slices.Backward(infos) {
		base, suffix, ok := parseSegmentName(info.Name)
		if !ok || suffix != snapshotSuffix || base > at || base < first {
			continue
		}
		entries, err := l.loadSnapshot(info.Name)
		if err != nil {
			return nil, 0, err
		}
		if entries == nil {
			continue
		}
		l.snapped = base
		state := producers.New()
		state.Restore(entries)
		return state, base, nil
	}
	return producers.New(), 0, nil
}
