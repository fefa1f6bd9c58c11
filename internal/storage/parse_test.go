package storage_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

func TestFilesOfKafkaAreRead(t *testing.T) {
	get := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(fixture, name))
		must(t, err)
		return b
	}
	hw, err := storage.ParseOffsets(get("replication-offset-checkpoint"))
	must(t, err)
	if len(hw) != 51 || hw[events0] != 1548 || hw[model.TopicPartition{Topic: "__transaction_state", Partition: 31}] != 26 {
		t.Errorf("%d marks, events %d", len(hw), hw[events0])
	}
	none, err := storage.ParseOffsets(get("log-start-offset-checkpoint"))
	if err != nil || len(none) != 0 {
		t.Errorf("%v %v", none, err)
	}
	m, err := storage.ParseMeta(get("meta.properties"))
	if err != nil || m.NodeID != 1 || m.ClusterID != cluster || m.DirectoryID.String() != "hW4v64Ut4SysrP6gfwfIdw" {
		t.Errorf("%+v %v", m, err)
	}
	if again, err := storage.ParseMeta(m.Format()); again != m || err != nil {
		t.Errorf("%+v %v", again, err)
	}
	epoch, err := storage.ParseCleanShutdown(get(".kafka_cleanshutdown"))
	if err != nil || epoch != 199 {
		t.Errorf("%d %v", epoch, err)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	offsets := func(b []byte) error { _, err := storage.ParseOffsets(b); return err }
	epochs := func(b []byte) error { _, err := storage.ParseEpochs(b); return err }
	meta := func(b []byte) error { _, err := storage.ParseMeta(b); return err }
	id := func(b []byte) error { _, err := storage.ParsePartitionMetadata(b); return err }
	clean := func(b []byte) error { _, err := storage.ParseCleanShutdown(b); return err }
	snapshot := func(b []byte) error { _, err := storage.ParseSnapshot(b); return err }
	txn := func(b []byte) error { _, err := storage.ParseTxnIndex(b); return err }
	for _, c := range []struct {
		parse   func([]byte) error
		content string
	}{
		{offsets, ""}, {offsets, "0"}, {offsets, "1\n0\n"}, {offsets, "0\n1\n"}, {offsets, "0\n1\nt 0\n"}, {offsets, "0\n1\nt 0 x\n"},
		{offsets, "0\n1\nt -1 0\n"}, {offsets, "0\n1\nt 0 -1\n"}, {offsets, "0\n2\nt 0 1\n"}, {offsets, "0\n0\nt 0 1\n"}, {offsets, "0\nx\n"},
		{offsets, "0\n1\nt 0 1 2\n"}, {offsets, "0\n1\nt  0 1\n"}, {offsets, "0\n1\n 0 1\n"},
		{epochs, ""}, {epochs, "0\n1\n1\n"}, {epochs, "0\n2\n1 5\n1 6\n"}, {epochs, "0\n2\n1 5\n2 5\n"}, {epochs, "0\n1\n-1 5\n"}, {epochs, "0\n1\n1 99999999999999999999\n"},
		{meta, ""}, {meta, "version=2\ncluster.id=x\nnode.id=1\n"}, {meta, "version=1\nnode.id=1\n"}, {meta, "version=1\ncluster.id=x\n"},
		{meta, "version=1\ncluster.id=x\nnode.id=-1\n"}, {meta, "version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short\n"},
		{id, ""}, {id, "version: 0\n"}, {id, "version: 1\ntopic_id: _DBuDsoeSKO92UnwpkTFlw"}, {id, "version: 0\ntopic_id: x"},
		{id, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"}, {id, "version: 0\nid: _DBuDsoeSKO92UnwpkTFlw"},
		{clean, ""}, {clean, "{}"}, {clean, `{"version":1,"brokerEpoch":1}`},
		{snapshot, ""}, {snapshot, "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"},
		{txn, "x"}, {txn, strings.Repeat("\x01", 34)}, {txn, strings.Repeat("\x00", 68)},
	} {
		if err := c.parse([]byte(c.content)); err == nil {
			t.Errorf("%q was taken", c.content)
		}
	}
}

func TestNamesOfFoldersSetAsideFit(t *testing.T) {
	w := newWorld(t)
	long := model.TopicPartition{Topic: strings.Repeat("t", 249), Partition: 12345}
	_, err := w.open().Create(long, topicID, w.cfg, now)
	must(t, err)
	must(t, w.dir.Delete(long))
	infos, err := w.fs.ReadDir(w.path)
	must(t, err)
	found := slices.ContainsFunc(infos, func(i vfs.Info) bool { return strings.HasSuffix(i.Name, "-delete") && len(i.Name) == 255 })
	if !found {
		t.Errorf("%+v", infos)
	}
}

func TestOffsetCheckpointsKeepWhatTheySay(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	produce(t, l, 9, 0, now)
	marks := map[model.TopicPartition]model.Offset{events0: 7, {Topic: "a-b", Partition: 3}: 1 << 40, {Topic: "a", Partition: 10}: 0}
	must(t, w.dir.CheckpointHW(marks))
	got, err := storage.ParseOffsets([]byte(read(t, w.fs, w.path+"/replication-offset-checkpoint")))
	if err != nil || !maps.Equal(got, marks) {
		t.Errorf("%v %v", got, err)
	}
	must(t, w.dir.Close())
	if l = w.reopen(); l.CheckpointedHW() != 7 {
		t.Errorf("HW %d", l.CheckpointedHW())
	}
	must(t, w.dir.CheckpointHW(map[model.TopicPartition]model.Offset{events0: 700}))
	must(t, w.dir.Close())
	if l = w.reopen(); l.CheckpointedHW() != 9 {
		t.Errorf("HW %d above the end", l.CheckpointedHW())
	}
}

// FuzzReaders gives every reader of a small file whatever it may find. None may
// panic; what it takes must survive a second reading of its own accord.
func FuzzReaders(f *testing.F) {
	for _, pattern := range []string{"*-checkpoint", "meta.properties", ".kafka_cleanshutdown", "*/*-checkpoint", "*/*.metadata", "*/*.snapshot", "*/*.txnindex"} {
		names, err := filepath.Glob(filepath.Join(fixture, pattern))
		if err != nil || len(names) == 0 {
			f.Fatal(pattern, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
			f.Add(b[:len(b)/2])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := storage.ParseOffsets(b); err == nil {
			for tp, o := range m {
				if tp.Partition < 0 || o < 0 || tp.Topic == "" {
					t.Errorf("%v %d", tp, o)
				}
			}
		}
		if list, err := storage.ParseEpochs(b); err == nil {
			if !slices.IsSortedFunc(list, func(a, b model.EpochStart) int { return int(a.Epoch - b.Epoch) }) {
				t.Errorf("%v", list)
			}
		}
		if m, err := storage.ParseMeta(b); err == nil {
			if again, err := storage.ParseMeta(m.Format()); err != nil || again != m {
				t.Errorf("%+v %v", again, err)
			}
		}
		if _, err := storage.ParseSnapshot(b); err == nil && len(b) < 10 {
			t.Error("too short")
		}
		if list, err := storage.ParseTxnIndex(b); err == nil && len(list) != len(b)/34 {
			t.Error("wrong count")
		}
		_, _ = storage.ParsePartitionMetadata(b)
		_, _ = storage.ParseCleanShutdown(b)
	})
}

// FuzzIndexes opens a log whose index files hold anything, and reads it all.
func FuzzIndexes(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5, 0, 0, 1, 0}, uint8(0), true)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint8(0), true)
	f.Add([]byte{0, 0, 1, 0xa2, 0x2a, 0x13, 0x28, 0x97, 0, 0, 0, 3}, uint8(1), true)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 3}, uint8(1), false)
	f.Add([]byte("garbage"), uint8(2), true)
	f.Fuzz(func(t *testing.T, b []byte, which uint8, clean bool) {
		w, end := filled(t)
		suffix := []string{".index", ".timeindex", ".txnindex", ".snapshot"}[which%4]
		for name := range tree(t, w.fs, w.path) {
			if base, ok := strings.CutSuffix(name, ".log"); ok {
				write(t, w.fs, w.path+"/"+base+suffix, string(b))
			}
		}
		if !clean {
			must(t, w.fs.Remove(w.path+"/.kafka_cleanshutdown"))
		}
		l := w.reopen()
		if l.LEO() != end {
			t.Fatalf("end %d, want %d", l.LEO(), end)
		}
		checkAll(t, l)
		_, ok, err := l.OffsetForTime(now + 60)
		if err != nil || !ok {
			t.Fatalf("time query: %v %v", ok, err)
		}
		_, err = l.Aborted(0, end)
		must(t, err)
		produce(t, l, 1, 9, now)
	})
}

// FuzzLog opens a log file that holds anything: it must load, or not, but what
// loads is readable up to its end.
func FuzzLog(f *testing.F) {
	whole := slices.Concat(batch(3, 0, now), batch(2, 0, now))
	f.Add(whole, true)
	f.Add(whole[:len(whole)-3], false)
	f.Add(slices.Concat(whole, make([]byte, 100)), true)
	f.Fuzz(func(t *testing.T, b []byte, clean bool) {
		w := newWorld(t)
		w.fresh()
		must(t, w.dir.CloseClean(1))
		write(t, w.fs, w.file("00000000000000000000.log"), string(b))
		if !clean {
			must(t, w.fs.Remove(w.path+"/.kafka_cleanshutdown"))
		}
		l := w.reopen()
		for at := l.Start(); at < l.LEO(); {
			s, err := l.Read(at, 1, l.LEO(), true)
			if err != nil || s.Next <= at {
				t.Fatalf("read at %d of %d: next %d, %v", at, l.LEO(), s.Next, err)
			}
			at = s.Next
			s.Release()
		}
		produce(t, l, 1, 1<<30, now)
	})
}
