// Package record is Kafka's record batch of format v2: the unit that travels, is
// stored, is replicated.
package record

import (
	"encoding/binary"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// HeaderSize is the number of bytes before the first record of a batch, and
// Magic the format version that this package reads and writes (R8.2).
const (
	HeaderSize = 61
	Magic      = 2
	// frameSize is the part in front that batchLength does not count.
	frameSize = 12
	// crcFrom is where the bytes that the checksum covers begin.
	crcFrom = 21
)

// Byte offsets of the header's fields (R8.2).
const (
	atLength        = 8
	atEpoch         = 12
	atMagic         = 16
	atCRC           = 17
	atAttributes    = 21
	atLastDelta     = 23
	atBaseTimestamp = 27
	atMaxTimestamp  = 35
	atProducerID    = 43
	atProducerEpoch = 51
	atBaseSequence  = 53
	atCount         = 57
)

// Attribute bits of a batch (R8.2).
const (
	codecMask        = 0x07
	logAppendTimeBit = 0x08
	transactionalBit = 0x10
	controlBit       = 0x20
	deleteHorizonBit = 0x40
)

// Header holds every field in front of a batch's records (R8.2). Offsets and
// deltas are in records, timestamps in milliseconds.
type Header struct {
	Base            model.Offset // offset of the first record
	Length          int32        // bytes that follow this field
	LeaderEpoch     model.Epoch  // stamped by the leader that appended it
	Magic           int8
	CRC             uint32 // CRC-32C of the bytes from Attributes to the end
	Attributes      int16
	LastOffsetDelta int32
	BaseTimestamp   model.Millis
	MaxTimestamp    model.Millis
	ProducerID      model.ProducerID
	ProducerEpoch   int16
	BaseSequence    int32
	Count           int32 // records in the batch
}

// ParseHeader reads the header at the front of b. It reports false when b is
// too short for one or when the length field cannot be that of a v2 batch; the
// rest of the batch need not be in b.
func ParseHeader(b []byte) (Header, bool) {
	if len(b) < HeaderSize {
		return Header{}, false
	}
	h := Header{
		Base:            model.Offset(binary.BigEndian.Uint64(b)),
		Length:          int32(binary.BigEndian.Uint32(b[atLength:])),
		LeaderEpoch:     model.Epoch(binary.BigEndian.Uint32(b[atEpoch:])),
		Magic:           int8(b[atMagic]),
		CRC:             binary.BigEndian.Uint32(b[atCRC:]),
		Attributes:      int16(binary.BigEndian.Uint16(b[atAttributes:])),
		LastOffsetDelta: int32(binary.BigEndian.Uint32(b[atLastDelta:])),
		BaseTimestamp:   model.Millis(binary.BigEndian.Uint64(b[atBaseTimestamp:])),
		MaxTimestamp:    model.Millis(binary.BigEndian.Uint64(b[atMaxTimestamp:])),
		ProducerID:      model.ProducerID(binary.BigEndian.Uint64(b[atProducerID:])),
		ProducerEpoch:   int16(binary.BigEndian.Uint16(b[atProducerEpoch:])),
		BaseSequence:    int32(binary.BigEndian.Uint32(b[atBaseSequence:])),
		Count:           int32(binary.BigEndian.Uint32(b[atCount:])),
	}
	return h, h.Length >= HeaderSize-frameSize
}

// Size is the number of bytes of the whole batch.
func (h Header) Size() int { return frameSize + int(h.Length) }

// LastOffset is the offset of the batch's last record. Compaction keeps it even
// when the record itself is gone.
func (h Header) LastOffset() model.Offset { return h.Base + model.Offset(h.LastOffsetDelta) }

// Next is the offset after the batch.
func (h Header) Next() model.Offset { return h.LastOffset() + 1 }

// Codec is how the records are compressed.
func (h Header) Codec() Codec { return Codec(h.Attributes & codecMask) }

// LogAppendTime reports whether the records' time is when the broker took them.
func (h Header) LogAppendTime() bool { return h.Attributes&logAppendTimeBit != 0 }

// Transactional reports whether the batch belongs to a transaction.
func (h Header) Transactional() bool { return h.Attributes&transactionalBit != 0 }

// Control reports whether the records are markers for the log itself.
func (h Header) Control() bool { return h.Attributes&controlBit != 0 }

// DeleteHorizon is when compaction may drop the batch's tombstones, if it has
// met the batch before; then the base timestamp holds that time instead.
func (h Header) DeleteHorizon() (model.Millis, bool) {
	return h.BaseTimestamp, h.Attributes&deleteHorizonBit != 0
}

// Producer is what the header says about the producer. For a control batch use
// ProducerOf, which reads the marker too.
func (h Header) Producer() producers.Batch {
	return producers.Batch{
		ID:            h.ProducerID,
		Epoch:         h.ProducerEpoch,
		BaseSequence:  h.BaseSequence,
		Records:       h.LastOffsetDelta + 1,
		Base:          h.Base,
		MaxTimestamp:  h.MaxTimestamp,
		Transactional: h.Transactional(),
		Control:       h.Control(),
	}
}

// put writes the header's fields to the front of b, the checksum included.
func (h Header) put(b []byte) {
	_ = b[HeaderSize-1]
	binary.BigEndian.PutUint64(b, uint64(h.Base))
	binary.BigEndian.PutUint32(b[atLength:], uint32(h.Length))
	binary.BigEndian.PutUint32(b[atEpoch:], uint32(h.LeaderEpoch))
	b[atMagic] = byte(h.Magic)
	binary.BigEndian.PutUint32(b[atCRC:], h.CRC)
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[atLastDelta:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[atBaseTimestamp:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[atProducerID:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[atProducerEpoch:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[atBaseSequence:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[atCount:], uint32(h.Count))
}

// Stamp writes the base offset and the leader epoch into the batch, in place.
// Both lie outside the checksum (R8.2). batch must hold at least a header.
func Stamp(batch []byte, base model.Offset, epoch model.Epoch) {
	_ = batch[HeaderSize-1]
	binary.BigEndian.PutUint64(batch, uint64(base))
	binary.BigEndian.PutUint32(batch[atEpoch:], uint32(epoch))
}
