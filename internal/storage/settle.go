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

// loadSnapshot reads a producer snapshot; nil for a bad one, which goes.
func (l *Log) loadSnapshot(name string) ([]producers.Entry, error) {
	full := path.Join(l.dir, name)
	b, err := readFile(l.d.fs, full)
	if err != nil {
		return nil, err
	}
	entries, err := format.ParseSnapshot(b)
	if err == nil {
		return entries, nil
	}
	l.d.unreadable(path.Join(l.tp.String(), name), err)
	return nil, l.d.fs.Remove(full)
}

// rebuildProducers makes the producer state of a log that was cut.
func (l *Log) rebuildProducers() error {
	state, err := l.producersAt(l.segs, l.leo)
	if err != nil {
		return err
	}
	l.keepProducers(state)
	return nil
}

func (l *Log) keepProducers(state *producers.State) {
	state.Expire(l.d.opts.Now(), l.d.opts.ProducerExpiry)
	l.mu.Lock()
	defer l.mu.Unlock()
	if state.Len() == 0 {
		state = nil // costs nothing for a log without producers
	}
	l.producers = state
}

// settleEnds finds log end, log start and recovery point (R8.22).
func (r *loader) settleEnds() error {
	if len(r.segs) == 0 {
		if err := r.begin(r.start); err != nil {
			return err
		}
		r.leo = r.start
	}
	l := r.l
	if r.leo < r.start {
		l.d.opts.Log.Warn("log ends below its start and begins anew", "log", l.tp.String(), "end", r.leo, "start", r.start)
		l.epochs.Clear()
		l.epochsDirty = true
		err := l.WriteEpochs(nil) // else the next start would find those of the old log
		if err == nil {
			err = l.discard(r.segs)
		}
		if err == nil {
			err = l.dropSnapshots(model.UnknownOffset)
		}
		if err == nil {
			err = r.begin(r.start)
		}
		if err != nil {
			return err
		}
		r.leo, r.producers = r.start, nil
	}
	l.segs, l.leo = r.segs, r.leo
	l.start = max(r.segs[0].base, r.start)
	l.recovery = min(r.recovery, l.leo)
	if r.clean {
		l.recovery = l.leo
	}
	return nil
}

// settleEpochs makes the epoch cache fit the log (R4.24, R8.22). A checkpoint
// that is lost is made again from the batches.
func (r *loader) settleEpochs() error {
	if r.l.epochsGap {
		// A batch from before all that was known: so may be others, in segments that
		// are trusted.
		r.l.epochsGap = false
		if err := r.rebuildEpochs(); err != nil {
			return err
		}
	}
	l := r.l
	if !r.epochsFound {
		l.epochs.Clear()
		if err := r.rebuildEpochs(); err != nil {
			return err
		}
	}
	if l.epochs.TruncateFromEnd(l.leo) {
		l.epochsDirty, l.epochsWrong = true, true // what is written there may be of an older epoch
	}
	if l.epochs.TruncateFromStart(l.start) {
		l.epochsDirty = true
	}
	return nil
}

// rebuildEpochs reads the epochs from the batches' headers.
func (r *loader) rebuildEpochs() error {
	for _, s := range r.segs {
		if err := r.l.epochsOf(s); err != nil {
			return fmt.Errorf("rebuild epochs: %w", err)
		}
	}
	return nil
}

func (l *Log) epochsOf(s *segment) error {
	size := s.size.Load()
	if size == 0 {
		return nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return err
	}
	defer s.log.release()
	w := newWalk(f, 0, size)
	defer w.done()
	for {
		h, err := w.peek()
		if errors.Is(err, errEnd) {
			return nil
		}
		if err != nil {
			return err
		}
		l.learnEpoch(&h)
		w.skip(h)
	}
}

// learnEpoch makes the epoch cache agree with a batch that is read again. The
// batch is right: the checkpoint may miss its epoch, or name a later one for its
// offsets.
func (l *Log) learnEpoch(h *record.Header) {
	if h.LeaderEpoch < 0 || l.epochs.At(h.Base) == h.LeaderEpoch && l.epochs.At(h.LastOffset()) == h.LeaderEpoch {
		return
	}
	// Later epochs stay, behind this batch at the earliest: the segments that hold
	// them may be trusted, and are not read again then.
	later := slices.DeleteFunc(slices.Clone(l.epochs.Entries()), func(e model.EpochStart) bool { return e.Epoch <= h.LeaderEpoch })
	if known := l.epochs.Entries(); len(known) > 0 && h.LastOffset() < known[0].Start {
		l.epochsGap = true
	}
	l.epochs.TruncateFromEnd(h.Base)
	l.epochs.Assign(h.LeaderEpoch, h.Base)
	for _, e := range later {
		l.epochs.Assign(e.Epoch, max(e.Start, h.LastOffset()+1))
	}
	l.epochsDirty, l.epochsWrong = true, true
}

// settleProducers makes the producer state at the log end. After recovery it is
// written too, so that the next one need not read so far back.
func (r *loader) settleProducers() error {
	l := r.l
	if err := l.dropSnapshots(l.leo); err != nil {
		return err
	}
	state, err := r.stateAt(l.leo)
	if err != nil {
		return err
	}
	l.keepProducers(state)
	if r.clean || state.Len() == 0 {
		return nil
	}
	return l.snapshot(l.leo, false)
}
