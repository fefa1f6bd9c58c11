package metalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// The header of a v2 batch, by byte:
//
//	 0 base offset 8 | 8 length of the rest 4 | 12 leader epoch 4 | 16 magic 1 |
//	17 CRC-32C of all that follows 4 | 21 attributes 2 | 23 last offset delta 4 |
//	27 base timestamp 8 | 35 max timestamp 8 | 43 producer id 8 |
//	51 producer epoch 2 | 53 base sequence 4 | 57 count 4 | 61 records
const (
	headerSize  = 61
	lengthEnd   = 12 // where the counted length begins
	crcStart    = 21
	attrControl = 1 << 5
	minRecord   = 7 // bytes of the smallest record
)

// maxBatch is the size of the largest batch that Kafka's metadata readers take,
// in bytes.
const maxBatch = 8 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is one decoded batch of the metadata log.
type Batch struct {
	Base      model.Offset // offset of the first record
	End       model.Offset // offset after the last record
	Epoch     model.Epoch  // epoch of the leader that appended it
	Timestamp model.Millis // append time
	Records   []Record     // nil in a control batch
	Control   []Control    // nil in a data batch
	Raw       []byte       // the batch as it lies in the log; shares the caller's bytes
}

// AppendBatch appends a v2 batch with the records to dst: the first has offset
// base, and all have the timestamp. The records are written in the versions that
// the level allows; there must be at least one.
func AppendBatch(dst []byte, base model.Offset, epoch model.Epoch, timestamp model.Millis,
	recs []Record, level int16) []byte {
	b := beginBatch(dst)
	for _, rec := range recs {
		b.add(rec, level)
	}
	return b.finish(base, epoch, timestamp, 0)
}

// AppendControlBatch appends a control batch to dst, one offset per record.
// There must be at least one.
func AppendControlBatch(dst []byte, base model.Offset, epoch model.Epoch, timestamp model.Millis,
	recs []Control) []byte {
	b := beginBatch(dst)
	var key [4]byte
	for _, rec := range recs {
		binary.BigEndian.PutUint16(key[2:], uint16(rec.ControlType()))
		b.value = b.w.appendControl(b.value[:0], rec)
		b.record(key[:])
	}
	return b.finish(base, epoch, timestamp, attrControl)
}

// batch builds one v2 batch at the end of b.
type batch struct {
	b     []byte
	start int // of the batch in b
	count int
	w     writer
	value []byte // of the record being added
	head  []byte // its bytes before the value
}

func beginBatch(dst []byte) batch {
	return batch{b: append(dst, make([]byte, headerSize)...), start: len(dst)}
}

// size is the size of the batch so far, in bytes.
func (b *batch) size() int { return len(b.b) - b.start }

func (b *batch) add(rec Record, level int16) {
	b.value = b.w.append(b.value[:0], rec, level)
	b.record(nil)
}

// record appends one record with b.value. A nil key is absent.
func (b *batch) record(key []byte) {
	h := append(b.head[:0], 0, 0) // attributes, timestamp delta
	h = binary.AppendVarint(h, int64(b.count))
	if key == nil {
		h = binary.AppendVarint(h, -1)
	} else {
		h = binary.AppendVarint(h, int64(len(key)))
		h = append(h, key...)
	}
	h = binary.AppendVarint(h, int64(len(b.value)))
	b.head = h
	b.b = binary.AppendVarint(b.b, int64(len(h)+len(b.value)+1))
	b.b = append(b.b, h...)
	b.b = append(b.b, b.value...)
	b.b = append(b.b, 0) // no headers
	b.count++
}

func (b *batch) finish(base model.Offset, epoch model.Epoch, timestamp model.Millis, attributes uint16) []byte {
	if b.count == 0 {
		panic("metalog: a batch needs a record")
	}
	h := b.b[b.start:]
	binary.BigEndian.PutUint64(h[0:], uint64(base))
	binary.BigEndian.PutUint32(h[8:], uint32(len(h)-lengthEnd))
	binary.BigEndian.PutUint32(h[12:], uint32(epoch))
	h[16] = 2
	binary.BigEndian.PutUint16(h[21:], attributes)
	binary.BigEndian.PutUint32(h[23:], uint32(b.count-1))
	binary.BigEndian.PutUint64(h[27:], uint64(timestamp))
	binary.BigEndian.PutUint64(h[35:], uint64(timestamp))
	for i := 43; i < 57; i++ {
		h[i] = 0xff // no producer id, epoch, sequence
	}
	binary.BigEndian.PutUint32(h[57:], uint32(b.count))
	binary.BigEndian.PutUint32(h[17:], checksum(h))
	return b.b
}

// DecodeBatches reads whole batches and hands each to fn, in order. A partial
// batch at the end is left out. It returns how many bytes the handed batches
// have, also when fn or a corrupt batch ends it with an error. Compressed
// batches are an error: no metadata log has them.
func DecodeBatches(b []byte, fn func(Batch) error) (int, error) {
	done := 0
	var d batchDecoder
	for {
		size, err := batchSize(b[done:])
		if err != nil || size == 0 {
			return done, err
		}
		batch, err := d.decode(b[done : done+size : done+size])
		if err == nil {
			err = fn(batch)
		}
		if err != nil {
			return done, err
		}
		done += size
	}
}

// batchSize returns the size of the batch at the start of b, 0 if it is not whole.
func batchSize(b []byte) (int, error) {
	if len(b) < lengthEnd {
		return 0, nil
	}
	n := int64(int32(binary.BigEndian.Uint32(b[8:]))) + lengthEnd
	if n < headerSize {
		return 0, fmt.Errorf("metadata batch at %d: %d bytes are too short", binary.BigEndian.Uint64(b), n)
	}
	if n > int64(len(b)) {
		return 0, nil
	}
	return int(n), nil
}

type batchDecoder struct{ r reader }

func (d *batchDecoder) decode(raw []byte) (Batch, error) {
	b := Batch{
		Base:      model.Offset(binary.BigEndian.Uint64(raw)),
		Epoch:     model.Epoch(binary.BigEndian.Uint32(raw[12:])),
		Timestamp: model.Millis(binary.BigEndian.Uint64(raw[35:])),
		Raw:       raw,
	}
	err := d.fill(&b)
	if err != nil {
		err = fmt.Errorf("metadata batch at %d: %w", b.Base, err)
	}
	return b, err
}

func (d *batchDecoder) fill(b *Batch) error {
	count, control, err := checkHeader(b.Raw)
	if err != nil {
		return err
	}
	b.End = b.Base + model.Offset(count)
	if control {
		b.Control = make([]Control, 0, count)
	} else {
		b.Records = make([]Record, 0, count)
	}
	rest := b.Raw[headerSize:]
	for i := range count {
		var key, value []byte
		if key, value, rest, err = splitRecord(rest, int64(i)); err != nil {
			return err
		}
		if err := d.record(b, control, key, value); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	if len(rest) > 0 {
		return errTrailing
	}
	return nil
}

func (d *batchDecoder) record(b *Batch, control bool, key, value []byte) error {
	if control {
		rec, _, err := decodeControl(key, value)
		b.Control = append(b.Control, rec)
		return err
	}
	if key != nil {
		return errors.New("a metadata record has a key")
	}
	rec, _, err := d.r.decode(value)
	b.Records = append(b.Records, rec)
	return err
}

// checkHeader returns the number of records, bounded by the size of the batch,
// and whether they are control records.
func checkHeader(raw []byte) (count int, control bool, err error) {
	if raw[16] != 2 {
		return 0, false, fmt.Errorf("magic %d is not 2", raw[16])
	}
	if checksum(raw) != binary.BigEndian.Uint32(raw[17:]) {
		return 0, false, errors.New("the checksum does not match")
	}
	attributes := binary.BigEndian.Uint16(raw[21:])
	if attributes&^attrControl != 0 {
		return 0, false, fmt.Errorf("attributes %#x are not allowed in the metadata log", attributes)
	}
	n := int64(int32(binary.BigEndian.Uint32(raw[57:])))
	if n < 1 || n > int64((len(raw)-headerSize)/minRecord) {
		return 0, false, fmt.Errorf("%d records do not fit its %d bytes", n, len(raw))
	}
	if int64(int32(binary.BigEndian.Uint32(raw[23:]))) != n-1 {
		return 0, false, errors.New("the last offset delta does not match the count")
	}
	return int(n), attributes&attrControl != 0, nil
}

// splitRecord reads the frame of the record with the offset delta at the start
// of b. A nil key is absent.
func splitRecord(b []byte, delta int64) (key, value, rest []byte, err error) {
	size, b := varint(b)
	if size < 1 || size > int64(len(b)) {
		return nil, nil, nil, errShort
	}
	rec, rest := b[:size], b[size:]
	if rec[0] != 0 {
		return nil, nil, nil, errors.New("a record has attributes")
	}
	stamp, rec := varint(rec[1:])
	gap, rec := varint(rec)
	if stamp != 0 || gap != delta {
		return nil, nil, nil, errors.New("a record has a timestamp delta or another offset than its place")
	}
	if key, rec, err = field(rec); err != nil {
		return nil, nil, nil, err
	}
	if value, rec, err = field(rec); err != nil {
		return nil, nil, nil, err
	}
	if len(rec) != 1 || rec[0] != 0 {
		return nil, nil, nil, errors.New("a record has headers or trailing bytes")
	}
	return key, value, rest, nil
}

// field reads a length and that many bytes; a length of -1 gives nil.
func field(b []byte) (value, rest []byte, err error) {
	n, b := varint(b)
	if n == -1 {
		return nil, b, nil
	}
	if n < 0 || n > int64(len(b)) {
		return nil, nil, errShort
	}
	return b[:n:n], b[n:], nil
}

// varint reads a zig-zag varint; a broken one gives a value that no caller takes.
func varint(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return -2, nil
	}
	return v, b[n:]
}

func checksum(raw []byte) uint32 { return crc32.Checksum(raw[crcStart:], castagnoli) }
