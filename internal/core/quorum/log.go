// Package quorum makes Kafka's metadata log out of a raft log.
//
// One raft entry holds whole v2 batches that carry their final offsets and
// epoch, so the entries, read one after the other, are the log of
// __cluster_metadata-0. The leader stamps them before it proposes: raft appends
// at the end of the leader's own log at once, so the offset after the last entry
// of that log, committed or not, is the offset of the next record on every
// replica that will ever apply it. Empty entries and membership changes take no
// offset. Apply checks each stamp against the running offset.
//
// The package is pure. Its one randomness is raft's own election jitter.
package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Point is a place in the log in both of its numberings.
type Point struct {
	// Index and Term are those of the last entry before the place.
	Index, Term uint64
	// End is the Kafka offset after that entry, Epoch the epoch of the last
	// record before End; 0 when there is none.
	End   model.Offset
	Epoch model.Epoch
}

// Snapshot stands in for the entries up to its point: a checkpoint file with the
// id (End, Epoch) and the configuration in force there.
type Snapshot struct {
	Point
	Conf *pb.ConfState
}

// Log is what raft reads of the log: the entries since about the last snapshot,
// each with the Kafka offset after it. It implements raft.Storage. The shell
// appends only what its write-ahead log has made durable.
type Log struct {
	state *pb.HardState
	snap  Snapshot
	// before is the point ahead of the first retained entry; it may lie before
	// the snapshot, so that a follower that lags a little needs none.
	before  Point
	entries []*pb.Entry
	points  []Point // the point after each entry
	bytes   int64   // of the entries' data
}

var _ raft.Storage = (*Log)(nil)

// NewLog starts a log at a snapshot; the zero point is an empty log, whose Conf
// then names the first voters.
func NewLog(state *pb.HardState, snap Snapshot) *Log {
	l := &Log{state: state, snap: snap, before: snap.Point}
	if state == nil {
		l.state = &pb.HardState{}
	}
	if l.state.GetCommit() < snap.Index {
		l.state = &pb.HardState{Term: new(max(l.state.GetTerm(), snap.Term)), Vote: new(l.state.GetVote()), Commit: new(snap.Index)}
	}
	return l
}

// InitialState implements raft.Storage.
func (l *Log) InitialState() (*pb.HardState, *pb.ConfState, error) { return l.state, l.snap.Conf, nil }

// FirstIndex implements raft.Storage.
func (l *Log) FirstIndex() (uint64, error) { return l.before.Index + 1, nil }

// LastIndex implements raft.Storage.
func (l *Log) LastIndex() (uint64, error) { return l.before.Index + uint64(len(l.entries)), nil }

// Term implements raft.Storage.
func (l *Log) Term(i uint64) (uint64, error) {
	p, err := l.point(i)
	return p.Term, err
}

func (l *Log) point(i uint64) (Point, error) {
	switch {
	case i < l.before.Index:
		return Point{}, raft.ErrCompacted
	case i == l.before.Index:
		return l.before, nil
	case i-l.before.Index > uint64(len(l.points)):
		return Point{}, raft.ErrUnavailable
	}
	return l.points[i-l.before.Index-1], nil
}

// Entries implements raft.Storage.
func (l *Log) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	if lo <= l.before.Index {
		return nil, raft.ErrCompacted
	}
	first := l.before.Index + 1
	if hi < lo || hi-first > uint64(len(l.entries)) {
		return nil, raft.ErrUnavailable
	}
	out := l.entries[lo-first : hi-first]
	size := uint64(0)
	for i, e := range out {
		if size += entrySize(e); size > maxSize && i > 0 {
			out = out[:i]
			break
		}
	}
	return out[:len(out):len(out)], nil
}

// entrySize is about what an entry takes in a message.
func entrySize(e *pb.Entry) uint64 { return uint64(len(e.GetData())) + 24 }

// Snapshot implements raft.Storage. The data names the checkpoint only; the
// file itself travels by FetchSnapshot.
func (l *Log) Snapshot() (*pb.Snapshot, error) {
	if l.snap.Index == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return EncodeSnapshot(l.snap), nil
}

// EncodeSnapshot gives the form in which a snapshot travels between controllers.
func EncodeSnapshot(s Snapshot) *pb.Snapshot {
	data := binary.BigEndian.AppendUint64(nil, uint64(s.End))
	data = binary.BigEndian.AppendUint32(data, uint32(s.Epoch))
	return &pb.Snapshot{
		Data:     data,
		Metadata: &pb.SnapshotMetadata{Index: new(s.Index), Term: new(s.Term), ConfState: s.Conf},
	}
}

// DecodeSnapshot reads what EncodeSnapshot wrote.
func DecodeSnapshot(s *pb.Snapshot) (Snapshot, error) {
	data := s.GetData()
	if len(data) != 12 {
		return Snapshot{}, fmt.Errorf("a snapshot descriptor of %d bytes, not 12", len(data))
	}
	out := Snapshot{
		Point: Point{
			Index: s.GetMetadata().GetIndex(), Term: s.GetMetadata().GetTerm(),
			End:   model.Offset(binary.BigEndian.Uint64(data)),
			Epoch: model.Epoch(binary.BigEndian.Uint32(data[8:])),
		},
		Conf: s.GetMetadata().GetConfState(),
	}
	if out.Index == 0 || out.End < 0 || out.Epoch < 0 || len(out.Conf.GetVoters()) == 0 {
		return Snapshot{}, errors.New("a snapshot descriptor names no point of the log")
	}
	return out, nil
}

// Append adds durable entries. An entry at or before the end replaces the rest
// of the log (raft does so only with what was never committed). It fails when an
// entry leaves a gap or does not hold whole batches.
func (l *Log) Append(entries []*pb.Entry) error {
	for _, e := range entries {
		if err := l.append(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) append(e *pb.Entry) error {
	i := e.GetIndex()
	if i <= l.before.Index {
		return nil // compacted, hence applied
	}
	at := i - l.before.Index - 1
	if at > uint64(len(l.entries)) {
		last, _ := l.LastIndex()
		return fmt.Errorf("entry %d leaves a gap after entry %d", i, last)
	}
	for _, old := range l.entries[at:] {
		l.bytes -= int64(len(old.GetData()))
	}
	// Slices that raft still holds must not change under it: append copies.
	l.entries = l.entries[:at:at]
	l.points = l.points[:at]
	prev := l.last()
	next, err := after(prev, e)
	if err != nil {
		return err
	}
	l.entries = append(l.entries, e)
	l.points = append(l.points, next)
	l.bytes += int64(len(e.GetData()))
	return nil
}

func (l *Log) last() Point {
	if n := len(l.points); n > 0 {
		return l.points[n-1]
	}
	return l.before
}

// End returns the offset after the last entry, committed or not.
func (l *Log) End() model.Offset { return l.last().End }

// Bytes returns the size of the retained entries' data.
func (l *Log) Bytes() int64 { return l.bytes }

// SetState notes the durable hard state.
func (l *Log) SetState(hs *pb.HardState) { l.state = hs }

// State returns the durable hard state.
func (l *Log) State() *pb.HardState { return l.state }

// LastSnapshot returns the snapshot that the log begins with or was compacted to.
func (l *Log) LastSnapshot() Snapshot { return l.snap }

// After returns the entries behind a point's index; nil when they are not all
// retained.
func (l *Log) After(index uint64) []*pb.Entry {
	if index < l.before.Index || index-l.before.Index > uint64(len(l.entries)) {
		return nil
	}
	return l.entries[index-l.before.Index:]
}

// Compact makes s the snapshot of the log. Entries before it stay while their
// data takes no more than keepBytes, for followers that lag a little.
func (l *Log) Compact(s Snapshot, keepBytes int64) {
	if s.Index <= l.snap.Index {
		return
	}
	l.snap = s
	behind := s.Index - l.before.Index
	if behind > uint64(len(l.entries)) {
		l.Reset(s)
		return
	}
	kept, cut := int64(0), behind
	for cut > 0 {
		if kept += int64(len(l.entries[cut-1].GetData())); kept > keepBytes {
			break
		}
		cut--
	}
	if cut == 0 {
		return
	}
	for _, e := range l.entries[:cut] {
		l.bytes -= int64(len(e.GetData()))
	}
	l.before = l.points[cut-1]
	l.entries = append([]*pb.Entry(nil), l.entries[cut:]...)
	l.points = append([]Point(nil), l.points[cut:]...)
}

// Reset drops every entry: the log begins at s.
func (l *Log) Reset(s Snapshot) {
	*l = Log{state: l.state, snap: s, before: s.Point}
}

// after returns the point behind entry e that follows p, checking the stamps.
func after(p Point, e *pb.Entry) (Point, error) {
	next := Point{Index: e.GetIndex(), Term: e.GetTerm(), End: p.End, Epoch: p.Epoch}
	if next.Index != p.Index+1 || next.Term < p.Term {
		return p, fmt.Errorf("entry %d of term %d does not follow entry %d of term %d", next.Index, next.Term, p.Index, p.Term)
	}
	if e.GetType() != pb.EntryNormal {
		return next, nil
	}
	for rest := e.GetData(); len(rest) > 0; {
		b, n, err := parseBatch(rest)
		if err != nil {
			return p, fmt.Errorf("entry %d: %w", next.Index, err)
		}
		if b.base != next.End || uint64(b.epoch) != next.Term {
			return p, fmt.Errorf("entry %d of term %d: batch stamped with offset %d, epoch %d where offset %d was due",
				next.Index, next.Term, b.base, b.epoch, next.End)
		}
		next.End, next.Epoch = b.end, b.epoch
		rest = rest[n:]
	}
	return next, nil
}

// batch is what the stamp of a v2 batch says.
type batch struct {
	base, end model.Offset
	epoch     model.Epoch
}

// Places in the header of a v2 batch (R8.2).
const (
	batchHeader    = 61
	atLength       = 8
	atEpoch        = 12
	atMagic        = 16
	atLastDelta    = 23
	beforeLength   = 12 // bytes that the length does not count
	magicV2        = 2
	maxBatchOffset = 1 << 30
)

func parseBatch(b []byte) (batch, int, error) {
	if len(b) < batchHeader {
		return batch{}, 0, errors.New("data ends within a batch header")
	}
	size := int64(int32(binary.BigEndian.Uint32(b[atLength:]))) + beforeLength
	if size < batchHeader || size > int64(len(b)) {
		return batch{}, 0, fmt.Errorf("batch of %d bytes in %d bytes of data", size, len(b))
	}
	if b[atMagic] != magicV2 {
		return batch{}, 0, fmt.Errorf("batch of magic %d", b[atMagic])
	}
	base := int64(binary.BigEndian.Uint64(b))
	delta := int64(int32(binary.BigEndian.Uint32(b[atLastDelta:])))
	epoch := int32(binary.BigEndian.Uint32(b[atEpoch:]))
	if base < 0 || delta < 0 || delta > maxBatchOffset || base > 1<<62 || epoch < 0 {
		return batch{}, 0, fmt.Errorf("batch with base offset %d, last delta %d, epoch %d", base, delta, epoch)
	}
	return batch{base: model.Offset(base), end: model.Offset(base + delta + 1), epoch: model.Epoch(epoch)}, int(size), nil
}
