package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
)

// A segment is a header followed by frames (docs/format/quorum-wal.md):
//
//	header  magic "TIDEMWAL" | version u16 | sequence u64 | crc u32
//	frame   length u32 | crc u32 | durable u64 | kind u8 | body
//
// All integers are big-endian. length counts the bytes from durable on; crc is
// the CRC-32C of those bytes. durable is the size of the file that was known to
// be synced when the frame was written: a bad frame below the durable mark of a
// later one is damage, a bad frame above every mark is a torn tail.
const (
	magic          = "TIDEMWAL"
	formatVersion  = 1
	headerSize     = 8 + 2 + 8 + 4
	framePrefix    = 4 + 4
	frameMinLength = 8 + 1
	// maxFrame bounds a frame before memory is taken for it. Entries hold
	// batches of at most 8 MiB.
	maxFrame = 64 << 20
)

type kind uint8

const (
	kindEntry    kind = 1 // index u64 | term u64 | type u8 | data
	kindState    kind = 2 // term u64 | vote u64 | commit u64
	kindSnapshot kind = 3 // see appendSnapshot
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errBadFrame says that the bytes at a position are no frame.
var errBadFrame = errors.New("not a frame")

func appendHeader(dst []byte, sequence uint64) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.BigEndian.AppendUint16(dst, formatVersion)
	dst = binary.BigEndian.AppendUint64(dst, sequence)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func parseHeader(b []byte) (sequence uint64, err error) {
	if len(b) < headerSize || string(b[:8]) != magic {
		return 0, errors.New("no segment header")
	}
	if crc32.Checksum(b[:headerSize-4], castagnoli) != binary.BigEndian.Uint32(b[headerSize-4:]) {
		return 0, errors.New("segment header has a wrong checksum")
	}
	if v := binary.BigEndian.Uint16(b[8:]); v != formatVersion {
		return 0, fmt.Errorf("segment format %d is newer than this program, which knows %d", v, formatVersion)
	}
	return binary.BigEndian.Uint64(b[10:]), nil
}

// beginFrame appends the part of a frame before its body; endFrame completes it.
func beginFrame(dst []byte, k kind, durable uint64) ([]byte, int) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, durable)
	return append(dst, byte(k)), start
}

func endFrame(dst []byte, start int) []byte {
	body := dst[start+framePrefix:]
	binary.BigEndian.PutUint32(dst[start:], uint32(len(body)))
	binary.BigEndian.PutUint32(dst[start+4:], crc32.Checksum(body, castagnoli))
	return dst
}

func appendEntry(dst []byte, durable uint64, e *pb.Entry) []byte {
	dst, start := beginFrame(dst, kindEntry, durable)
	dst = binary.BigEndian.AppendUint64(dst, e.GetIndex())
	dst = binary.BigEndian.AppendUint64(dst, e.GetTerm())
	dst = append(dst, byte(e.GetType()))
	dst = append(dst, e.GetData()...)
	return endFrame(dst, start)
}

func appendState(dst []byte, durable uint64, hs *pb.HardState) []byte {
	dst, start := beginFrame(dst, kindState, durable)
	dst = binary.BigEndian.AppendUint64(dst, hs.GetTerm())
	dst = binary.BigEndian.AppendUint64(dst, hs.GetVote())
	dst = binary.BigEndian.AppendUint64(dst, hs.GetCommit())
	return endFrame(dst, start)
}

// appendSnapshot writes index u64 | term u64 | end i64 | epoch i32 | auto-leave
// u8 | four lists of node ids: voters, learners, outgoing voters, next learners;
// a list is a count u32 and the ids, u64 each.
func appendSnapshot(dst []byte, durable uint64, s quorum.Snapshot) []byte {
	dst, start := beginFrame(dst, kindSnapshot, durable)
	dst = binary.BigEndian.AppendUint64(dst, s.Index)
	dst = binary.BigEndian.AppendUint64(dst, s.Term)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.End))
	dst = binary.BigEndian.AppendUint32(dst, uint32(s.Epoch))
	auto := byte(0)
	if s.Conf.GetAutoLeave() {
		auto = 1
	}
	dst = append(dst, auto)
	for _, ids := range [][]uint64{s.Conf.GetVoters(), s.Conf.GetLearners(), s.Conf.GetVotersOutgoing(), s.Conf.GetLearnersNext()} {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(ids)))
		for _, id := range ids {
			dst = binary.BigEndian.AppendUint64(dst, id)
		}
	}
	return endFrame(dst, start)
}

// frame is one parsed frame; body aliases the bytes it was read from.
type frame struct {
	kind    kind
	durable uint64
	body    []byte
}

// nextFrame reads the frame at the start of b and returns the bytes it takes.
func nextFrame(b []byte) (frame, int, error) {
	if len(b) < framePrefix+frameMinLength {
		return frame{}, 0, errBadFrame
	}
	n := binary.BigEndian.Uint32(b)
	if n < frameMinLength || n > maxFrame || int64(n) > int64(len(b)-framePrefix) {
		return frame{}, 0, errBadFrame
	}
	body := b[framePrefix : framePrefix+int(n)]
	if k := kind(body[8]); k < kindEntry || k > kindSnapshot {
		return frame{}, 0, errBadFrame
	}
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[4:]) {
		return frame{}, 0, errBadFrame
	}
	return frame{kind: kind(body[8]), durable: binary.BigEndian.Uint64(body), body: body[frameMinLength:]},
		framePrefix + int(n), nil
}

func (f frame) entry() (*pb.Entry, error) {
	if len(f.body) < 17 {
		return nil, fmt.Errorf("an entry of %d bytes is too short", len(f.body))
	}
	typ := pb.EntryType(f.body[16])
	if _, ok := pb.EntryType_name[int32(typ)]; !ok {
		return nil, fmt.Errorf("unknown entry type %d", typ)
	}
	e := &pb.Entry{
		Index: new(binary.BigEndian.Uint64(f.body)),
		Term:  new(binary.BigEndian.Uint64(f.body[8:])),
		Type:  typ.Enum(),
	}
	if len(f.body) > 17 {
		e.Data = append([]byte(nil), f.body[17:]...)
	}
	return e, nil
}

func (f frame) state() (*pb.HardState, error) {
	if len(f.body) != 24 {
		return nil, fmt.Errorf("a hard state of %d bytes, not 24", len(f.body))
	}
	return &pb.HardState{
		Term:   new(binary.BigEndian.Uint64(f.body)),
		Vote:   new(binary.BigEndian.Uint64(f.body[8:])),
		Commit: new(binary.BigEndian.Uint64(f.body[16:])),
	}, nil
}

func (f frame) snapshot() (quorum.Snapshot, error) {
	b := f.body
	if len(b) < 29 {
		return quorum.Snapshot{}, fmt.Errorf("a snapshot marker of %d bytes is too short", len(b))
	}
	s := quorum.Snapshot{
		Point: quorum.Point{
			Index: binary.BigEndian.Uint64(b), Term: binary.BigEndian.Uint64(b[8:]),
			End:   model.Offset(binary.BigEndian.Uint64(b[16:])),
			Epoch: model.Epoch(binary.BigEndian.Uint32(b[24:])),
		},
		Conf: &pb.ConfState{AutoLeave: new(b[28] == 1)},
	}
	b = b[29:]
	for _, list := range []*[]uint64{&s.Conf.Voters, &s.Conf.Learners, &s.Conf.VotersOutgoing, &s.Conf.LearnersNext} {
		if len(b) < 4 {
			return quorum.Snapshot{}, errors.New("a snapshot marker ends within its configuration")
		}
		n := int(binary.BigEndian.Uint32(b))
		b = b[4:]
		if n > len(b)/8 {
			return quorum.Snapshot{}, errors.New("a snapshot marker ends within its configuration")
		}
		for i := range n {
			*list = append(*list, binary.BigEndian.Uint64(b[8*i:]))
		}
		b = b[8*n:]
	}
	return s, nil
}
