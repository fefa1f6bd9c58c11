package storage

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Slice is a range of whole batches in one file, which stays readable until
// Release, even if its segment is deleted. If the log is cut meanwhile, reading
// may end early or give newer bytes: the owner compares truncation generations.
type Slice struct {
	File  io.ReaderAt  // nil when Len is 0
	Pos   int64        // where the first batch begins
	Len   int          // bytes
	First model.Offset // base offset of the first batch; what was asked for when empty
	Next  model.Offset // offset after the last batch
	file  *file
}

// Release gives the file back. It may be called again.
func (s *Slice) Release() {
	if s.file != nil {
		s.file.release()
		s.file, s.File = nil, nil
	}
}

// Read finds the batches from the one that holds from up to limit, at most
// maxBytes of them; with minOne the first batch may be larger than that. Only
// whole batches below limit come; none is an empty slice. Error:
// ErrOffsetOutOfRange outside [log start, LEO]. R3.13, R9.2.
func (l *Log) Read(from model.Offset, maxBytes int, limit model.Offset, minOne bool) (Slice, error) {
	for {
		before := l.view()
		s, err := l.read(from, maxBytes, limit, minOne)
		if again, err := l.again(&before, err); !again {
			return s, err
		}
	}
}

// again reports whether a read failed only because its segment was deleted
// meanwhile: then the log is another one than before, and a new look tells. While
// the writer still replaces the files there is nothing to see: ErrClosed.
func (l *Log) again(before *view, err error) (bool, error) {
	if err == nil || !missing(err) && !errors.Is(err, ErrClosed) || l.isClosed() {
		return false, l.readError(err)
	}
	if now := l.view(); !slices.Equal(now.segs, before.segs) || now.start != before.start {
		return true, nil
	}
	return false, fmt.Errorf("read %s while its files are replaced: %w", l.tp, ErrClosed)
}

// readError sorts out an error of a read: one of the disk takes the directory
// offline (R8.23).
func (l *Log) readError(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrOffsetOutOfRange), errors.Is(err, ErrOffline):
		return err
	case errors.Is(err, ErrCorrupt):
		return fmt.Errorf("read %s: %w", l.tp, err)
	case l.isClosed():
		return fmt.Errorf("read %s: %w", l.tp, ErrClosed)
	}
	return l.fail("read", err)
}

func (l *Log) read(from model.Offset, maxBytes int, limit model.Offset, minOne bool) (Slice, error) {
	v := l.view()
	if v.closed {
		return Slice{}, ErrClosed
	}
	if from < v.start || from > v.leo {
		return Slice{}, ErrOffsetOutOfRange
	}
	limit = min(limit, v.leo)
	empty := Slice{First: from, Next: from}
	for i := v.floor(from); from < limit && i < len(v.segs); i++ {
		s, err := l.readSegment(&v, i, from, maxBytes, limit, minOne)
		if !errors.Is(err, errEnd) {
			return s, err
		}
		from = v.endOf(i) // compaction left nothing here
	}
	return empty, nil
}

// readSegment reads from one segment. errEnd when it has nothing from there on.
func (l *Log) readSegment(v *view, i int, from model.Offset, maxBytes int, limit model.Offset, minOne bool) (Slice, error) {
	s := v.segs[i]
	f, err := s.log.acquire()
	if err != nil {
		return Slice{}, err
	}
	out := Slice{File: f, file: s.log, First: from, Next: from}
	w := newWalk(f, 0, v.size(i))
	defer w.done()
	err = l.span(v, i, w, &out, from, maxBytes, limit, minOne)
	if err != nil || out.Len == 0 {
		out.Release()
	}
	return out, err
}

// span finds the range of one segment and puts it into out.
func (l *Log) span(v *view, i int, w *walk, out *Slice, from model.Offset, maxBytes int, limit model.Offset, minOne bool) error {
	s := v.segs[i]
	first, err := l.locate(s, w, from)
	if err != nil {
		return err
	}
	end, next := w.end, v.endOf(i)
	if limit < next {
		b, err := l.locate(s, w, limit)
		switch {
		case err == nil:
			end, next = b.pos, b.base
		case !errors.Is(err, errEnd):
			return err
		}
	}
	if end <= first.pos {
		return nil
	}
	out.Pos, out.First = first.pos, first.base
	if end-first.pos > int64(maxBytes) {
		if end, next, err = l.fit(s, w, first, end, maxBytes, minOne); err != nil {
			return err
		}
	}
	if first.base >= v.endOf(i) || next > v.endOf(i) {
		return fmt.Errorf("%w: the batches at %d have offsets [%d, %d), but the segment ends at %d", ErrCorrupt, first.pos, first.base, next, v.endOf(i))
	}
	if out.Len = int(end - first.pos); out.Len > 0 {
		out.Next = next
	}
	return nil
}

// fit cuts a range that is too large at the last boundary of a batch.
func (l *Log) fit(s *segment, w *walk, first tailBatch, end int64, maxBytes int, minOne bool) (int64, model.Offset, error) {
	w.pos = first.pos
	h, err := w.peek()
	if err != nil {
		return 0, 0, err
	}
	if after := first.pos + int64(h.Size()); h.Size() >= maxBytes || after == end {
		if h.Size() > maxBytes && !minOne {
			return first.pos, first.base, nil
		}
		return after, h.Next(), nil
	}
	return s.boundary(w, first.pos, first.pos+int64(maxBytes))
}

// locate finds the batch that holds the offset, or the first after it in the
// segment. errEnd when there is none.
func (l *Log) locate(s *segment, w *walk, offset model.Offset) (tailBatch, error) {
	l.mu.Lock()
	b, ok := l.tail.find(s, offset)
	l.mu.Unlock()
	if ok && b.pos < w.end {
		return b, nil
	}
	h, err := s.seek(w, offset)
	return tailBatch{base: h.Base, pos: w.pos}, err
}

// Locate says where the batch that holds the offset begins; LEO lies at the end
// of the active segment. Error: ErrOffsetOutOfRange outside [log start, LEO].
func (l *Log) Locate(offset model.Offset) (model.Position, error) {
	for {
		before := l.view()
		p, err := l.position(offset)
		if again, err := l.again(&before, err); !again {
			return p, err
		}
	}
}

func (l *Log) position(offset model.Offset) (model.Position, error) {
	v := l.view()
	switch {
	case v.closed:
		return model.UnknownPosition, ErrClosed
	case offset < v.start || offset > v.leo:
		return model.UnknownPosition, ErrOffsetOutOfRange
	}
	i := len(v.segs) - 1
	if offset < v.leo {
		i = v.floor(offset)
	}
	s := v.segs[i]
	end := model.Position{Segment: s.base, Byte: v.size(i)}
	if offset == v.leo {
		return end, nil
	}
	l.mu.Lock()
	b, ok := l.tail.find(s, offset)
	l.mu.Unlock()
	if ok {
		return model.Position{Segment: s.base, Byte: b.pos}, nil
	}
	f, err := s.log.acquire()
	if err != nil {
		return model.UnknownPosition, err
	}
	defer s.log.release()
	w := newWalk(f, 0, end.Byte)
	defer w.done()
	if _, err := s.seek(w, offset); err != nil {
		if errors.Is(err, errEnd) {
			return end, nil
		}
		return model.UnknownPosition, err
	}
	return model.Position{Segment: s.base, Byte: w.pos}, nil
}
