// Package preview looks at large Produce requests while they arrive (ADR 0019).
package preview

import (
	"encoding/binary"
	"sync"

	"github.com/tidemark-log/tidemark/internal/record"
)

// Preview surveys the batches of a large Produce request while it arrives. It reads
// the request's frame up to where it came and goes on from there with the next bytes.
// What it does not expect ends it: those batches are looked at when all came.
type Preview struct {
	version  int16
	next     func(*Preview, *cursor) // reads the next part of the request
	at       int                     // where that part begins
	topics   int                     // left, the one that is read included
	parts    int                     // left in the topic
	surveys  []record.Survey
	inside   bool // the last survey goes on
	unwanted bool // something was not expected
}

var previews = sync.Pool{New: func() any { return &Preview{} }}

// New begins with a Produce request of a version.
func New(version int16) *Preview {
	p := previews.Get().(*Preview)
	*p = Preview{version: version, next: (*Preview).head, surveys: p.surveys[:0]}
	return p
}

// Extend goes on with the frame, of which so many bytes came.
func (p *Preview) Extend(frame []byte) {
	for !p.unwanted {
		if p.inside {
			s := &p.surveys[len(p.surveys)-1]
			if !s.Extend(frame) {
				return
			}
			p.inside = false
		}
		c := cursor{b: frame, at: p.at}
		if p.next == nil {
			return // all is read
		}
		p.next(p, &c)
		p.unwanted = c.odd
		if c.short || c.odd {
			return
		}
		p.at = c.at
	}
}

func (p *Preview) flexible() bool { return p.version >= 9 }

// head reads what comes before the first topic.
func (p *Preview) head(c *cursor) {
	c.skip(8)
	c.skip(max(0, int(c.int16()))) // client id
	switch {                       // transactional id
	case p.flexible():
		c.noTags()
		c.skip(max(0, c.uvarint()-1))
	case p.version >= 3:
		c.skip(max(0, int(c.int16())))
	}
	c.skip(2 + 4) // acks, timeout
	if n := p.count(c); c.whole() {
		p.topics, p.next = n, (*Preview).topic
		p.ended()
	}
}

// topic reads a topic up to its first partition.
func (p *Preview) topic(c *cursor) {
	switch {
	case p.version >= 13:
		c.skip(16)
	case p.flexible():
		c.skip(max(0, c.uvarint()-1))
	default:
		c.skip(max(0, int(c.int16())))
	}
	if n := p.count(c); c.whole() {
		p.parts, p.next = n, (*Preview).part
		if n == 0 {
			p.next = (*Preview).tail
		}
	}
}

// part reads a partition up to its batch, which is surveyed from there on.
func (p *Preview) part(c *cursor) {
	c.skip(4)
	n := 0
	if p.flexible() {
		n = c.uvarint() - 1
	} else {
		n = int(c.int32())
	}
	if n <= 0 {
		c.odd = c.odd || c.whole() // no batch
		return
	}
	if c.whole() {
		p.surveys = append(p.surveys, record.Survey{})
		p.surveys[len(p.surveys)-1].Begin(c.at, c.at+n)
		p.inside = true
		c.at += n
		p.next = (*Preview).tail
	}
}

// tail reads what follows a batch, or a topic without partitions.
func (p *Preview) tail(c *cursor) {
	left := p.parts
	if p.flexible() && left > 0 {
		c.noTags()
	}
	if left--; left > 0 {
		if c.whole() {
			p.parts, p.next = left, (*Preview).part
		}
		return
	}
	if p.flexible() {
		c.noTags()
	}
	if c.whole() {
		p.topics, p.next = p.topics-1, (*Preview).topic
		p.ended()
	}
}

// ended notes that no topic is left.
func (p *Preview) ended() {
	if p.topics <= 0 {
		p.next = nil
	}
}

func (p *Preview) count(c *cursor) int {
	if p.flexible() {
		return max(0, c.uvarint()-1)
	}
	return max(0, int(c.int32()))
}

// Free ends it: it may see another request. Nothing that it returned may be used then.
func (p *Preview) Free() { previews.Put(p) }

// Survey returns what was seen of the batch data, a part of frame and the i-th of the
// request; nil when it was not.
func (p *Preview) Survey(i int, frame, data []byte) *record.Survey {
	if p == nil || i >= len(p.surveys) || !p.surveys[i].At(frame, data) {
		return nil
	}
	return &p.surveys[i]
}

// cursor reads what may not all have come.
type cursor struct {
	b     []byte
	at    int
	short bool // more has to come
	odd   bool // it is not what a preview expects
}

func (c *cursor) whole() bool { return !c.short && !c.odd }

// take returns the next n bytes, or nil.
func (c *cursor) take(n int) []byte {
	if c.odd = c.odd || n < 0; !c.whole() {
		return nil
	}
	if n > len(c.b)-c.at {
		c.short = true
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

func (c *cursor) skip(n int) { c.take(n) }

func (c *cursor) int16() int16 {
	if b := c.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) int32() int32 {
	if b := c.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// uvarint reads a number of at most 31 bits.
func (c *cursor) uvarint() int {
	for n, shift := 0, 0; shift < 35; shift += 7 {
		b := c.take(1)
		if b == nil {
			return 0
		}
		if n |= int(b[0]&0x7f) << shift; b[0] < 0x80 {
			c.odd = c.odd || n > 1<<31-1
			return n
		}
	}
	c.odd = true
	return 0
}

// noTags reads a tag section, which has to be empty.
func (c *cursor) noTags() {
	if c.uvarint() != 0 {
		c.odd = true
	}
}
