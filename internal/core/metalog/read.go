package metalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

var (
	errShort    = errors.New("the bytes end inside the record")
	errTrailing = errors.New("bytes are left after the record")
	errNull     = errors.New("a field is null that must not be")
	errVarint   = errors.New("a varint is longer than five bytes")
	errTag      = errors.New("a tagged field does not fill its size")
)

// maxString is the longest string that Kafka's readers take, in bytes.
const maxString = 0x7fff

// reader reads fields from b. The first error sticks; later fields then get
// their zero value.
type reader struct {
	b     []byte
	err   error
	slots [maxTags]slot // where the tagged fields of this record go
}

// slot is the place of one tagged field; one of the pointers is set.
type slot struct {
	i8    *int8
	i32   *int32
	str   **string
	ids   *[]model.BrokerID
	uuids *[]model.UUID
}

func (r *reader) reset(b []byte) { *r = reader{b: b} }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

// take returns the next n bytes, nil after an error.
func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.fail(errShort)
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// uvarint reads an unsigned varint of at most five bytes, as Kafka does.
func (r *reader) uvarint() uint32 {
	var v uint32
	for i := range 5 {
		if i >= len(r.b) {
			r.fail(errShort)
			return 0
		}
		c := r.b[i]
		v |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.b = r.b[i+1:]
			return v
		}
	}
	r.fail(errVarint)
	return 0
}

// length reads the length of a string or array whose elements take at least
// size bytes each; -1 means null. It fails before anybody allocates.
func (r *reader) length(size int) int {
	v := r.uvarint()
	if v == 0 {
		return -1
	}
	n := int(v) - 1
	if n > len(r.b)/size {
		r.fail(errShort)
		return 0
	}
	return n
}

// list is length for what must not be null.
func (r *reader) list(size int) int {
	n := r.length(size)
	if n < 0 {
		if r.err == nil {
			r.fail(errNull)
		}
		return 0
	}
	return n
}

func (r *reader) text(n int) string {
	if n > maxString {
		r.fail(fmt.Errorf("a string of %d bytes is longer than %d", n, maxString))
		return ""
	}
	return string(r.take(n))
}

// finish reads the tagged fields and checks that nothing is left.
func (r *reader) finish() error {
	r.tagSection(&r.slots)
	if r.err == nil && len(r.b) > 0 {
		r.err = errTrailing
	}
	return r.err
}

// tagSection reads tagged fields into slots and skips the others.
func (r *reader) tagSection(slots *[maxTags]slot) {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		tag, size := r.uvarint(), r.uvarint()
		if uint64(size) > uint64(len(r.b)) {
			r.fail(errShort)
			return
		}
		body := r.take(int(size))
		if slots == nil || tag >= maxTags || slots[tag] == (slot{}) {
			continue
		}
		rest := r.b
		r.b = body
		r.fill(slots[tag])
		if len(r.b) > 0 {
			r.fail(errTag)
		}
		if r.err == nil {
			r.b = rest
		}
	}
}

func (r *reader) fill(s slot) {
	switch {
	case s.i8 != nil:
		r.int8("", s.i8)
	case s.i32 != nil:
		r.int32("", s.i32)
	case s.str != nil:
		r.nullString("", s.str)
	case s.ids != nil:
		if n := r.length(4); n >= 0 {
			*s.ids = r.readIDs(n)
		}
	case s.uuids != nil:
		if n := r.length(16); n >= 0 {
			*s.uuids = r.readUUIDs(n)
		}
	}
}

func (r *reader) bool(_ string, p *bool) {
	if b := r.take(1); b != nil {
		*p = b[0] != 0
	}
}

func (r *reader) int8(_ string, p *int8) {
	if b := r.take(1); b != nil {
		*p = int8(b[0])
	}
}

func (r *reader) int16(_ string, p *int16) {
	if b := r.take(2); b != nil {
		*p = int16(binary.BigEndian.Uint16(b))
	}
}

func (r *reader) uint16(_ string, p *uint16) {
	if b := r.take(2); b != nil {
		*p = binary.BigEndian.Uint16(b)
	}
}

func (r *reader) int32(_ string, p *int32) {
	if b := r.take(4); b != nil {
		*p = int32(binary.BigEndian.Uint32(b))
	}
}

func (r *reader) int64(_ string, p *int64) {
	if b := r.take(8); b != nil {
		*p = int64(binary.BigEndian.Uint64(b))
	}
}

func (r *reader) float64(_ string, p *float64) {
	if b := r.take(8); b != nil {
		*p = math.Float64frombits(binary.BigEndian.Uint64(b))
	}
}

func (r *reader) uuid(_ string, p *model.UUID) { copy(p[:], r.take(len(p))) }

func (r *reader) string(_ string, p *string) { *p = r.text(r.list(1)) }

func (r *reader) nullString(_ string, p **string) {
	*p = nil
	if n := r.length(1); n >= 0 && r.err == nil {
		s := r.text(n)
		*p = &s
	}
}

func (r *reader) bytes(_ string, p *[]byte) {
	n := r.list(1)
	*p = append(make([]byte, 0, n), r.take(n)...)
}

func (r *reader) ids(_ string, p *[]model.BrokerID) {
	if n := r.list(4); n > 0 {
		*p = r.readIDs(n)
	}
}

// readIDs and readUUIDs return a list that is not nil, as an empty tagged list
// differs from none.
func (r *reader) readIDs(n int) []model.BrokerID {
	list := make([]model.BrokerID, n)
	for i := range list {
		r.int32("", (*int32)(&list[i]))
	}
	return list
}

func (r *reader) uuids(_ string, p *[]model.UUID) {
	if n := r.list(16); n > 0 {
		*p = r.readUUIDs(n)
	}
}

func (r *reader) readUUIDs(n int) []model.UUID {
	list := make([]model.UUID, n)
	for i := range list {
		r.uuid("", &list[i])
	}
	return list
}

func (r *reader) strings(_ string, p *[]string) {
	if n := r.list(1); n > 0 {
		*p = make([]string, n)
		for i := range *p {
			r.string("", &(*p)[i])
		}
	}
}

func (r *reader) tagInt8(tag int, _ string, p *int8, def int8) {
	*p, r.slots[tag] = def, slot{i8: p}
}

func (r *reader) tagInt32(tag int, _ string, p *int32, def int32) {
	*p, r.slots[tag] = def, slot{i32: p}
}

func (r *reader) tagString(tag int, _ string, p **string) { r.slots[tag] = slot{str: p} }

func (r *reader) tagIDs(tag int, _ string, p *[]model.BrokerID) { r.slots[tag] = slot{ids: p} }

func (r *reader) tagUUIDs(tag int, _ string, p *[]model.UUID, _ bool) {
	r.slots[tag] = slot{uuids: p}
}

func (r *reader) begin(_ string, _, size int) int { return r.list(size) }

func (r *reader) open(string) {}
func (r *reader) shut()       { r.tagSection(nil) }
func (r *reader) end()        {}
