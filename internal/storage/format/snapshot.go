package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// A producer snapshot (R8.6): version int16, CRC-32C uint32 of the bytes from 6
// on, count int32, then entries of snapshotEntry bytes.
const (
	snapshotHead  = 10
	snapshotEntry = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ParseSnapshot reads a producer snapshot file.
func ParseSnapshot(b []byte) ([]producers.Entry, error) {
	if len(b) < snapshotHead {
		return nil, errors.New("producer snapshot is cut short")
	}
	if v := binary.BigEndian.Uint16(b); v != 1 {
		return nil, fmt.Errorf("producer snapshot has version %d, not 1", v)
	}
	if binary.BigEndian.Uint32(b[2:]) != crc32.Checksum(b[6:], castagnoli) {
		return nil, errors.New("producer snapshot has a wrong checksum")
	}
	n := int64(int32(binary.BigEndian.Uint32(b[6:])))
	rest := b[snapshotHead:]
	if n < 0 || n*snapshotEntry != int64(len(rest)) {
		return nil, fmt.Errorf("producer snapshot of %d bytes cannot hold %d entries", len(b), n)
	}
	out := make([]producers.Entry, n)
	for i := range out {
		e := rest[i*snapshotEntry:]
		out[i] = producers.Entry{
			ID:               model.ProducerID(binary.BigEndian.Uint64(e)),
			Epoch:            int16(binary.BigEndian.Uint16(e[8:])),
			LastSequence:     int32(binary.BigEndian.Uint32(e[10:])),
			LastOffset:       model.Offset(binary.BigEndian.Uint64(e[14:])),
			OffsetDelta:      int32(binary.BigEndian.Uint32(e[22:])),
			Timestamp:        model.Millis(binary.BigEndian.Uint64(e[26:])),
			CoordinatorEpoch: int32(binary.BigEndian.Uint32(e[34:])),
			TxnFirst:         model.Offset(binary.BigEndian.Uint64(e[38:])),
		}
	}
	return out, nil
}

// Snapshot is the inverse of ParseSnapshot.
func Snapshot(entries []producers.Entry) []byte {
	b := make([]byte, snapshotHead, snapshotHead+len(entries)*snapshotEntry)
	binary.BigEndian.PutUint16(b, 1)
	binary.BigEndian.PutUint32(b[6:], uint32(len(entries)))
	for _, e := range entries {
		b = binary.BigEndian.AppendUint64(b, uint64(e.ID))
		b = binary.BigEndian.AppendUint16(b, uint16(e.Epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(e.LastSequence))
		b = binary.BigEndian.AppendUint64(b, uint64(e.LastOffset))
		b = binary.BigEndian.AppendUint32(b, uint32(e.OffsetDelta))
		b = binary.BigEndian.AppendUint64(b, uint64(e.Timestamp))
		b = binary.BigEndian.AppendUint32(b, uint32(e.CoordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(e.TxnFirst))
	}
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}
