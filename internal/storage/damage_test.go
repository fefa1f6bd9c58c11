package storage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// filled is a log of some segments, cleanly stopped.
func filled(t *testing.T) (*world, model.Offset) {
	w := newWorld(t)
	l := w.fresh()
	for i := range 120 {
		e := model.Epoch(i / 40)
		if i%40 == 0 {
			must(t, l.WriteEpochs(append(l.Epochs(), model.EpochStart{Epoch: e, Start: l.LEO()})))
		}
		produce(t, l, 1+i%3, e, now+model.Millis(i))
	}
	end := l.LEO()
	must(t, w.dir.CheckpointHW(map[model.TopicPartition]model.Offset{events0: end - 5}))
	must(t, w.dir.CloseClean(8))
	return w, end
}

func (w *world) file(name string) string { return w.path + "/events-0/" + name }

func TestATornTailIsCutOff(t *testing.T) { // B152
	whole := batch(2, 0, now)
	edit := func(at int, v ...byte) []byte { return slices.Replace(slices.Clone(whole), at, at+len(v), v...) }
	cases := map[string]struct {
		tail []byte
		also bool // after a clean stop too, where only ends are looked at
	}{
		"the first bytes of a batch":   {whole[:30], true},
		"all but the last byte":        {whole[:len(whole)-1], true},
		"zeroes":                       {make([]byte, 4096), true},
		"a header that claims a GiB":   {edit(8, 0x40, 0, 0, 0), true},
		"a header that claims nothing": {edit(8, 0, 0, 0, 0), true},
		"a batch with a bit flipped":   {edit(70, whole[70]^4), false},
		"a batch of an older epoch":    {slices.Clone(whole), false},
	}
	for name, c := range cases {
		w, end := filled(t)
		if name == "a batch of an older epoch" {
			record.Stamp(c.tail, end, 1)
		}
		tornTail(t, name, w, end, c.tail, false)
		if c.also {
			w, end = filled(t)
			tornTail(t, name, w, end, c.tail, true)
		}
	}
}

// tornTail puts the tail behind the log of a stopped directory and opens it.
func tornTail(t *testing.T, name string, w *world, end model.Offset, tail []byte, clean bool) {
	t.Helper()
	if !clean {
		must(t, w.fs.Remove(w.path+"/.kafka_cleanshutdown"))
	}
	files := tree(t, w.fs, w.path)
	active := ""
	for f := range files {
		if strings.HasSuffix(f, ".log") {
			active = max(active, f)
		}
	}
	write(t, w.fs, w.path+"/"+active, files[active]+string(tail))
	l := w.reopen()
	if l.LEO() != end || l.CheckpointedHW() != end-5 {
		t.Errorf("%s, clean %v: end %d, want %d; HW %d", name, clean, l.LEO(), end, l.CheckpointedHW())
	}
	produce(t, l, 3, 5, now)
	checkAll(t, l)
}

func TestLostAndGarbledIndexesAreMadeAnew(t *testing.T) { // B154
	r := rand.New(rand.NewPCG(5, 6))
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	}
	damages := map[string]func(fs vfs.FS, name, content string){
		"removed":  func(fs vfs.FS, name, _ string) { must(t, fs.Remove(name)) },
		"emptied":  func(fs vfs.FS, name, _ string) { write(t, fs, name, "") },
		"noise":    func(fs vfs.FS, name, c string) { write(t, fs, name, noise(len(c))) },
		"odd size": func(fs vfs.FS, name, c string) { write(t, fs, name, c+"x") },
		"zeroes":   func(fs vfs.FS, name, c string) { write(t, fs, name, c+strings.Repeat("\x00", 1200)) },
		"huge":     func(fs vfs.FS, name, c string) { write(t, fs, name, c+strings.Repeat("\x7f", 1200)) },
	}
	for _, suffix := range []string{".index", ".timeindex", ".snapshot"} {
		for what, damage := range damages {
			w, end := filled(t)
			for name, content := range tree(t, w.fs, w.path) {
				if strings.HasSuffix(name, suffix) {
					damage(w.fs, w.path+"/"+name, content)
				}
			}
			l := w.reopen()
			if l.LEO() != end {
				t.Fatalf("%s %s: end %d, want %d", suffix, what, l.LEO(), end)
			}
			for range 100 {
				o := model.Offset(r.Int64N(int64(end)))
				if got := valueAt(t, l, o); got != wantValues(o, o+1)[0] {
					t.Fatalf("%s %s: at %d %v", suffix, what, o, got)
				}
				at := now + model.Millis(r.IntN(140)-10)
				_, ok, err := l.OffsetForTime(at)
				must(t, err)
				if ok != (at <= now+121) {
					t.Fatalf("%s %s: time %d found %v", suffix, what, at-now, ok)
				}
			}
			produce(t, l, 2, 9, now)
			checkAll(t, l)
		}
	}
}

// valueAt reads one record.
func valueAt(t *testing.T, l *storage.Log, o model.Offset) string {
	t.Helper()
	s, err := l.Read(o, 1, l.LEO(), true)
	must(t, err)
	defer s.Release()
	return values(t, l, o, s.Next, 1)[0]
}

func TestUnreadableCheckpointsCountAsAbsent(t *testing.T) { // R13.12
	for _, name := range []string{"replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
		"events-0/leader-epoch-checkpoint", "events-0/partition.metadata", ".kafka_cleanshutdown"} {
		for _, content := range []string{"", "0\n", "0\n3\nevents 0 1\n", "1\n0\n", "\x00\x00\x00\x00", "version: 0\n", "{", "0\n1\n1 -5\n"} {
			w, end := filled(t)
			want := w.reopen().Epochs()
			must(t, w.dir.CloseClean(8))
			write(t, w.fs, w.path+"/"+name, content)
			l := w.reopen()
			if l.LEO() != end || l.Start() != 0 || !slices.Equal(l.Epochs(), want) {
				t.Errorf("%s = %q: [%d, %d), epochs %v, want %v", name, content, l.Start(), l.LEO(), l.Epochs(), want)
			}
			if n := strings.Count(w.log.String(), "counts as absent"); n != 1 {
				t.Errorf("%s = %q: %d lines: %s", name, content, n, w.log.String())
			}
			if name == "events-0/partition.metadata" {
				if !l.TopicID().IsZero() {
					t.Errorf("topic id %s out of %q", l.TopicID(), content)
				}
				must(t, l.SetTopicID(topicID))
				must(t, w.dir.Close())
				if l = w.reopen(); l.TopicID() != topicID {
					t.Errorf("topic id %s after it was set", l.TopicID())
				}
			}
			checkAll(t, l)
		}
	}
}

func TestALostEpochCheckpointIsMadeFromTheBatches(t *testing.T) {
	w, _ := filled(t)
	want := w.reopen().Epochs()
	must(t, w.dir.CloseClean(8))
	must(t, w.fs.Remove(w.file("leader-epoch-checkpoint")))
	l := w.reopen()
	if got := l.Epochs(); !slices.Equal(got, want) {
		t.Errorf("epochs %v, want %v", got, want)
	}
	must(t, w.dir.CloseClean(8))
	if got := read(t, w.fs, w.file("leader-epoch-checkpoint")); got == "" {
		t.Error("it was not written again")
	}
}

func TestLeftoversOfAnInterruptedChangeAreTidied(t *testing.T) {
	w, end := filled(t)
	files := tree(t, w.fs, w.path)
	var logs []string
	for f := range files {
		if strings.HasSuffix(f, ".log") {
			logs = append(logs, filepath.Base(f))
		}
	}
	slices.Sort(logs)
	base := strings.TrimSuffix(logs[1], ".log")
	later := strings.TrimSuffix(logs[3], ".log")
	// Segment 1 was compacted and swapped in half, segment 3 was still being cleaned.
	write(t, w.fs, w.file(base+".log.swap"), files["events-0/"+base+".log"])
	write(t, w.fs, w.file(base+".index.swap"), files["events-0/"+base+".index"])
	write(t, w.fs, w.file(base+".timeindex.swap"), files["events-0/"+base+".timeindex"])
	must(t, w.fs.Remove(w.file(base+".log")))
	must(t, w.fs.Remove(w.file(base+".index")))
	for _, name := range []string{later + ".log.cleaned", later + ".index.cleaned", "00000000000000000777.index", "00000000000000000777.txnindex",
		"00000000000000000000.log.deleted", "leader-epoch-checkpoint.tmp"} {
		write(t, w.fs, w.file(name), "rest")
	}
	must(t, w.fs.MkdirAll(w.path+"/gone-0.0123-delete"))
	write(t, w.fs, w.path+"/gone-0.0123-delete/x", "x")
	must(t, w.fs.MkdirAll(w.path+"/lost+found"))
	l := w.reopen()
	if l.LEO() != end {
		t.Errorf("end %d, want %d", l.LEO(), end)
	}
	checkAll(t, l)
	must(t, w.dir.RunBackground())
	for name := range tree(t, w.fs, w.path) {
		for _, s := range []string{"swap", "cleaned", "deleted", "777", "tmp", "gone"} {
			if strings.Contains(name, s) {
				t.Errorf("%s is left", name)
			}
		}
	}
}

func TestAGapBehindTheRecoveryPointIsCut(t *testing.T) {
	w, _ := filled(t)
	must(t, w.fs.Remove(w.path+"/.kafka_cleanshutdown"))
	must(t, w.fs.Remove(w.path+"/recovery-point-offset-checkpoint"))
	var logs []string
	files := tree(t, w.fs, w.path)
	for f := range files {
		if strings.HasSuffix(f, ".log") {
			logs = append(logs, f)
		}
	}
	slices.Sort(logs)
	// The last whole batch of segment 2 was lost, exactly.
	whole := files[logs[2]]
	at := 0
	for at+first([]byte(whole[at:])) < len(whole) {
		at += first([]byte(whole[at:]))
	}
	write(t, w.fs, w.path+"/"+logs[2], whole[:at])
	l := w.reopen()
	if n := len(l.Segments()); n != 3 {
		t.Errorf("%d segments", n)
	}
	checkAll(t, l)
	// Their names are free again, for good: what is written there next must not
	// be followed by what was.
	for name := range tree(t, w.fs.(*vfs.Mem).CrashClone(vfs.CrashOptions{}), w.path) {
		if name == logs[3] {
			t.Errorf("%s may come back", name)
		}
	}
}

func TestTheBatchesKnowTheirEpochBetterThanTheCheckpoint(t *testing.T) {
	for _, content := range []string{
		"0\n2\n0 0\n7 100\n", "0\n4\n0 0\n1 79\n2 100\n9 150\n", "0\n1\n5 30\n", "0\n2\n0 0\n2 158\n", "0\n3\n0 0\n1 90\n2 120\n",
	} {
		w, _ := filled(t)
		want := w.reopen().Epochs()
		must(t, w.dir.Close())
		must(t, w.fs.Remove(w.path+"/recovery-point-offset-checkpoint"))
		write(t, w.fs, w.file("leader-epoch-checkpoint"), content)
		l := w.reopen()
		if got := l.Epochs(); !slices.Equal(got, want) {
			// An epoch may only be known later than it began.
			t.Errorf("%q: epochs %v, want %v", content, got, want)
		}
	}
}

// A checkpoint that was found not to fit is replaced before anything of the log is
// trusted: by then the batches are not asked any more (R8.12).
func TestAWrongEpochCheckpointIsReplacedBeforeTheLogIsTrusted(t *testing.T) {
	for name, trust := range map[string]func(w *world, l *storage.Log){
		"flush": func(w *world, l *storage.Log) { must(w.t, l.Flush(now)) },
		"roll": func(w *world, l *storage.Log) {
			w.cfg.RetentionMs = 1000
			l.SetConfig(w.cfg)
			if start, err := l.ApplyRetention(now+100_000_000, l.LEO()); err != nil || start != l.LEO() {
				w.t.Fatalf("start %d, %v", start, err)
			}
			must(w.t, w.dir.RunBackground())
		},
	} {
		w, _ := filled(t)
		right := w.reopen().Epochs()
		must(t, w.dir.Close())
		must(t, w.fs.Remove(w.path+"/recovery-point-offset-checkpoint"))
		write(t, w.fs, w.file("leader-epoch-checkpoint"), "0\n2\n0 0\n7 100\n")
		l := w.reopen()
		if got := l.Epochs(); !slices.Equal(got, right) {
			t.Fatalf("%s: epochs %v, want %v", name, got, right)
		}
		trust(w, l)
		want := l.Epochs()
		must(t, w.dir.CheckpointRecovery())
		must(t, w.dir.Close())
		if got := w.reopen().Epochs(); !slices.Equal(got, want) {
			t.Errorf("%s: epochs %v, want %v", name, got, want)
		}
	}
}

// A leader notes its epoch, writes nothing and is killed. What it copies next is
// of the epoch before, and the disk must not say otherwise.
func TestAnEpochWithoutRecordsIsOffTheDiskBeforeOlderOnesAreWritten(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	produce(t, l, 4, 0, now)
	must(t, l.WriteEpochs([]model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 1, Start: 4}}))
	must(t, w.dir.Close())
	l = w.reopen()
	want := []model.EpochStart{{Epoch: 0, Start: 0}}
	if got := l.Epochs(); !slices.Equal(got, want) {
		t.Fatalf("epochs %v", got)
	}
	produce(t, l, 5, 0, now)
	if got := read(t, w.fs, w.file("leader-epoch-checkpoint")); got != string(format.Epochs(want)) {
		t.Errorf("on disk: %q", got)
	}
}

func TestAnotherNodesDirectoryIsRefused(t *testing.T) {
	w, _ := filled(t)
	o := w.options()
	o.NodeID = 2
	if _, err := storage.OpenDir(w.fs, w.path, o); err == nil || !strings.Contains(err.Error(), "node 1") {
		t.Errorf("node 2: %v", err)
	}
	o = w.options()
	o.ClusterID = "other"
	if _, err := storage.OpenDir(w.fs, w.path, o); err == nil {
		t.Error("another cluster was let in")
	}
	w.open()
	if _, err := storage.OpenDir(w.fs, w.path, w.options()); err == nil {
		t.Error("the directory was opened twice")
	}
	must(t, w.dir.Close())
	w.open()
}

func TestAnIOErrorTakesTheDirectoryOffline(t *testing.T) { // R8.23, B158
	disk := errors.New("input/output error")
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpSync, vfs.OpRead, vfs.OpTruncate, vfs.OpSyncDir, vfs.OpRename} {
		w := newWorld(t)
		broken := false
		w.fs = vfs.Faulty(vfs.NewMem(), func(op vfs.Op) error {
			if broken && op.Kind == kind {
				return fmt.Errorf("%s: %w", op.Path, disk)
			}
			return nil
		})
		l := w.fresh()
		for range 60 {
			produce(t, l, 2, 0, now)
		}
		end := l.LEO()
		broken = true
		var err error
		switch kind {
		case vfs.OpRead:
			_, err = l.Read(3, 10, end, true)
		case vfs.OpWrite:
			_, err = l.Append(now, storage.AppendBatch{Bytes: batch(1, end, now), Stamp: true, Base: end})
		case vfs.OpTruncate, vfs.OpRename:
			_, err = l.Truncate(7, nil, now)
		default:
			err = l.Flush(now)
		}
		if !errors.Is(err, disk) {
			t.Errorf("%s: %v", kind, err)
		}
		select {
		case <-w.dir.Failed():
		default:
			t.Errorf("%s: the directory is still online", kind)
		}
		broken = false
		if _, err := l.Append(now, storage.AppendBatch{Bytes: batch(1, end, now), Stamp: true, Base: end}); !errors.Is(err, storage.ErrOffline) {
			t.Errorf("%s: an append goes on: %v", kind, err)
		}
		if err := w.dir.CloseClean(1); !errors.Is(err, storage.ErrOffline) {
			t.Errorf("%s: it was stopped cleanly: %v", kind, err)
		}
		if _, ok := tree(t, w.fs, w.path)[".kafka_cleanshutdown"]; ok {
			t.Errorf("%s: it left a clean file", kind)
		}
	}
}
