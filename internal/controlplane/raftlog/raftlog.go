// Package raftlog keeps on disk what a controller has promised to raft: the truth
// that the metadata log is projected from.
//
// The log is append-only. An entry whose index is taken already replaces that
// entry and all behind it, so overwritten entries are truncated by what is
// appended. One call of Save is one group commit: one write, one sync. A
// snapshot begins a new segment, which holds all that is still needed and
// appears whole or not at all; older segments are then removed.
package raftlog

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const (
	suffix       = ".wal"
	tmpSuffix    = ".wal.tmp"
	segmentBytes = 16 << 20 // a segment takes no more frames once it is so large
	keepBuffer   = 1 << 20
	firstBytes   = 64 << 10 // a snapshot's frame is smaller
)

// ErrDamaged says that bytes which were durable once cannot be read back. The
// node must not go on: it may have voted, or acknowledged entries, in what is
// lost. Remove its metadata directory and let it rejoin.
var ErrDamaged = errors.New("the raft log is damaged")

// Log is an open raft log. It has one owner. After an error it is of no use: a
// failed sync is never retried.
type Log struct {
	fs       vfs.FS
	dir      string
	segments []uint64 // sequences of the files, ascending; the last is open
	file     vfs.File
	size     int64 // bytes written to the open segment
	durable  int64 // bytes of it that are known to be synced
	buf      []byte
	lazy     *pb.HardState // a commit index that nothing has made durable yet
	err      error
}

// Recovered is what a log held when it was opened.
type Recovered struct {
	State    *pb.HardState
	Snapshot quorum.Snapshot // the zero point: none
	Entries  []*pb.Entry     // behind the snapshot, without a gap
	Cut      int64           // bytes of a torn tail that were cut off
}

// Fresh reports whether nothing was ever saved.
func (r *Recovered) Fresh() bool {
	return r.Snapshot.Index == 0 && len(r.Entries) == 0 && r.State.GetTerm() == 0
}

// Open recovers the log in dir, which is made when missing. Errors: ErrDamaged,
// or those of the file system.
func Open(fs vfs.FS, dir string) (*Log, Recovered, error) {
	l := &Log{fs: fs, dir: dir}
	if err := vfs.MakeDurably(fs, dir); err != nil {
		return nil, Recovered{}, fmt.Errorf("make %s: %w", dir, err)
	}
	// A process that was killed may have left names that only the cache knows,
	// that of a segment which replaces the others among them.
	if err := fs.SyncDir(dir); err != nil {
		return nil, Recovered{}, fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := l.list(); err != nil {
		return nil, Recovered{}, err
	}
	var rec Recovered
	for i, seq := range l.segments {
		if err := l.recover(&rec, seq, i == len(l.segments)-1); err != nil {
			return nil, Recovered{}, fmt.Errorf("recover %s: %w", l.path(seq), err)
		}
	}
	if l.file == nil {
		next := uint64(1)
		if n := len(l.segments); n > 0 {
			next = l.segments[n-1] + 1
		}
		if err := l.create(next); err != nil {
			return nil, Recovered{}, err
		}
	}
	return l, rec, nil
}

func (l *Log) path(seq uint64) string { return path.Join(l.dir, fmt.Sprintf("%020d%s", seq, suffix)) }

// list finds the segments and removes what an interrupted snapshot left.
func (l *Log) list() error {
	infos, err := l.fs.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", l.dir, err)
	}
	for _, info := range infos {
		if strings.HasSuffix(info.Name, tmpSuffix) {
			if err := l.fs.Remove(path.Join(l.dir, info.Name)); err != nil {
				return fmt.Errorf("remove %s: %w", info.Name, err)
			}
			continue
		}
		name, ok := strings.CutSuffix(info.Name, suffix)
		if seq, err := strconv.ParseUint(name, 10, 64); ok && err == nil {
			l.segments = append(l.segments, seq)
		}
	}
	slices.Sort(l.segments)
	if err := l.dropOld(); err != nil {
		return err
	}
	for i := 1; i < len(l.segments); i++ {
		if l.segments[i] != l.segments[i-1]+1 {
			return fmt.Errorf("%w: no segment between %d and %d in %s", ErrDamaged, l.segments[i-1], l.segments[i], l.dir)
		}
	}
	return nil
}

// dropOld removes the segments ahead of the newest that begins with a snapshot: it
// is whole, and a power cut may have kept any of those that it replaces.
func (l *Log) dropOld() error {
	for i := len(l.segments) - 1; i > 0; i-- {
		begins, err := l.begins(l.segments[i])
		if err != nil {
			return err
		}
		if !begins {
			continue
		}
		for range i {
			if err := l.fs.Remove(l.path(l.segments[0])); err != nil {
				return fmt.Errorf("remove segment %d: %w", l.segments[0], err)
			}
			l.segments = l.segments[1:]
		}
		return nil
	}
	return nil
}

// begins reports whether a segment needs none before it.
func (l *Log) begins(seq uint64) (bool, error) {
	f, err := l.fs.Open(l.path(seq))
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, firstBytes)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the first frame of segment %d: %w", seq, err)
	}
	if got, err := parseHeader(b[:n]); err != nil || got != seq {
		return false, nil //nolint:nilerr // recovery judges it
	}
	first, _, err := nextFrame(b[headerSize:n])
	return err == nil && first.kind == kindSnapshot, nil
}

// recover reads one segment into rec. The last one may have a torn tail, which
// is cut off, and stays open.
func (l *Log) recover(rec *Recovered, seq uint64, last bool) error {
	f, data, err := l.read(seq)
	if err != nil {
		return err
	}
	if got, err := parseHeader(data); err != nil || got != seq {
		f.Close()
		if err == nil {
			err = fmt.Errorf("the header says segment %d", got)
		}
		if last && len(data) <= headerSize { // it was being created
			l.segments = l.segments[:len(l.segments)-1]
			return l.fs.Remove(l.path(seq))
		}
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	at, err := rec.replay(data)
	if err == nil && at < len(data) && (!last || durableBeyond(data, at)) {
		err = fmt.Errorf("%w: no frame at byte %d of %d", ErrDamaged, at, len(data))
	}
	if err != nil || !last {
		f.Close()
		return err
	}
	rec.Cut = int64(len(data) - at)
	if rec.Cut > 0 {
		err = f.Truncate(int64(at))
	}
	if err == nil {
		err = f.Sync() // the process, not the machine, may have ended before
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("cut off the torn tail: %w", err)
	}
	l.file, l.size, l.durable = f, int64(at), int64(at)
	return nil
}

func (l *Log) read(seq uint64) (vfs.File, []byte, error) {
	f, err := l.fs.Open(l.path(seq))
	if err != nil {
		return nil, nil, err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); n < len(data) {
		f.Close()
		return nil, nil, fmt.Errorf("read %d bytes: %w", size, err)
	}
	return f, data, nil
}

// replay folds the frames of a segment into rec and returns where they end.
func (rec *Recovered) replay(data []byte) (int, error) {
	at := headerSize
	for at < len(data) {
		f, n, err := nextFrame(data[at:])
		if err != nil {
			return at, nil
		}
		if err := rec.fold(f); err != nil {
			return at, fmt.Errorf("%w: frame at byte %d: %w", ErrDamaged, at, err)
		}
		at += n
	}
	return at, nil
}

func (rec *Recovered) fold(f frame) error {
	switch f.kind {
	case kindState:
		hs, err := f.state()
		if err != nil {
			return err
		}
		rec.State = hs
	case kindSnapshot:
		s, err := f.snapshot()
		if err != nil {
			return err
		}
		rec.Snapshot, rec.Entries = s, nil
	case kindEntry:
		e, err := f.entry()
		if err != nil {
			return err
		}
		return rec.put(e)
	}
	return nil
}

func (rec *Recovered) put(e *pb.Entry) error {
	first := rec.Snapshot.Index + 1
	if e.GetIndex() < first {
		return nil
	}
	at := e.GetIndex() - first
	if at > uint64(len(rec.Entries)) {
		return fmt.Errorf("entry %d leaves a gap after entry %d", e.GetIndex(), first+uint64(len(rec.Entries))-1)
	}
	rec.Entries = append(rec.Entries[:at], e)
	return nil
}

// durableBeyond looks behind a bad frame for a good one that was written when
// the bad one had been synced: then the tail is not torn but damaged.
func durableBeyond(data []byte, bad int) bool {
	for at := bad + 1; at+framePrefix+frameMinLength <= len(data); at++ {
		if f, _, err := nextFrame(data[at:]); err == nil && f.durable > uint64(bad) && f.durable <= uint64(at) {
			return true
		}
	}
	return false
}

// create begins a segment and makes its name durable.
func (l *Log) create(seq uint64) error {
	f, err := l.fs.Create(l.path(seq))
	if err != nil {
		return fmt.Errorf("create %s: %w", l.path(seq), err)
	}
	if err := l.begin(f, appendHeader(nil, seq)); err != nil {
		f.Close()
		return fmt.Errorf("begin %s: %w", l.path(seq), err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		f.Close()
		return fmt.Errorf("sync %s: %w", l.dir, err)
	}
	l.open(f, seq, headerSize)
	return nil
}

func (l *Log) begin(f vfs.File, data []byte) error {
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Sync()
}

func (l *Log) open(f vfs.File, seq uint64, size int64) {
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.size, l.durable = f, size, size
	l.segments = append(l.segments, seq)
}

// Save appends entries and a hard state, either of which may be missing. With
// sync they are durable when it returns. A hard state without entries and
// without sync differs in its commit index only, which may be lost: it waits for
// the next write.
func (l *Log) Save(state *pb.HardState, entries []*pb.Entry, sync bool) error {
	if l.err != nil {
		return l.err
	}
	if state == nil {
		state = l.lazy
	}
	if len(entries) == 0 && !sync {
		l.lazy = state
		return nil
	}
	if l.err = l.save(state, entries, sync); l.err != nil {
		l.err = fmt.Errorf("write %s: %w", l.path(l.segments[len(l.segments)-1]), l.err)
	}
	return l.err
}

func (l *Log) save(state *pb.HardState, entries []*pb.Entry, sync bool) error {
	if l.size >= segmentBytes && l.size == l.durable {
		if err := l.create(l.segments[len(l.segments)-1] + 1); err != nil {
			return err
		}
	}
	buf := l.buf[:0]
	for _, e := range entries {
		buf = appendEntry(buf, uint64(l.durable), e)
	}
	if state != nil {
		buf = appendState(buf, uint64(l.durable), state)
	}
	if _, err := l.file.WriteAt(buf, l.size); err != nil {
		return err
	}
	l.size += int64(len(buf))
	l.lazy = nil
	if l.buf = buf; cap(buf) > keepBuffer {
		l.buf = nil
	}
	if !sync {
		return nil
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.durable = l.size
	return nil
}

// Compact makes s the beginning of the log: a new segment holds s, the hard
// state and the entries behind s, and the older segments are removed. The
// checkpoint file that s names must be durable. When s came from a leader and
// does not continue this log, entries is empty.
func (l *Log) Compact(s quorum.Snapshot, state *pb.HardState, entries []*pb.Entry) error {
	if l.err != nil {
		return l.err
	}
	if l.err = l.compact(s, state, entries); l.err != nil {
		l.err = fmt.Errorf("compact the raft log at entry %d: %w", s.Index, l.err)
	}
	return l.err
}

func (l *Log) compact(s quorum.Snapshot, state *pb.HardState, entries []*pb.Entry) error {
	old := l.segments
	seq := old[len(old)-1] + 1
	data := appendSnapshot(appendHeader(nil, seq), headerSize, s)
	data = appendState(data, headerSize, state)
	for _, e := range entries {
		data = appendEntry(data, headerSize, e)
	}
	tmp := path.Join(l.dir, fmt.Sprintf("%020d%s", seq, tmpSuffix))
	f, err := l.fs.Create(tmp)
	if err != nil {
		return err
	}
	err = l.begin(f, data)
	if err == nil {
		err = l.fs.Rename(tmp, l.path(seq))
	}
	if err == nil {
		err = l.fs.SyncDir(l.dir)
	}
	if err != nil {
		f.Close()
		return err
	}
	l.open(f, seq, int64(len(data)))
	l.lazy = nil
	for _, seq := range old {
		if err := l.fs.Remove(l.path(seq)); err != nil {
			return err
		}
		l.segments = l.segments[1:]
	}
	return nil
}

// Bytes is the size of the open segment.
func (l *Log) Bytes() int64 { return l.size }

// Close makes the last commit index durable and closes the log.
func (l *Log) Close() error {
	var err error
	if l.err == nil && (l.lazy != nil || l.size > l.durable) {
		err = l.Save(l.lazy, nil, true)
	}
	return errors.Join(err, l.file.Close())
}
