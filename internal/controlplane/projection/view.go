package projection

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// View is the directory at one moment, for readers. It never changes. Reads of
// what was removed since fail.
type View struct {
	dir         *Dir
	segments    []segment // copies: size, end and index as they were
	epochs      epochs.Cache
	checkpoints []ID
}

// ErrGone says that a view is out of date: take a new one.
var ErrGone = errors.New("removed since the view was taken")

// View returns the newest view.
func (d *Dir) View() *View { return d.view.Load() }

func (d *Dir) publish() {
	v := &View{dir: d, epochs: epochs.New(d.epochs.Entries()), checkpoints: d.checkpoints}
	v.segments = make([]segment, len(d.segments))
	for i, s := range d.segments {
		v.segments[i] = *s
		v.segments[i].index = s.index[:len(s.index):len(s.index)]
	}
	// A log that began anew behind its newest checkpoint does not continue the
	// older ones: nobody is to be judged by them, or to install one.
	v.checkpoints = slices.DeleteFunc(slices.Clone(v.checkpoints), func(id ID) bool { return id.End < v.Start() })
	d.view.Store(v)
}

// Start is the offset of the first record that can be read.
func (v *View) Start() model.Offset { return v.segments[0].base }

// End is the offset after the last record.
func (v *View) End() model.Offset { return v.segments[len(v.segments)-1].end }

// Oldest and Newest are the checkpoints at hand; false when there is none but
// the bootstrap checkpoint.
func (v *View) Oldest() (ID, bool) {
	if len(v.checkpoints) == 0 {
		return ID{}, false
	}
	return v.checkpoints[0], true
}

// Newest is described at Oldest.
func (v *View) Newest() (ID, bool) {
	if len(v.checkpoints) == 0 {
		return ID{}, false
	}
	return v.checkpoints[len(v.checkpoints)-1], true
}

// Verdict says how a reader's place fits the log.
type Verdict uint8

// The verdicts.
const (
	Valid    Verdict = iota
	Snapshot         // it needs a checkpoint first
	Diverging
)

// Check judges a reader that holds the log up to offset and whose last record
// has the epoch. With Snapshot comes the newest checkpoint; with Diverging the
// largest epoch that is not above its own, and where that ended.
func (v *View) Check(offset model.Offset, epoch model.Epoch) (Verdict, ID) {
	newest, ok := v.Newest()
	if offset == 0 {
		if ok {
			return Snapshot, newest
		}
		if v.Start() == 0 {
			return Valid, ID{}
		}
	}
	oldest, _ := v.Oldest()
	if ok && (offset < v.Start() || offset == v.Start() && epoch != oldest.Epoch || epoch < oldest.Epoch) {
		return Snapshot, newest
	}
	end := v.endOf(epoch)
	if end.Epoch != epoch || end.End < offset {
		return Diverging, end
	}
	return Valid, ID{}
}

// endOf returns the largest known epoch up to e and its end. The epoch of the
// oldest checkpoint is known too: it ended where the log starts, or goes on.
func (v *View) endOf(e model.Epoch) ID {
	if latest := v.epochs.Latest(); e >= latest && latest != model.NoEpoch {
		return ID{End: v.End(), Epoch: latest}
	}
	oldest, ok := v.Oldest()
	end := v.epochs.EndOf(e, v.End())
	if ok && (end == model.UndefinedEpochEnd || end.Epoch < oldest.Epoch || end.End <= v.Start()) {
		return ID{End: v.Start(), Epoch: oldest.Epoch}
	}
	if end == model.UndefinedEpochEnd {
		return ID{End: v.Start()}
	}
	return ID{End: end.End, Epoch: end.Epoch}
}

// Read returns whole batches from the one with offset on, of about maxBytes at
// most, but always one if there is one. It returns nothing at End. Errors:
// ErrGone.
func (v *View) Read(offset model.Offset, maxBytes int) ([]byte, error) {
	if offset >= v.End() {
		return nil, nil
	}
	i, found := slices.BinarySearchFunc(v.segments, offset, func(s segment, o model.Offset) int {
		return int(max(-1, min(1, s.base-o)))
	})
	if !found {
		i--
	}
	if i < 0 {
		return nil, fmt.Errorf("offset %d lies before the log start %d: %w", offset, v.Start(), ErrGone)
	}
	return v.segments[i].read(offset, maxBytes)
}

// maxRead bounds one read, whatever the reader asks for.
const maxRead = 8 << 20

func (s *segment) read(offset model.Offset, maxBytes int) ([]byte, error) {
	pos, skip, err := s.find(offset)
	if err != nil {
		return nil, err
	}
	want := min(int64(min(max(maxBytes, skip), maxRead)), s.size-pos)
	want = max(want, min(int64(skip), s.size-pos))
	buf := make([]byte, want)
	if err := s.readAt(buf, pos); err != nil {
		return nil, err
	}
	n := 0
	for n+headerSize <= len(buf) {
		_, size, err := parseHeader(buf[n:])
		if err != nil {
			return nil, fmt.Errorf("read %s at %d: %w", s.path, pos+int64(n), err)
		}
		if n+size > len(buf) {
			break
		}
		n += size
	}
	return buf[:n], nil
}

// find walks the batch headers to the batch that holds the offset; it returns
// where it begins and its size.
func (s *segment) find(offset model.Offset) (pos int64, size int, err error) {
	var b [headerSize]byte
	pos = s.locate(offset)
	for pos+headerSize <= s.size {
		if err := s.readAt(b[:], pos); err != nil {
			return 0, 0, err
		}
		h, n, err := parseHeader(b[:])
		if err != nil {
			return 0, 0, fmt.Errorf("read %s at %d: %w", s.path, pos, err)
		}
		if offset < h.end {
			return pos, n, nil
		}
		pos += int64(n)
	}
	return 0, 0, fmt.Errorf("offset %d is not in %s", offset, s.path)
}

func (s *segment) readAt(b []byte, pos int64) error {
	if n, err := s.file.ReadAt(b, pos); n < len(b) {
		if errors.Is(err, fs.ErrClosed) {
			return fmt.Errorf("read %s: %w", s.path, ErrGone)
		}
		return fmt.Errorf("read %d bytes of %s at %d: %w", len(b), s.path, pos, err)
	}
	return nil
}
