package record

import (
	"encoding/binary"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// BatchOptions are the header fields of a batch to be built.
type BatchOptions struct {
	Base          model.Offset
	LeaderEpoch   model.Epoch
	Codec         Codec
	Level         int              // compression level; 0 is the codec's default
	ProducerID    model.ProducerID // NoProducerID for a plain batch
	ProducerEpoch int16            // -1 for a plain batch
	BaseSequence  int32            // -1 for a plain batch
	Transactional bool
	Control       bool
	LogAppendTime bool
}

// PlainOptions are the options of a batch without a producer id.
func PlainOptions() BatchOptions {
	return BatchOptions{ProducerID: model.NoProducerID, ProducerEpoch: -1, BaseSequence: -1}
}

// Builder makes a batch, record by record. It can be used again after Reset.
type Builder struct {
	opts  BatchOptions
	body  []byte
	rec   []byte
	out   []byte
	count int32
	base  model.Millis
	max   model.Millis
}

// NewBuilder starts a batch.
func NewBuilder(opts BatchOptions) *Builder {
	b := &Builder{}
	b.Reset(opts)
	return b
}

// Reset starts another batch in the memory of the last.
func (b *Builder) Reset(opts BatchOptions) {
	b.opts, b.body, b.count, b.base, b.max = opts, b.body[:0], 0, -1, -1
}

// Add appends a record. A nil key, value or header value is null. The first
// record's time becomes the base timestamp.
func (b *Builder) Add(timestamp model.Millis, key, value []byte, headers ...HeaderField) {
	if b.count == 0 {
		b.base = timestamp
	}
	b.max = max(b.max, timestamp)
	r := append(b.rec[:0], 0) // attributes
	r = binary.AppendVarint(r, int64(timestamp-b.base))
	r = binary.AppendVarint(r, int64(b.count))
	r = appendBlob(r, key)
	r = appendBlob(r, value)
	r = binary.AppendVarint(r, int64(len(headers)))
	for _, h := range headers {
		r = binary.AppendVarint(r, int64(len(h.Key)))
		r = append(r, h.Key...)
		r = appendBlob(r, h.Value)
	}
	b.rec = r
	b.body = binary.AppendVarint(b.body, int64(len(r)))
	b.body = append(b.body, r...)
	b.count++
}

func appendBlob(dst, v []byte) []byte {
	if v == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(v)))
	return append(dst, v...)
}

// Len is the number of records so far.
func (b *Builder) Len() int { return int(b.count) }

// Size is the size of the batch so far in bytes, before compression.
func (b *Builder) Size() int { return HeaderSize + len(b.body) }

// Bytes ends the batch and returns it; it is valid until the next Bytes. It
// panics when no record was added, for an empty batch is none.
func (b *Builder) Bytes() []byte {
	if b.count == 0 {
		panic("a batch needs a record")
	}
	if cap(b.out) < HeaderSize {
		b.out = make([]byte, 0, HeaderSize+len(b.body))
	}
	b.out = deflate(b.out[:HeaderSize], b.opts.Codec, b.opts.Level, b.body)
	h := Header{
		Base:            b.opts.Base,
		Length:          int32(len(b.out) - frameSize),
		LeaderEpoch:     b.opts.LeaderEpoch,
		Magic:           Magic,
		Attributes:      b.opts.attributes(),
		LastOffsetDelta: b.count - 1,
		BaseTimestamp:   b.base,
		MaxTimestamp:    b.max,
		ProducerID:      b.opts.ProducerID,
		ProducerEpoch:   b.opts.ProducerEpoch,
		BaseSequence:    b.opts.BaseSequence,
		Count:           b.count,
	}
	h.put(b.out)
	seal(b.out)
	return b.out
}

func (o BatchOptions) attributes() int16 {
	a := int16(o.Codec) & codecMask
	if o.LogAppendTime {
		a |= logAppendTimeBit
	}
	if o.Transactional {
		a |= transactionalBit
	}
	if o.Control {
		a |= controlBit
	}
	return a
}

// Marker ends a transaction: it is what a coordinator writes into every
// partition of it (R2.15).
type Marker struct {
	Producer         model.ProducerID
	ProducerEpoch    int16
	Commit           bool
	CoordinatorEpoch int32
}

// Batch builds the marker's control batch, of one record at time now.
func (m Marker) Batch(base model.Offset, epoch model.Epoch, now model.Millis) []byte {
	b := NewBuilder(BatchOptions{
		Base: base, LeaderEpoch: epoch, ProducerID: m.Producer, ProducerEpoch: m.ProducerEpoch,
		BaseSequence: -1, Transactional: true, Control: true,
	})
	kind := byte(ControlAbort)
	if m.Commit {
		kind = ControlCommit
	}
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(m.CoordinatorEpoch))
	b.Add(now, []byte{0, 0, 0, kind}, value)
	return b.Bytes()
}
