package record

import (
	"hash/crc32"
	"math"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Survey looks at a batch while its bytes arrive, when they are still in the
// processor's cache: its checksum, and what Check has to know of its records, if they
// are not packed. It judges nothing: what it cannot vouch for, Check looks at itself.
type Survey struct {
	from, to int // its place in the buffer
	summed   int // up to where the checksum goes
	crc      uint32
	walk     bool // its records can be looked at
	h        Header
	scan     scan
	seen     int32 // records
	// of the records seen: bounds of timestamps but -1, and what would need a repair
	// or a refusal
	low, high model.Millis
	disorder  bool
	nullKey   bool
}

// surveyPiece is how much is summed before its records are looked at, in bytes.
const surveyPiece = 32 << 10

// Begin starts with the batch that will lie in [from, to) of a buffer.
func (s *Survey) Begin(from, to int) {
	*s = Survey{from: from, to: to, summed: from + crcFrom, low: math.MaxInt64, high: math.MinInt64}
}

// Extend looks at what came since the last call; buf is the buffer as far as it came.
// It reports whether the batch is whole.
func (s *Survey) Extend(buf []byte) bool {
	came := min(len(buf), s.to)
	if s.summed == s.from+crcFrom && came-s.from >= HeaderSize {
		var ok bool
		s.h, ok = ParseHeader(buf[s.from:came])
		s.walk = ok && s.h.Magic == Magic && s.h.Size() == s.to-s.from && s.h.Codec() == CodecNone
	}
	for s.summed < came && came-s.from >= HeaderSize {
		next := min(came, s.summed+surveyPiece)
		s.crc = crc32.Update(s.crc, castagnoli, buf[s.summed:next])
		s.summed = next
		if s.walk {
			s.look(buf[s.from+HeaderSize : next])
		}
	}
	return came == s.to
}

// look goes on to the last whole record of the body, and to the first malformed one.
func (s *Survey) look(body []byte) {
	s.scan.buf = body
	for s.walk && s.seen < s.h.Count {
		f, ok := s.next(body)
		if !ok {
			break
		}
		if t := s.h.BaseTimestamp + model.Millis(f.timestampDelta); t != -1 {
			s.low, s.high = min(s.low, t), max(s.high, t)
		}
		s.disorder = s.disorder || f.offsetDelta != int64(s.seen)
		s.nullKey = s.nullKey || f.nullKey
		s.seen++
	}
	s.scan.buf = nil
}

// next reads the record that comes next, once it is whole: with every piece that comes, a
// long one would be walked anew.
func (s *Survey) next(body []byte) (f facts, ok bool) {
	if f, end := plain(body, s.scan.pos); end > 0 {
		s.scan.pos = end
		return f, true
	}
	if cutShort(body[s.scan.pos:]) {
		return f, false
	}
	f, s.walk = s.scan.full()
	return f, s.walk
}

// cutShort reports whether the record at the front of b goes on behind b.
func cutShort(b []byte) bool {
	size, n := varint(b)
	return n == 0 || n > 0 && size > int64(len(b)-n)
}

// of reports whether s is a whole survey of data.
func (s *Survey) of(data []byte) bool {
	return s != nil && s.to-s.from == len(data) && s.summed == s.to && len(data) >= HeaderSize
}

// vouches reports whether every record would pass, unchanged.
func (s *Survey) vouches(c *checker) bool {
	if !s.of(c.batch) || !s.walk || s.seen != s.h.Count || s.scan.pos != s.to-s.from-HeaderSize || s.disorder {
		return false
	}
	if c.rules.Compacted && s.nullKey && !c.h.Control() {
		return false
	}
	return c.rules.LogAppendTime || c.rules.Internal || s.low > s.high || !c.outside(s.low) && !c.outside(s.high)
}

// At reports whether s is about data, which lies in the buffer that it surveyed.
func (s *Survey) At(buf, data []byte) bool {
	return s.of(data) && s.to <= len(buf) && &buf[s.from] == &data[0]
}
