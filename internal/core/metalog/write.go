package metalog

import (
	"encoding/binary"
	"math"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

const maxTags = 9 // tags 0 to 8

// writer appends fields to b. Tagged fields wait in tags until finish, because
// the schema's order is not the order of the tags.
type writer struct {
	b     []byte
	tags  []byte
	spans [maxTags]span // by tag, into tags
	count int           // tagged fields told
}

type span struct{ from, to int }

func (w *writer) reset(dst []byte) {
	w.b, w.tags, w.spans, w.count = dst, w.tags[:0], [maxTags]span{}, 0
}

// finish appends the tagged fields.
func (w *writer) finish() {
	w.uvarint(uint64(w.count))
	if w.count == 0 {
		return
	}
	for tag, s := range w.spans {
		if s.to == s.from {
			continue
		}
		w.uvarint(uint64(tag))
		w.uvarint(uint64(s.to - s.from))
		w.b = append(w.b, w.tags[s.from:s.to]...)
	}
}

func (w *writer) uvarint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *writer) bool(_ string, p *bool) {
	v := byte(0)
	if *p {
		v = 1
	}
	w.b = append(w.b, v)
}

func (w *writer) int8(_ string, p *int8)       { w.b = append(w.b, byte(*p)) }
func (w *writer) int16(_ string, p *int16)     { w.b = binary.BigEndian.AppendUint16(w.b, uint16(*p)) }
func (w *writer) uint16(_ string, p *uint16)   { w.b = binary.BigEndian.AppendUint16(w.b, *p) }
func (w *writer) int32(_ string, p *int32)     { w.b = binary.BigEndian.AppendUint32(w.b, uint32(*p)) }
func (w *writer) int64(_ string, p *int64)     { w.b = binary.BigEndian.AppendUint64(w.b, uint64(*p)) }
func (w *writer) uuid(_ string, p *model.UUID) { w.b = append(w.b, p[:]...) }

func (w *writer) float64(_ string, p *float64) {
	w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(*p))
}

func (w *writer) string(_ string, p *string) {
	w.uvarint(uint64(len(*p)) + 1)
	w.b = append(w.b, *p...)
}

func (w *writer) nullString(name string, p **string) {
	if *p == nil {
		w.b = append(w.b, 0)
		return
	}
	w.string(name, *p)
}

func (w *writer) bytes(_ string, p *[]byte) {
	w.uvarint(uint64(len(*p)) + 1)
	w.b = append(w.b, *p...)
}

func (w *writer) ids(_ string, p *[]model.BrokerID) {
	w.uvarint(uint64(len(*p)) + 1)
	for _, id := range *p {
		w.b = binary.BigEndian.AppendUint32(w.b, uint32(id))
	}
}

func (w *writer) uuids(_ string, p *[]model.UUID) {
	w.uvarint(uint64(len(*p)) + 1)
	for i := range *p {
		w.b = append(w.b, (*p)[i][:]...)
	}
}

func (w *writer) strings(name string, p *[]string) {
	w.uvarint(uint64(len(*p)) + 1)
	for i := range *p {
		w.string(name, &(*p)[i])
	}
}

func (w *writer) tagInt8(tag int, name string, p *int8, def int8) {
	if *p != def {
		from := w.swap()
		w.int8(name, p)
		w.keep(tag, from)
	}
}

func (w *writer) tagInt32(tag int, name string, p *int32, def int32) {
	if *p != def {
		from := w.swap()
		w.int32(name, p)
		w.keep(tag, from)
	}
}

func (w *writer) tagString(tag int, name string, p **string) {
	if *p != nil {
		from := w.swap()
		w.string(name, *p)
		w.keep(tag, from)
	}
}

func (w *writer) tagIDs(tag int, name string, p *[]model.BrokerID) {
	if *p != nil {
		from := w.swap()
		w.ids(name, p)
		w.keep(tag, from)
	}
}

func (w *writer) tagUUIDs(tag int, name string, p *[]model.UUID, emptyIsDefault bool) {
	if *p == nil || emptyIsDefault && len(*p) == 0 {
		return
	}
	from := w.swap()
	w.uuids(name, p)
	w.keep(tag, from)
}

// swap lets the field methods append to tags; keep swaps back and remembers
// where the field of the tag lies.
func (w *writer) swap() int {
	w.b, w.tags = w.tags, w.b
	return len(w.b)
}

func (w *writer) keep(tag, from int) {
	w.b, w.tags = w.tags, w.b
	w.spans[tag] = span{from, len(w.tags)}
	w.count++
}

func (w *writer) begin(_ string, n, _ int) int {
	w.uvarint(uint64(n) + 1)
	return n
}

func (w *writer) open(string) {}
func (w *writer) shut()       { w.b = append(w.b, 0) } // no tagged fields
func (w *writer) end()        {}
