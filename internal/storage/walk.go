package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/tidemark-log/tidemark/internal/record"
)

// Windows of a walk: a small one when batches are large and only headers count.
const (
	walkWindow  = 8 << 10
	checkWindow = 64 << 10
	headWindow  = 256
)

// errEnd is the end of a walk: no bytes are left.
var errEnd = errors.New("end of segment")

// walk goes over the batches of a log file, header by header.
type walk struct {
	f        io.ReaderAt
	pos, end int64 // where the next batch begins, where the file ends
	buf      []byte
	from     int64 // file position of buf
	n        int   // bytes in buf
	large    bool  // the last batch was larger than the window
	index    [timeEntrySize]byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var walks = sync.Pool{New: func() any { return &walk{buf: make([]byte, walkWindow)} }}

// newWalk takes a walk from the pool; done gives it back.
func newWalk(f io.ReaderAt, pos, end int64) *walk {
	w := walks.Get().(*walk)
	w.f, w.n, w.large = f, 0, false
	w.pos, w.end = pos, end
	return w
}

func (w *walk) done() {
	w.f = nil
	walks.Put(w)
}

// peek returns the header of the batch at pos. errEnd at the end; ErrCorrupt
// for what is no whole batch.
func (w *walk) peek() (record.Header, error) {
	if w.pos >= w.end {
		return record.Header{}, errEnd
	}
	b, err := w.bytes(record.HeaderSize)
	if err != nil {
		return record.Header{}, err
	}
	h, ok := record.ParseHeader(b)
	if !ok || h.Magic != record.Magic || int64(h.Size()) > w.end-w.pos || h.LastOffsetDelta < 0 || h.Base < 0 {
		return record.Header{}, fmt.Errorf("%w: no batch at %d", ErrCorrupt, w.pos)
	}
	return h, nil
}

// bytes returns at least n bytes from pos on, n not above the window.
func (w *walk) bytes(n int) ([]byte, error) {
	if w.pos < w.from || w.pos+int64(n) > w.from+int64(w.n) {
		size := min(int64(len(w.buf)), w.end-w.pos)
		if w.large {
			size = min(size, headWindow)
		}
		if size < int64(n) {
			return nil, fmt.Errorf("%w: %d bytes at %d", ErrCorrupt, w.end-w.pos, w.pos)
		}
		got, err := w.f.ReadAt(w.buf[:size], w.pos)
		w.from, w.n = w.pos, got
		if got < n {
			if err == nil || err == io.EOF {
				return nil, fmt.Errorf("%w: the file ends before %d", ErrCorrupt, w.end)
			}
			return nil, err
		}
	}
	return w.buf[w.pos-w.from : w.n], nil
}

// skip moves past a batch.
func (w *walk) skip(h record.Header) {
	w.pos += int64(h.Size())
	w.large = h.Size() > len(w.buf)/2
}

// valid computes the checksum of the batch at pos, piece by piece. The error is
// one of the disk.
func (w *walk) valid(h record.Header, buf []byte) (bool, error) {
	const from = 21
	crc := uint32(0)
	for at, end := w.pos+from, w.pos+int64(h.Size()); at < end; {
		n := int(min(int64(len(buf)), end-at))
		got, err := w.f.ReadAt(buf[:n], at)
		if got < n {
			if err == nil || err == io.EOF {
				return false, nil
			}
			return false, err
		}
		crc = crc32.Update(crc, castagnoli, buf[:n])
		at += int64(n)
	}
	return crc == h.CRC, nil
}

// whole reads the batch at pos into memory.
func (w *walk) whole(h record.Header) ([]byte, error) {
	b := make([]byte, h.Size())
	if n, err := w.f.ReadAt(b, w.pos); n < len(b) {
		return nil, fmt.Errorf("read batch at %d: %w", w.pos, err)
	}
	return b, nil
}
