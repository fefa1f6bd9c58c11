package raftlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const dir = "/wal"

func entry(index, term uint64, data string) *pb.Entry {
	e := &pb.Entry{Index: new(index), Term: new(term), Type: pb.EntryNormal.Enum()}
	if data != "" {
		e.Data = []byte(data)
	}
	return e
}

func state(term, vote, commit uint64) *pb.HardState {
	return &pb.HardState{Term: new(term), Vote: new(vote), Commit: new(commit)}
}

func open(t *testing.T, fs vfs.FS) (*Log, Recovered) {
	t.Helper()
	l, rec, err := Open(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.file.Close() })
	return l, rec
}

func save(t *testing.T, l *Log, hs *pb.HardState, entries ...*pb.Entry) {
	t.Helper()
	if err := l.Save(hs, entries, true); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want Recovered) {
	t.Helper()
	if d := cmp.Diff(want, got, protocmp.Transform(), cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Cut" }, cmp.Ignore())); d != "" {
		t.Fatalf("recovered (-want +got):\n%s", d)
	}
}

func TestWhatWasSavedIsRecovered(t *testing.T) {
	fs := vfs.NewMem()
	l, rec := open(t, fs)
	if !rec.Fresh() {
		t.Fatal("a new log is not fresh")
	}
	want := []*pb.Entry{entry(1, 1, ""), entry(2, 1, "a"), entry(3, 1, "bc")}
	save(t, l, state(1, 2, 0), want[0])
	save(t, l, nil, want[1:]...)
	save(t, l, state(1, 2, 3))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, rec = open(t, fs)
	same(t, rec, Recovered{State: state(1, 2, 3), Entries: want})
	if rec.Fresh() {
		t.Fatal("the log is fresh after it was written")
	}
}

func TestAnEntryReplacesWhatWasAtItsIndexAndBehind(t *testing.T) {
	fs := vfs.NewMem()
	l, _ := open(t, fs)
	save(t, l, state(1, 1, 0), entry(1, 1, "a"), entry(2, 1, "b"), entry(3, 1, "c"))
	save(t, l, state(2, 3, 1), entry(2, 2, "B"))
	_, rec := open(t, fs)
	same(t, rec, Recovered{State: state(2, 3, 1), Entries: []*pb.Entry{entry(1, 1, "a"), entry(2, 2, "B")}})
}

func TestACommitIndexAloneIsNotSyncedButSurvivesAClose(t *testing.T) {
	fs := vfs.NewMem()
	l, _ := open(t, fs)
	save(t, l, state(1, 1, 0), entry(1, 1, "a"))
	before := l.size
	if err := l.Save(state(1, 1, 1), nil, false); err != nil {
		t.Fatal(err)
	}
	if l.size != before {
		t.Fatal("a commit index was written at once")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, rec := open(t, fs)
	same(t, rec, Recovered{State: state(1, 1, 1), Entries: []*pb.Entry{entry(1, 1, "a")}})
}

// prefix is a disk whose only segment holds the first n bytes of data.
func prefix(t *testing.T, data []byte, n int) *vfs.Mem {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(path.Join(dir, fmt.Sprintf("%020d%s", 1, suffix)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data[:n], 0); err != nil {
		t.Fatal(err)
	}
	return fs
}

// segment returns the bytes of a log that saved each of the groups.
func segment(t *testing.T, groups [][]*pb.Entry) (data []byte, ends []int) {
	t.Helper()
	fs := vfs.NewMem()
	l, _ := open(t, fs)
	for i, g := range groups {
		save(t, l, state(1, 1, uint64(i)), g...)
		ends = append(ends, int(l.size))
	}
	f, data, err := l.read(1)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return data, ends
}

func TestEveryPrefixOfATornTailIsRecovered(t *testing.T) {
	groups := [][]*pb.Entry{
		{entry(1, 1, "first"), entry(2, 1, "second")},
		{entry(3, 1, "third")},
		{entry(4, 1, "fourth"), entry(5, 1, ""), entry(6, 1, "sixth")},
	}
	data, ends := segment(t, groups)
	for n := headerSize; n <= len(data); n++ {
		fs := prefix(t, data, n)
		l, rec := open(t, fs)
		whole := 0 // entries in groups that fit into n bytes
		for i, end := range ends {
			if end <= n {
				whole += len(groups[i])
			}
		}
		if len(rec.Entries) < whole {
			t.Fatalf("%d bytes: %d entries, %d were synced", n, len(rec.Entries), whole)
		}
		for i, e := range rec.Entries {
			if e.GetIndex() != uint64(i+1) {
				t.Fatalf("%d bytes: entry %d has index %d", n, i, e.GetIndex())
			}
		}
		next := uint64(len(rec.Entries) + 1)
		save(t, l, nil, entry(next, 2, "after"))
		_, again := open(t, fs)
		if k := len(again.Entries); k != len(rec.Entries)+1 || again.Cut != 0 {
			t.Fatalf("%d bytes: %d entries after one more, %d bytes cut", n, k, again.Cut)
		}
	}
}

func TestASegmentThatWasBeingCreatedIsNoDamage(t *testing.T) {
	data, _ := segment(t, [][]*pb.Entry{{entry(1, 1, "a")}})
	for n := range headerSize {
		_, rec := open(t, prefix(t, data, n))
		if !rec.Fresh() {
			t.Fatalf("%d bytes of a header hold something", n)
		}
	}
}

func TestDamageBelowTheDurableMarkIsNotTakenForATornTail(t *testing.T) {
	groups := [][]*pb.Entry{{entry(1, 1, "first")}, {entry(2, 1, "second")}, {entry(3, 1, "third")}}
	data, ends := segment(t, groups)
	for at := headerSize; at < len(data); at++ {
		broken := append([]byte(nil), data...)
		broken[at] ^= 0x40
		_, rec, err := Open(prefix(t, broken, len(broken)), dir)
		synced := at < ends[len(ends)-2] // a later group says that it was synced
		if synced != errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d of %d flipped (groups end at %v): %v, %d entries", at, len(data), ends, err, len(rec.Entries))
		}
	}
}

func TestASnapshotReplacesWhatLiesBeforeIt(t *testing.T) {
	fs := vfs.NewMem()
	l, _ := open(t, fs)
	for i := uint64(1); i <= 9; i++ {
		save(t, l, state(1, 1, i-1), entry(i, 1, "x"))
	}
	snap := quorum.Snapshot{Point: quorum.Point{Index: 7, Term: 1, End: 70, Epoch: 1}, Conf: &pb.ConfState{
		Voters: []uint64{1, 2, 3}, Learners: []uint64{4}, AutoLeave: new(true),
	}}
	rest := []*pb.Entry{entry(8, 1, "x"), entry(9, 1, "x")}
	if err := l.Compact(snap, state(1, 1, 9), rest); err != nil {
		t.Fatal(err)
	}
	save(t, l, nil, entry(10, 1, "y"))
	if len(l.segments) != 1 {
		t.Fatalf("segments %v are left", l.segments)
	}
	_, rec := open(t, fs)
	same(t, rec, Recovered{State: state(1, 1, 9), Snapshot: snap, Entries: append(rest, entry(10, 1, "y"))})
}

// copyOf keeps a file's bytes; put back, it is as if its removal had been lost.
func copyOf(t *testing.T, fs vfs.FS, name string) (putBack func()) {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	size, _ := f.Size()
	data := make([]byte, size)
	f.ReadAt(data, 0)
	f.Close()
	return func() {
		f, err := fs.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt(data, 0)
		f.Close()
	}
}

func TestSegmentsThatAPowerCutBringsBackAreNoDamage(t *testing.T) {
	fs := vfs.NewMem()
	l, _ := open(t, fs)
	save(t, l, state(1, 1, 0), entry(1, 1, "x"))
	first := copyOf(t, fs, l.path(1))
	if err := l.create(2); err != nil {
		t.Fatal(err)
	}
	snap := quorum.Snapshot{Point: quorum.Point{Index: 1, Term: 1, End: 10, Epoch: 1}, Conf: &pb.ConfState{Voters: []uint64{1}, AutoLeave: new(false)}}
	if err := l.Compact(snap, state(1, 1, 1), nil); err != nil {
		t.Fatal(err)
	}
	first() // and segment 2 is gone
	_, rec := open(t, fs)
	if rec.Snapshot.Index != 1 || rec.State.GetCommit() != 1 {
		t.Fatalf("recovered %+v", rec)
	}
	save(t, l, state(1, 1, 1), entry(2, 1, "y"))
	if err := l.create(4); err != nil {
		t.Fatal(err)
	}
	if err := l.create(6); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(fs, dir); !errors.Is(err, ErrDamaged) {
		t.Fatalf("a gap behind what begins the log is damage, not %v", err)
	}
}

// written is what a log must hold: what it was told durably, and what it may hold
// besides, for nobody was told that it is lost.
type written struct {
	snap    quorum.Snapshot
	entries []*pb.Entry // all that were written
	term    uint64
}

func TestACrashAtAnyOperationLosesNothingThatWasSynced(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		disk := vfs.NewMem()
		stop := errors.New("power is gone")
		left := rng.IntN(120)
		fs := vfs.Faulty(disk, func(op vfs.Op) error {
			if op.Kind == "read" || op.Kind == "open" {
				return nil
			}
			if left--; left < 0 {
				return stop
			}
			return nil
		})
		m := crashRun(t, rng, fs, stop)
		after := disk.CrashClone(vfs.CrashOptions{Rand: rng})
		l, rec, err := Open(after, dir)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		l.file.Close()
		if err := m.check(rec); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// crashRun writes until the disk stops and returns what was durable then.
func crashRun(t *testing.T, rng *rand.Rand, fs vfs.FS, stop error) written {
	t.Helper()
	var m written
	l, _, err := Open(fs, dir)
	for err == nil {
		next := m.snap.Index + uint64(len(m.entries)) + 1
		if n := uint64(len(m.entries)); n > 3 && rng.IntN(6) == 0 {
			// Compact in the middle of what is durable.
			at := m.snap.Index + 1 + rng.Uint64N(n-1)
			snap := quorum.Snapshot{Point: quorum.Point{Index: at, Term: m.term, End: 1, Epoch: 1}, Conf: &pb.ConfState{Voters: []uint64{1}}}
			rest := m.entries[at-m.snap.Index:]
			if err = l.Compact(snap, state(m.term, 1, at), rest); err == nil {
				m.snap, m.entries = snap, rest
			}
			continue
		}
		if n := uint64(len(m.entries)); n > 1 && rng.IntN(5) == 0 {
			next -= rng.Uint64N(n) // overwrite
			m.term++
		}
		m.term = max(m.term, 1)
		group := []*pb.Entry{}
		for i := range uint64(1 + rng.IntN(3)) {
			group = append(group, entry(next+i, m.term, fmt.Sprint("entry ", next+i, " of ", m.term)))
		}
		if err = l.Save(state(m.term, 1, 0), group, true); err == nil {
			m.entries = append(m.entries[:next-m.snap.Index-1:next-m.snap.Index-1], group...)
		}
	}
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if l != nil {
		l.file.Close()
	}
	return m
}

func (m written) check(rec Recovered) error {
	if rec.Snapshot.Index < m.snap.Index {
		return fmt.Errorf("snapshot at %d, %d was durable", rec.Snapshot.Index, m.snap.Index)
	}
	last := rec.Snapshot.Index + uint64(len(rec.Entries))
	for _, want := range m.entries {
		i := want.GetIndex()
		if i <= rec.Snapshot.Index {
			continue
		}
		if i > last {
			return fmt.Errorf("entry %d is lost, the log ends at %d", i, last)
		}
		got := rec.Entries[i-rec.Snapshot.Index-1]
		if got.GetTerm() > m.term || got.GetTerm() == want.GetTerm() && string(got.GetData()) != string(want.GetData()) || got.GetTerm() < want.GetTerm() {
			return fmt.Errorf("entry %d is %q of term %d, not %q of term %d", i, got.GetData(), got.GetTerm(), want.GetData(), want.GetTerm())
		}
		if got.GetTerm() > want.GetTerm() {
			return nil // the overwriting that was under way got through
		}
	}
	return nil
}

func TestWhatACompactionLeftOfItsOldSegmentsIsDropped(t *testing.T) {
	snap := quorum.Snapshot{Point: quorum.Point{Index: 2, Term: 1, End: 2, Epoch: 1}, Conf: &pb.ConfState{Voters: []uint64{1}}}
	fs := vfs.NewMem()
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	for seq, data := range map[uint64][]byte{
		2: appendEntry(appendHeader(nil, 2), headerSize, entry(2, 1, "needs segment 1")),
		3: appendState(appendSnapshot(appendHeader(nil, 3), headerSize, snap), headerSize, state(1, 1, 2)),
	} {
		f, err := fs.Create(path.Join(dir, fmt.Sprintf("%020d%s", seq, suffix)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(data, 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	l, rec := open(t, fs)
	if rec.Snapshot.Index != 2 || len(l.segments) != 1 || l.segments[0] != 3 {
		t.Fatalf("snapshot at %d, segments %v", rec.Snapshot.Index, l.segments)
	}
}
