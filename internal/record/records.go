package record

import (
	"cmp"
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// HeaderField is one header of a record. A nil value is null.
type HeaderField struct {
	Key   string
	Value []byte
}

// Record is one record of a batch. Nil keys and values are null. The slices
// point into the batch, or into memory of the walk when it was packed.
type Record struct {
	Offset    model.Offset
	Timestamp model.Millis
	Sequence  int32 // -1 without a producer
	Key       []byte
	Value     []byte
	Headers   []HeaderField
}

// Records calls fn for each record of a whole batch until fn returns false. The
// record is reused; its slices stay valid. The error says why the body cannot
// be read; the checksum is not looked at.
func Records(batch []byte, fn func(*Record) bool) error {
	h, ok := ParseHeader(batch)
	if !ok || h.Magic != Magic || h.Size() > len(batch) {
		return errMalformed
	}
	body := batch[HeaderSize:h.Size()]
	if h.Codec() != CodecNone {
		var err error
		if body, err = inflate(nil, h.Codec(), body); err != nil {
			return err
		}
	}
	var r Record
	for i := range h.Count {
		rest, ok := decode(&r, &h, body)
		if !ok {
			return fmt.Errorf("record %d of %d: %w", i, h.Count, errMalformed)
		}
		body = rest
		if !fn(&r) {
			return nil
		}
	}
	if len(body) > 0 {
		return errTrailing
	}
	return nil
}

// Times calls fn with the offset and the time of each record of a whole batch until fn
// returns false. It is Records for those who need no more: a packed body is unpacked
// piece by piece.
func Times(batch []byte, fn func(model.Offset, model.Millis) bool) error {
	h, ok := ParseHeader(batch)
	if !ok || h.Magic != Magic || h.Size() > len(batch) {
		return errMalformed
	}
	s := &scan{buf: batch[HeaderSize:h.Size()]}
	if h.Codec() != CodecNone {
		p, err := openPacked(h.Codec(), s.buf)
		if err != nil {
			return fmt.Errorf("unpack %s: %w", h.Codec(), err)
		}
		defer p.close()
		s = p.s
	}
	for i := range h.Count {
		f, ok := s.next()
		if !ok {
			return fmt.Errorf("record %d of %d: %w", i, h.Count, cmp.Or(s.err, errMalformed))
		}
		t := h.BaseTimestamp + model.Millis(f.timestampDelta)
		if h.LogAppendTime() {
			t = h.MaxTimestamp
		}
		if !fn(h.Base+model.Offset(f.offsetDelta), t) {
			return nil
		}
	}
	if !s.done() {
		return cmp.Or(s.err, errTrailing)
	}
	return nil
}

// decode reads the record at the front of body and returns what follows it.
func decode(r *Record, h *Header, body []byte) ([]byte, bool) {
	size, n := varint(body)
	if n <= 0 || size < 1 || size > int64(len(body)-n) {
		return nil, false
	}
	d := decoder{b: body[n+1 : n+int(size)], ok: true} // the attributes byte says nothing
	timestampDelta := d.number(varlong)
	offsetDelta := d.varint()
	r.Key = d.blob()
	r.Value = d.blob()
	d.headers(r)
	if !d.ok || len(d.b) > 0 {
		return nil, false
	}
	r.Offset = h.Base + model.Offset(offsetDelta)
	r.Timestamp = h.BaseTimestamp + model.Millis(timestampDelta)
	if h.LogAppendTime() {
		r.Timestamp = h.MaxTimestamp
	}
	r.Sequence = -1
	if h.ProducerID >= 0 && h.BaseSequence >= 0 {
		r.Sequence = int32((int64(h.BaseSequence) + offsetDelta) & 0x7fffffff)
	}
	return body[n+int(size):], true
}

// decoder reads the fields of one record that is all in memory.
type decoder struct {
	b  []byte
	ok bool
}

func (d *decoder) varint() int64 { return d.number(varint) }

func (d *decoder) number(read func([]byte) (int64, int)) int64 {
	v, n := read(d.b)
	if n <= 0 {
		d.ok, d.b = false, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// blob reads a length and that many bytes; nil for null.
func (d *decoder) blob() []byte {
	n := d.varint()
	if !d.ok || n < -1 || n > int64(len(d.b)) {
		d.ok = false
		return nil
	}
	if n < 0 {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) headers(r *Record) {
	r.Headers = r.Headers[:0]
	n := d.varint()
	if !d.ok || n < 0 || n > int64(len(d.b)) {
		d.ok = false
		return
	}
	for range n {
		key := d.blob()
		if key == nil {
			d.ok = false
			return
		}
		r.Headers = append(r.Headers, HeaderField{Key: string(key), Value: d.blob()})
	}
}
