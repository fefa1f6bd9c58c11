package record

import (
	"errors"
	"io"
	"sync"
)

var (
	errMalformed = errors.New("malformed record")
	errTrailing  = errors.New("bytes follow the last record")
	errLarge     = errors.New("a record unpacks to more than max.decompressed.message.bytes")
)

// scanBuffer is how much of a packed body is held at a time.
const scanBuffer = 16 << 10

// scan walks over the records of a body, either all in memory (src nil) or
// unpacked piece by piece.
type scan struct {
	buf   []byte
	pos   int
	src   io.Reader
	most  int64 // bytes of a record; 0: no limit
	total int64 // bytes of the body before buf
	err   error
}

// at is how many bytes of the body were consumed.
func (s *scan) at() int64 { return s.total + int64(s.pos) }

// more gets at least one more byte. It reports false at the end, or when the
// body cannot be unpacked, which err then tells.
func (s *scan) more() bool {
	if s.src == nil || s.err != nil {
		return false
	}
	s.total += int64(s.pos)
	s.pos = 0
	if s.total > maxInflated {
		s.err = errTooLarge
		return false
	}
	for tries := 0; tries < 100; tries++ {
		n, err := s.src.Read(s.buf[:cap(s.buf)])
		s.buf = s.buf[:n]
		if n > 0 {
			return true
		}
		if err == io.EOF {
			s.src = nil
			return false
		}
		if err != nil {
			s.err = err
			return false
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// done reports whether the body is used up.
func (s *scan) done() bool { return s.pos == len(s.buf) && !s.more() && s.err == nil }

func (s *scan) skip(n int64) bool {
	for n > int64(len(s.buf)-s.pos) {
		n -= int64(len(s.buf) - s.pos)
		s.pos = len(s.buf)
		if !s.more() {
			return false
		}
	}
	s.pos += int(n)
	return true
}

// varint reads a number of 32 bits, varlong one of 64.
func (s *scan) varint() (int64, bool) {
	u, ok := s.uvarint(maxVarint)
	return zigzag32(u), ok
}

func (s *scan) varlong() (int64, bool) {
	u, ok := s.uvarint(maxVarlong)
	return zigzag(u), ok
}

func (s *scan) uvarint(most int) (u uint64, ok bool) {
	for i := range most {
		if s.pos == len(s.buf) && !s.more() {
			return 0, false
		}
		b := s.buf[s.pos]
		s.pos++
		u |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return u, true
		}
	}
	return 0, false
}

// facts are what a check needs of one record.
type facts struct {
	timestampDelta int64
	offsetDelta    int64
	nullKey        bool
}

// next reads one record up to its end. It reports false when the record is
// malformed or the body cannot be unpacked.
func (s *scan) next() (facts, bool) {
	if s.most == 0 || s.most >= maxPlain {
		if f, end := plain(s.buf, s.pos); end > 0 {
			s.pos = end
			return f, true
		}
	}
	return s.full()
}

// full is next for any record.
func (s *scan) full() (facts, bool) {
	var f facts
	size, ok := s.varint()
	if !ok || size < 0 {
		return f, false
	}
	if s.most > 0 && size > s.most {
		s.err = errLarge
		return f, false
	}
	end := s.at() + size
	if !s.skip(1) { // attributes: none are defined
		return f, false
	}
	if f.timestampDelta, ok = s.varlong(); !ok {
		return f, false
	}
	if f.offsetDelta, ok = s.varint(); !ok {
		return f, false
	}
	key, ok := s.blob(end)
	if !ok {
		return f, false
	}
	f.nullKey = key < 0
	if _, ok = s.blob(end); !ok {
		return f, false
	}
	return f, s.headers(end) && s.at() == end
}

// maxPlain is beyond the size of any record that plain reads.
const maxPlain = 1 << 13

// plain is next for a record as most are: all of it in buf from at on, its numbers of
// one or two bytes, without headers. It returns where the record ends; 0 leaves it to
// be looked at in full.
func plain(buf []byte, at int) (facts, int) {
	size, at := brief(buf, at)
	if at == 0 || size < 0 || size > int64(len(buf)-at) {
		return facts{}, 0
	}
	end := at + int(size)
	var f facts
	if f.timestampDelta, at = brief(buf[:end], at+1); at == 0 { // after the attributes
		return f, 0
	}
	if f.offsetDelta, at = brief(buf[:end], at); at == 0 {
		return f, 0
	}
	key, at := brief(buf[:end], at)
	if f.nullKey = key == -1; at == 0 || key < -1 {
		return f, 0
	}
	value, at := brief(buf[:end], at+int(max(0, key)))
	if at == 0 || value < -1 || at+int(max(0, value)) != end-1 || buf[end-1] != 0 {
		return f, 0
	}
	return f, end
}

// brief reads a zigzag number of one or two bytes that is not the last of buf, and
// returns where it ends; 0 says that there is none.
func brief(buf []byte, at int) (int64, int) {
	if at+1 >= len(buf) {
		return 0, 0
	}
	u := uint64(buf[at])
	if u < 0x80 {
		return zigzag(u), at + 1
	}
	more := uint64(buf[at+1])
	if more >= 0x80 {
		return 0, 0
	}
	return zigzag(u&0x7f | more<<7), at + 2
}

// blob skips a length and that many bytes; -1 means null.
func (s *scan) blob(end int64) (int64, bool) {
	n, ok := s.varint()
	if !ok || n < -1 || n > end-s.at() {
		return n, false
	}
	return n, n < 0 || s.skip(n)
}

func (s *scan) headers(end int64) bool {
	n, ok := s.varint()
	if !ok || n < 0 || n > end-s.at() {
		return false
	}
	for range n {
		if key, ok := s.blob(end); !ok || key < 0 {
			return false
		}
		if _, ok := s.blob(end); !ok {
			return false
		}
	}
	return true
}

// scanners keeps buffers for packed bodies.
var scanners = sync.Pool{New: func() any { return &scan{buf: make([]byte, 0, scanBuffer)} }}

// packedScan is a scan of a packed body with what unpacks it.
type packedScan struct {
	s *scan
	f *inflater
}

// openPacked begins to walk over a packed body.
func openPacked(codec Codec, body []byte) (packedScan, error) {
	f := inflaters.Get().(*inflater)
	src, err := f.open(codec, body)
	if err != nil {
		f.put()
		return packedScan{}, err
	}
	s := scanners.Get().(*scan)
	*s = scan{buf: s.buf[:0], src: src}
	return packedScan{s, f}, nil
}

func (p packedScan) close() {
	scanners.Put(p.s)
	p.f.put()
}
