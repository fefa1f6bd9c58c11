package storage

import (
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage/format"
)

// AppendBatch is a run of whole batches to append.
type AppendBatch struct {
	// Bytes are whole batches, checked before; with Stamp they are changed.
	Bytes []byte
	// Stamp writes base offsets from Base on, and Epoch, into the batches: what a
	// leader appends. Else Base and Epoch are not looked at.
	Stamp bool
	Base  model.Offset
	Epoch model.Epoch
	// Epochs, when not nil, is the epoch cache to make durable before the bytes
	// (R8.12).
	Epochs []model.EpochStart
}

// Appended tells where an append ended.
type Appended struct {
	End model.Offset   // LEO
	Pos model.Position // of End
	// Flush: flush.messages or flush.ms ask for Log.Flush before the append is
	// reported (R13.9).
	Flush bool
}

// appendJob is the scratch of one append.
type appendJob struct {
	batches []appendBatch
	vec     [][]byte
}

type appendBatch struct {
	h     record.Header
	bytes []byte
}

var appendJobs = sync.Pool{New: func() any { return &appendJob{} }}

func (j *appendJob) done() {
	clear(j.batches)
	clear(j.vec)
	j.batches, j.vec = j.batches[:0], j.vec[:0]
	appendJobs.Put(j)
}

// Append writes the batches at the end of the log in their order, as one write
// per segment; now is the wall clock. A follower's first batches may begin below
// an empty log that starts within them, which then starts anew (R4.10). On an
// I/O error the log directory is offline.
func (l *Log) Append(now model.Millis, batches ...AppendBatch) (Appended, error) {
	if err := l.usable(); err != nil {
		return Appended{}, err
	}
	j := appendJobs.Get().(*appendJob)
	defer j.done()
	if err := l.plan(j, batches); err != nil {
		return Appended{}, err
	}
	if err := l.prepare(j, batches, now); err != nil {
		return Appended{}, err
	}
	for rest := j.batches; len(rest) > 0; {
		n, err := l.appendRun(j, rest, now)
		if err != nil {
			return Appended{}, l.fail("append to", err)
		}
		rest = rest[n:]
	}
	return l.appended(now), nil
}

func (l *Log) appended(now model.Millis) Appended {
	cfg := l.cfg.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	due := int64(l.leo-l.recovery) >= cfg.FlushMessages || int64(now-l.lastFlush) >= cfg.FlushMs
	return Appended{End: l.leo, Pos: l.endPos(), Flush: due}
}

// plan stamps the batches and checks that they follow each other and the log.
func (l *Log) plan(j *appendJob, batches []AppendBatch) error {
	next := l.leo // only the writer changes it
	empty := l.start == l.leo
	for _, b := range batches {
		stamp := b.Base
		left := len(b.Bytes)
		for h, bytes := range record.Split(b.Bytes) {
			if b.Stamp {
				record.Stamp(bytes, stamp, b.Epoch)
				h.Base, h.LeaderEpoch = stamp, b.Epoch
				stamp = h.Next()
			}
			straddles := empty && len(j.batches) == 0 && h.Base < next && next <= h.LastOffset()
			if h.Base < next && !straddles || h.LastOffset() < h.Base {
				return fmt.Errorf("append %s: batch [%d, %d] does not follow log end %d", l.tp, h.Base, h.LastOffset(), next)
			}
			next = h.Next()
			left -= len(bytes)
			j.batches = append(j.batches, appendBatch{h: h, bytes: bytes})
		}
		if left > 0 {
			return fmt.Errorf("append %s: %w: %d bytes are no whole batch", l.tp, ErrCorrupt, left)
		}
	}
	return nil
}

// prepare makes durable what must be before the bytes: the topic id, the epochs.
func (l *Log) prepare(j *appendJob, batches []AppendBatch, now model.Millis) error {
	if err := l.settleMetadata(); err != nil {
		return err
	}
	if len(j.batches) > 0 && j.batches[0].h.Base < l.leo {
		if err := l.restart(j.batches[0].h.Base, l.start, now); err != nil {
			return err
		}
	}
	for i := len(batches) - 1; i >= 0; i-- {
		if batches[i].Epochs != nil {
			return l.WriteEpochs(batches[i].Epochs)
		}
	}
	return l.rightEpochs()
}

// appendRun writes the batches that go into one segment and returns how many.
func (l *Log) appendRun(j *appendJob, batches []appendBatch, now model.Millis) (int, error) {
	cfg := l.cfg.Load()
	active := l.segs[len(l.segs)-1]
	if !active.firstKnown {
		if err := active.loadFirst(); err != nil {
			return 0, err
		}
	}
	if active.mustRoll(&batches[0].h, now, cfg) {
		var err error
		if active, err = l.roll(&batches[0].h, now); err != nil {
			return 0, err
		}
	}
	pos := active.size.Load()
	n, end := l.run(j, active, batches, now, cfg)
	f, err := active.log.acquire()
	if err != nil {
		return 0, err
	}
	_, err = f.WriteVecAt(j.vec, pos)
	active.log.release()
	if err != nil {
		return 0, err
	}
	return n, l.publish(active, batches[:n], pos, end, now)
}

// run collects the bytes of the batches that go into the segment together.
func (l *Log) run(j *appendJob, s *segment, batches []appendBatch, now model.Millis, cfg *LogConfig) (int, int64) {
	j.vec = j.vec[:0]
	size := s.size.Load()
	for i := range batches {
		b := &batches[i]
		full := size+int64(len(b.bytes)) > int64(cfg.SegmentBytes) || !fits(s.base, b.h.LastOffset())
		late := s.firstKnown && s.firstTime >= 0 && int64(b.h.MaxTimestamp-s.firstTime) > cfg.SegmentMs-s.jitter(cfg)
		crowded := i > 0 && s.full(i, cfg)
		if i > 0 && (full || late || crowded) {
			return i, size
		}
		j.vec = append(j.vec, b.bytes)
		size += int64(len(b.bytes))
		if !s.firstKnown {
			s.firstKnown, s.firstTime = true, b.h.MaxTimestamp
		}
	}
	return len(batches), size
}

// publish folds written batches in and lets readers see them.
func (l *Log) publish(s *segment, batches []appendBatch, pos, end int64, now model.Millis) error {
	cfg := l.cfg.Load()
	s.modified.Store(int64(now))
	l.mu.Lock()
	if l.tail == nil {
		l.tail = &tail{}
	}
	at := pos
	for i := range batches {
		l.tail.note(s, batches[i].h.Base, at)
		at += int64(batches[i].h.Size())
	}
	s.size.Store(end)
	l.leo = batches[len(batches)-1].h.Next()
	l.mu.Unlock()
	for i := range batches {
		b := &batches[i]
		if err := s.noted(&b.h, pos, cfg); err != nil {
			return err
		}
		pos += int64(b.h.Size())
		if b.h.ProducerID < 0 {
			continue
		}
		if err := l.fold(s, record.ProducerOf(b.bytes)); err != nil {
			return err
		}
	}
	return nil
}

// fold keeps the producer state and the transaction index.
func (l *Log) fold(s *segment, b producers.Batch) error {
	if b.ID < 0 {
		return nil
	}
	l.mu.Lock()
	if l.producers == nil {
		l.producers = producers.New()
	}
	aborted, ok := l.producers.Apply(b)
	l.mu.Unlock()
	if !ok {
		return nil
	}
	return l.addAborted(s, format.AbortedTxn(aborted))
}

// addAborted appends to the segment's transaction index (R8.5).
func (l *Log) addAborted(s *segment, a format.AbortedTxn) error {
	name := s.txnPath()
	open := l.d.fs.Open
	if !s.hasTxn.Load() {
		open = l.d.fs.Create
		l.namesDirty = true
	}
	f, err := open(name)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil {
		_, err = f.WriteAt(a.Format(), size/format.TxnEntrySize*format.TxnEntrySize)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path.Base(name), err)
	}
	s.hasTxn.Store(true)
	return nil
}
