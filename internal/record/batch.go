package record

import (
	"encoding/binary"
	"hash/crc32"
	"iter"

	"github.com/tidemark-log/tidemark/internal/core/producers"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(batch []byte) uint32 { return crc32.Checksum(batch[crcFrom:], castagnoli) }

// seal computes the checksum anew and writes it into the batch.
func seal(batch []byte) uint32 {
	crc := checksum(batch)
	binary.BigEndian.PutUint32(batch[atCRC:], crc)
	return crc
}

// Valid reports whether batch is one whole v2 batch with the right checksum.
func Valid(batch []byte) bool {
	h, ok := ParseHeader(batch)
	return ok && h.Magic == Magic && h.Size() == len(batch) && h.CRC == checksum(batch)
}

// Split yields the whole v2 batches at the front of set, each with its header.
// The walk ends at a partial batch or at bytes that are no batch; checksums are
// not looked at. The number of bytes yielded tells whether something was left.
func Split(set []byte) iter.Seq2[Header, []byte] {
	return func(yield func(Header, []byte) bool) {
		for {
			h, ok := ParseHeader(set)
			if !ok || h.Magic != Magic || h.Size() > len(set) {
				return
			}
			if !yield(h, set[:h.Size():h.Size()]) {
				return
			}
			set = set[h.Size():]
		}
	}
}

// Types of control records: the second half of their key.
const (
	ControlAbort          = 0
	ControlCommit         = 1
	ControlLeaderChange   = 2
	ControlSnapshotHeader = 3
	ControlSnapshotFooter = 4
	ControlKRaftVersion   = 5
	ControlKRaftVoters    = 6
)

// ControlType reads the key of a control record: two int16, version and type.
// It is -1 for a key that is none.
func ControlType(key []byte) int16 {
	if len(key) < 4 || int16(binary.BigEndian.Uint16(key)) < 0 {
		return -1
	}
	return int16(binary.BigEndian.Uint16(key[2:]))
}

// ProducerOf is what a whole batch says about its producer. Of a control batch
// it reads the marker too; a control batch that ends no transaction comes out
// as one without a producer.
func ProducerOf(batch []byte) producers.Batch {
	h, ok := ParseHeader(batch)
	if !ok {
		return producers.Batch{ID: -1}
	}
	p := h.Producer()
	if !h.Control() {
		return p
	}
	marker := int16(-1)
	err := Records(batch, func(r *Record) bool {
		marker = ControlType(r.Key)
		if len(r.Value) >= 6 {
			p.CoordinatorEpoch = int32(binary.BigEndian.Uint32(r.Value[2:]))
		}
		return false
	})
	if err != nil || marker != ControlAbort && marker != ControlCommit {
		p.ID = -1
	}
	p.Commit = marker == ControlCommit
	return p
}
