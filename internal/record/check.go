package record

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// CheckRules say what a topic and a request allow in one produced batch
// (R2.2-R2.5). The zero value of a size means no limit.
type CheckRules struct {
	MaxBytes     int32 // max.message.bytes, of the whole batch
	SegmentBytes int32 // segment.bytes: a batch never spans segments
	MaxRecord    int32 // max.decompressed.message.bytes, of a record in a packed batch
	// Compacted: cleanup.policy contains compact, so every record needs a key.
	Compacted bool
	// LogAppendTime: message.timestamp.type=LogAppendTime.
	LogAppendTime bool
	// BeforeMax and AfterMax bound CreateTime around now, in milliseconds
	// (message.timestamp.before.max.ms, message.timestamp.after.max.ms). Kafka
	// allows 0, so no limit is the largest int64; see NoTimeLimit.
	BeforeMax, AfterMax model.Millis
	// Codec is the topic's compression.type; CodecProducer keeps what came.
	Codec Codec
	// Level is the compression level for Codec; 0 is the codec's default.
	Level int
	// NoZstd: the request is older than v7 and may not carry zstd.
	NoZstd bool
	// Internal: the broker's own coordinators may write control batches.
	Internal bool
	// Seen is a survey of the batch, of the bytes as they are; nil when there is none.
	Seen *Survey
	// Room bounds what is held unpacked; nil does not.
	Room Room
}

// NoTimeLimit is the value of BeforeMax and AfterMax that allows every time.
const NoTimeLimit model.Millis = 1<<63 - 1

// BadRecord names one refused record of a batch (KIP-467).
type BadRecord struct {
	Index   int32 // position within the batch
	Message string
}

// CheckResult is the verdict on one produced batch. With Err None, Batch is
// what to append: the bytes that came, perhaps patched in place, or a new batch.
type CheckResult struct {
	Err     model.Error
	Message string // why, in words; empty with None
	// Bad are the refused records, when the fault lies in some of them; the first
	// maxBad of them.
	Bad    []BadRecord
	Batch  []byte
	Header Header // of Batch
	// AppendTime is what to answer as log append time; -1 with CreateTime.
	AppendTime model.Millis
}

// Check judges one produced batch: all of data must be one v2 batch. now is the
// broker's wall clock. Errors, in this order: INVALID_RECORD for what is no
// single v2 batch, UNSUPPORTED_COMPRESSION_TYPE, MESSAGE_TOO_LARGE,
// CORRUPT_MESSAGE for a wrong checksum, RECORD_LIST_TOO_LARGE, INVALID_RECORD
// for the header's other fields and a body that cannot be unpacked, then
// INVALID_TIMESTAMP or INVALID_RECORD for records. R2.2-R2.5.
func Check(data []byte, now model.Millis, rules *CheckRules) CheckResult {
	h, ok := ParseHeader(data)
	if r := checkFrame(data, h, ok, rules); r.Err != model.None {
		return r
	}
	if r := checkHeader(h, rules); r.Err != model.None {
		return r
	}
	c := checker{h: h, batch: data, rules: rules, now: now}
	if r := c.records(); r.Err != model.None {
		return r
	}
	return c.finish()
}

// checksum is that of the batch, from a survey if there is one.
func (r *CheckRules) checksum(batch []byte) uint32 {
	if r.Seen.of(batch) {
		return r.Seen.crc
	}
	return checksum(batch)
}

func refuse(err model.Error, format string, args ...any) CheckResult {
	return CheckResult{Err: err, Message: fmt.Sprintf(format, args...), AppendTime: -1}
}

// checkFrame judges the batch as a string of bytes (R2.2, R2.4).
func checkFrame(data []byte, h Header, ok bool, rules *CheckRules) CheckResult {
	switch {
	case len(data) > atMagic && int8(data[atMagic]) != Magic:
		return refuse(model.ErrInvalidRecord, "record format version %d is not supported, only 2", int8(data[atMagic]))
	case !ok || h.Size() > len(data):
		return refuse(model.ErrInvalidRecord, "the batch is cut short")
	case h.Size() < len(data):
		return refuse(model.ErrInvalidRecord, "%d bytes follow the only batch that is allowed", len(data)-h.Size())
	case rules.NoZstd && h.Codec() == CodecZstd:
		return refuse(model.ErrUnsupportedCompressionType, "zstd needs version 7 of the request")
	case rules.MaxBytes > 0 && h.Size() > int(rules.MaxBytes):
		return refuse(model.ErrMessageTooLarge, "the batch has %d bytes, more than max.message.bytes %d", h.Size(), rules.MaxBytes)
	case h.CRC != rules.checksum(data):
		return refuse(model.ErrCorruptMessage, "the checksum of the batch is wrong")
	case rules.SegmentBytes > 0 && h.Size() > int(rules.SegmentBytes):
		return refuse(model.ErrRecordListTooLarge, "the batch has %d bytes, more than segment.bytes %d", h.Size(), rules.SegmentBytes)
	}
	return CheckResult{}
}

// checkHeader judges the header's fields (R2.4, R2.5).
func checkHeader(h Header, rules *CheckRules) CheckResult {
	switch {
	case !rules.Internal && h.Base != 0:
		return refuse(model.ErrInvalidRecord, "the base offset of a produced batch must be 0, not %d", h.Base)
	case h.Count <= 0 || h.LastOffsetDelta < 0 || h.Count-1 != h.LastOffsetDelta:
		return refuse(model.ErrInvalidRecord, "the batch counts %d records, but its last offset delta is %d", h.Count, h.LastOffsetDelta)
	case !h.Codec().Known():
		return refuse(model.ErrInvalidRecord, "compression codec %d does not exist", h.Codec())
	case h.Control() && !rules.Internal:
		return refuse(model.ErrInvalidRecord, "clients may not write control batches")
	case !h.Control() && h.ProducerID >= 0 && h.BaseSequence < 0:
		return refuse(model.ErrInvalidRecord, "a batch of producer %d needs a sequence", h.ProducerID)
	case h.Transactional() && h.ProducerID < 0:
		return refuse(model.ErrInvalidRecord, "a transactional batch needs a producer id")
	}
	return CheckResult{}
}

// checker goes through the records of one batch.
type checker struct {
	h     Header
	batch []byte
	rules *CheckRules
	now   model.Millis

	maxTimestamp model.Millis
	unpacked     int64       // bytes of the body, once its records were judged
	renumber     bool        // some offset delta is not the record's index
	refused      int32       // records
	bad          []BadRecord // the first of them
	badTime      bool
}

func (c *checker) body() []byte { return c.batch[HeaderSize:] }

// records judges every record and finds the largest timestamp.
func (c *checker) records() CheckResult {
	if s := c.rules.Seen; s.vouches(c) {
		c.maxTimestamp, c.unpacked = max(-1, s.high), int64(len(c.body()))
		return CheckResult{}
	}
	if c.h.Codec() == CodecNone {
		return c.scan(&scan{buf: c.body()})
	}
	held := wholeBytes(c.h.Codec(), c.body())
	if !c.hold(held) {
		return crowded()
	}
	defer c.drop(held)
	p, err := openPacked(c.h.Codec(), c.body())
	if err != nil {
		return unreadable(err)
	}
	defer p.close()
	p.s.most = int64(c.rules.MaxRecord)
	return c.scan(p.s)
}

func (c *checker) scan(s *scan) CheckResult {
	c.maxTimestamp = -1
	for i := range c.h.Count {
		f, ok := s.next()
		if s.err != nil {
			return unreadable(s.err)
		}
		if !ok {
			return refuse(model.ErrInvalidRecord, "record %d of %d is malformed", i, c.h.Count)
		}
		c.record(i, f)
	}
	if !s.done() {
		if s.err != nil {
			return unreadable(s.err)
		}
		return refuse(model.ErrInvalidRecord, "bytes follow the last of %d records", c.h.Count)
	}
	c.unpacked = s.at()
	return c.verdict()
}

// unreadable refuses a packed body for why it cannot be read. The checksum was right, so
// to send it again, as clients do for CORRUPT_MESSAGE, would not help.
func unreadable(why error) CheckResult {
	return refuse(model.ErrInvalidRecord, "the records cannot be unpacked: %v", why)
}

// record judges one record.
func (c *checker) record(i int32, f facts) {
	t := c.h.BaseTimestamp + model.Millis(f.timestampDelta)
	c.maxTimestamp = max(c.maxTimestamp, t)
	if f.offsetDelta != int64(i) {
		c.renumber = true
	}
	if c.rules.Compacted && f.nullKey && !c.h.Control() {
		c.refuse(i, "a record of a compacted topic needs a key")
		return
	}
	if !c.rules.LogAppendTime && !c.rules.Internal && t != -1 && c.outside(t) {
		c.badTime = true
		c.refuse(i, "the timestamp is too far from the broker's clock")
	}
}

// maxBad is how many refused records are named: a small batch may unpack to very many.
const maxBad = 1000

func (c *checker) refuse(i int32, why string) {
	if c.refused++; len(c.bad) < maxBad {
		c.bad = append(c.bad, BadRecord{i, why})
	}
}

// outside reports whether a CreateTime is further from now than allowed.
// Differences that overflow are further than any limit but none.
func (c *checker) outside(t model.Millis) bool {
	if t <= c.now {
		age := c.now - t
		return c.rules.BeforeMax != NoTimeLimit && (age < 0 || age > c.rules.BeforeMax)
	}
	ahead := t - c.now
	return c.rules.AfterMax != NoTimeLimit && (ahead < 0 || ahead > c.rules.AfterMax)
}

func (c *checker) verdict() CheckResult {
	if c.refused == 0 {
		return CheckResult{}
	}
	err := model.ErrInvalidRecord
	if c.badTime {
		err = model.ErrInvalidTimestamp
	}
	r := refuse(err, "%d of %d records are refused; record %d: %s", c.refused, c.h.Count, c.bad[0].Index, c.bad[0].Message)
	r.Bad = c.bad
	return r
}

// finish repairs what the header says and repacks where the topic asks for it.
func (c *checker) finish() CheckResult {
	h, batch := c.h, c.batch
	target := c.rules.Codec
	if target == CodecProducer || c.h.Control() {
		target = h.Codec()
	}
	if target != h.Codec() || c.renumber {
		r := c.repacked(target)
		if r.Err != model.None {
			return r
		}
		h, batch = r.Header, r.Batch
	}
	attributes, timestamp, appendTime := h.Attributes&^logAppendTimeBit, c.maxTimestamp, model.Millis(-1)
	if c.rules.LogAppendTime {
		attributes, timestamp, appendTime = h.Attributes|logAppendTimeBit, c.now, c.now
	}
	if attributes != h.Attributes || timestamp != h.MaxTimestamp {
		h.Attributes, h.MaxTimestamp = attributes, timestamp
		binary.BigEndian.PutUint16(batch[atAttributes:], uint16(attributes))
		binary.BigEndian.PutUint64(batch[atMaxTimestamp:], uint64(timestamp))
		h.CRC = seal(batch)
	}
	return CheckResult{Batch: batch, Header: h, AppendTime: appendTime}
}
