package storage_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

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
	got, err := format.ParseOffsets([]byte(read(t, w.fs, w.path+"/replication-offset-checkpoint")))
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
