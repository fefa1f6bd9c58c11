package projection

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"

	"github.com/tidemark-log/tidemark/internal/core/epochs"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// header is what the header of a v2 batch says of its place (R8.2).
type header struct {
	base, end model.Offset
	epoch     model.Epoch
}

const (
	headerSize   = 61
	atLength     = 8
	atEpoch      = 12
	atMagic      = 16
	atCRC        = 17
	atAttributes = 21
	atLastDelta  = 23
	beforeLength = 12 // bytes that the length does not count
	maxBatch     = 64 << 20
	indexEvery   = 4 << 10 // bytes of log between two index entries
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errPartial = errors.New("not a whole batch")

// parseBatch reads and checks the batch at the start of b.
func parseBatch(b []byte) (header, int, error) {
	h, size, err := parseHeader(b)
	if err != nil {
		return header{}, 0, err
	}
	if size > len(b) {
		return header{}, 0, errPartial
	}
	if crc32.Checksum(b[atAttributes:size], castagnoli) != binary.BigEndian.Uint32(b[atCRC:]) {
		return header{}, 0, errors.New("batch with a wrong checksum")
	}
	return h, size, nil
}

// parseHeader reads the header only; b may end behind it.
func parseHeader(b []byte) (header, int, error) {
	if len(b) < headerSize {
		return header{}, 0, errPartial
	}
	size := int64(int32(binary.BigEndian.Uint32(b[atLength:]))) + beforeLength
	base := int64(binary.BigEndian.Uint64(b))
	delta := int64(int32(binary.BigEndian.Uint32(b[atLastDelta:])))
	epoch := int32(binary.BigEndian.Uint32(b[atEpoch:]))
	if size < headerSize || size > maxBatch || b[atMagic] != 2 || base < 0 || base > 1<<62 || delta < 0 || epoch < 0 {
		return header{}, 0, fmt.Errorf("no batch header: %d bytes, magic %d, base offset %d, epoch %d", size, b[atMagic], base, epoch)
	}
	return header{model.Offset(base), model.Offset(base + delta + 1), model.Epoch(epoch)}, int(size), nil
}

// run returns the bytes of the batches at the start of b that continue each
// other in one epoch; first is the header of the first.
func run(b []byte, first header) int {
	n, next := 0, first.base
	for n < len(b) {
		h, size, err := parseBatch(b[n:])
		if err != nil || h.base != next || h.epoch != first.epoch {
			return n
		}
		n, next = n+size, h.end
	}
	return n
}

// place says that a batch with the base offset begins at pos.
type place struct {
	base model.Offset
	pos  int64
}

// segment is one file of the log. Its owner appends to file, size, end and
// index; a view copies them, and sees what they were.
type segment struct {
	path  string
	base  model.Offset
	end   model.Offset
	file  vfs.File
	size  int64
	index []place // sparse, ascending; the first batch is in it
}

func createSegment(fs vfs.FS, path string, base model.Offset) (*segment, error) {
	f, err := fs.Create(path)
	if err != nil {
		return nil, err
	}
	return &segment{path: path, base: base, end: base, file: f}, nil
}

// openSegment checks a segment batch by batch, notes the epochs and cuts the
// file at the first batch that is not whole or does not continue the log.
func openSegment(fs vfs.FS, path string, base model.Offset, cache *epochs.Cache) (_ *segment, cut bool, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, false, err
	}
	s := &segment{path: path, base: base, end: base, file: f}
	size, err := f.Size()
	if err == nil {
		err = s.scan(size, cache)
	}
	if err == nil && s.size < size {
		cut, err = true, f.Truncate(s.size)
	}
	if err != nil {
		f.Close()
		return nil, false, fmt.Errorf("open %s: %w", path, err)
	}
	return s, cut, nil
}

// scan moves size and end over whole batches; only a failed read is an error.
func (s *segment) scan(size int64, cache *epochs.Cache) error {
	buf := make([]byte, 64<<10)
	for s.size+headerSize <= size {
		want := min(int64(len(buf)), size-s.size)
		if n, err := s.file.ReadAt(buf[:want], s.size); int64(n) < want {
			return fmt.Errorf("read at %d: %w", s.size, err)
		}
		_, need, err := parseHeader(buf[:want])
		if err != nil || int64(need) > size-s.size {
			return nil
		}
		if need > len(buf) {
			buf = make([]byte, need)
			continue
		}
		n := s.note(buf[:want], cache)
		if n == 0 {
			return nil
		}
	}
	return nil
}

// note takes the whole batches at the start of b into the segment and returns
// their bytes.
func (s *segment) note(b []byte, cache *epochs.Cache) int {
	n := 0
	for {
		h, size, err := parseBatch(b[n:])
		if err != nil || h.base != s.end {
			return n
		}
		if cache != nil {
			cache.Assign(h.epoch, h.base)
		}
		if k := len(s.index); k == 0 || s.size-s.index[k-1].pos >= indexEvery {
			s.index = append(s.index, place{h.base, s.size})
		}
		n, s.size, s.end = n+size, s.size+int64(size), h.end
	}
}

// append writes whole batches that continue the segment.
func (s *segment) append(b []byte) error {
	if _, err := s.file.WriteAt(b, s.size); err != nil {
		return err
	}
	if n := s.note(b, nil); n != len(b) {
		return fmt.Errorf("%d of %d bytes are whole batches", n, len(b))
	}
	return nil
}

func (s *segment) drop(fs vfs.FS) error {
	s.file.Close()
	return fs.Remove(s.path)
}

// locate returns where a batch begins that lies at or before the offset.
func (s *segment) locate(o model.Offset) int64 {
	i := sort.Search(len(s.index), func(i int) bool { return s.index[i].base > o })
	if i == 0 {
		return 0
	}
	return s.index[i-1].pos
}
