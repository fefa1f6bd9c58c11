package storage_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

func TestTruncateCutsAnywhere(t *testing.T) {
	for to := model.Offset(0); to <= 210; to += 3 {
		w := newWorld(t)
		l := w.fresh()
		for l.LEO() < 200 {
			produce(t, l, 4, 0, now+model.Millis(l.LEO()))
		}
		must(t, w.dir.RunBackground())
		must(t, w.dir.CheckpointRecovery())
		epochs := []model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 4, Start: 100}}
		cut, err := l.Truncate(to, epochs, now)
		must(t, err)
		want := min(to/4*4, 200) // a batch is not divided
		if cut.LEO != want || l.LEO() != want || cut.Start != 0 || l.RecoveryPoint() > want || !slices.Equal(l.Epochs(), epochs) {
			t.Fatalf("cut to %d: %+v, recovery point %d", to, cut, l.RecoveryPoint())
		}
		checkAll(t, l)
		for l.LEO() < 230 {
			produce(t, l, 3, 5, now+model.Millis(l.LEO()))
		}
		checkAll(t, l)
		end := l.LEO()
		must(t, w.dir.CloseClean(1))
		l = w.reopen()
		if l.LEO() != end {
			t.Fatalf("cut to %d: end %d after a restart, want %d", to, l.LEO(), end)
		}
		checkAll(t, l)
	}
}

func TestTruncationBelowTheFirstSegmentStartsAnew(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	_, err := l.Restart(1000, nil, now)
	must(t, err)
	produce(t, l, 5, 0, now)
	cut, err := l.Truncate(700, nil, now)
	must(t, err)
	if cut.LEO != 700 || cut.Start != 700 || l.Size() != 0 {
		t.Errorf("%+v", cut)
	}
	produce(t, l, 5, 0, now)
	checkAll(t, l)
	must(t, w.dir.Close())
	if l = w.reopen(); l.Start() != 700 || l.LEO() != 705 {
		t.Errorf("[%d, %d) after a kill", l.Start(), l.LEO())
	}
}

func TestTruncatedProducersForgetWhatWasCut(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	for i := range 40 {
		b := record.NewBuilder(record.BatchOptions{ProducerID: 7, BaseSequence: int32(i)})
		b.Add(now, nil, []byte("0123456789"))
		_, err := l.Append(now, storage.AppendBatch{Bytes: b.Bytes(), Stamp: true, Base: l.LEO()})
		must(t, err)
	}
	for _, to := range []model.Offset{39, 30, 21, 20, 3} {
		cut, err := l.Truncate(to, nil, now)
		must(t, err)
		e := cut.Producers.Entries()
		if len(e) != 1 || e[0].LastSequence != int32(to-1) || e[0].LastOffset != to-1 {
			t.Errorf("cut to %d: %+v", to, e)
		}
	}
	cut, err := l.Truncate(0, nil, now)
	must(t, err)
	if n := cut.Producers.Len(); n != 0 {
		t.Errorf("%d producers of an empty log", n)
	}
}

func TestAFirstBatchMayStraddleTheStart(t *testing.T) { // KAFKA-6975, R4.10
	w := newWorld(t)
	l := w.fresh()
	_, err := l.Restart(7, nil, now)
	must(t, err)
	b := batch(5, 5, now)
	record.Stamp(b, 5, 2)
	a, err := l.Append(now, storage.AppendBatch{Bytes: b, Epochs: []model.EpochStart{{Epoch: 2, Start: 5}}})
	must(t, err)
	if a.End != 10 || l.Start() != 7 || l.Segments()[0].Base != 5 {
		t.Errorf("end %d, start %d, segments %+v", a.End, l.Start(), l.Segments())
	}
	checkAll(t, l)
	b = batch(5, 8, now)
	record.Stamp(b, 8, 2)
	if _, err := l.Append(now, storage.AppendBatch{Bytes: b}); err == nil {
		t.Error("a log with records takes no straddling batch")
	}
}

func TestARestartBelowTheSavedStartSurvivesACrash(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	for range 30 {
		produce(t, l, 4, 0, now)
	}
	must(t, l.Flush(now))
	must(t, l.RaiseStart(100))
	must(t, w.dir.CheckpointLogStart())
	must(t, w.dir.CheckpointRecovery())
	_, err := l.Restart(50, nil, now)
	must(t, err)
	produce(t, l, 3, 0, now)
	must(t, l.Flush(now))
	must(t, w.dir.Close())
	if l = w.reopen(); l.Start() != 50 || l.LEO() != 53 {
		t.Errorf("[%d, %d)", l.Start(), l.LEO())
	}
}

func TestDeleteRecordsMovesTheStart(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	for range 50 {
		produce(t, l, 4, 0, now)
	}
	must(t, l.WriteEpochs([]model.EpochStart{{Epoch: 0, Start: 0}, {Epoch: 1, Start: 20}, {Epoch: 2, Start: 150}}))
	must(t, l.RaiseStart(102))
	must(t, l.RaiseStart(60)) // never back
	if l.Start() != 102 {
		t.Fatalf("start %d", l.Start())
	}
	if _, err := l.Read(101, 1, 200, true); !errors.Is(err, storage.ErrOffsetOutOfRange) {
		t.Errorf("below the start: %v", err)
	}
	checkAll(t, l)
	n := len(l.Segments())
	start, err := l.ApplyRetention(now, 200)
	must(t, err)
	if segs := l.Segments(); start != 102 || len(segs) >= n || segs[0].Base > 102 || segs[1].Base <= 102 {
		t.Errorf("start %d, segments %+v", start, segs)
	}
	must(t, w.dir.CloseClean(1))
	l = w.reopen()
	if l.Start() != 102 || !slices.Equal(l.Epochs(), []model.EpochStart{{Epoch: 1, Start: 102}, {Epoch: 2, Start: 150}}) {
		t.Errorf("start %d, epochs %v after a restart", l.Start(), l.Epochs())
	}
	checkAll(t, l)
}

func TestRetentionByTime(t *testing.T) {
	w := newWorld(t)
	w.cfg.RetentionMs = 1000
	l := w.fresh()
	for i := range 60 {
		produce(t, l, 2, 0, now+model.Millis(10*i))
	}
	segs := l.Segments()
	at := segs[1].MaxTimestamp + 1000
	if start, err := l.ApplyRetention(at, 120); err != nil || start != segs[1].Base {
		t.Errorf("start %d, %v; segment 1 is exactly old enough to stay", start, err)
	}
	if start, err := l.ApplyRetention(at+1, segs[2].Base-1); err != nil || start != segs[1].Base {
		t.Errorf("start %d, %v; retention passed the high watermark", start, err)
	}
	if start, err := l.ApplyRetention(at+1, 120); err != nil || start != segs[2].Base {
		t.Errorf("start %d, %v", start, err)
	}
	// All of it is old: offsets go on in a new segment (B138).
	start, err := l.ApplyRetention(at+100_000, 120)
	must(t, err)
	if start != 120 || l.LEO() != 120 || l.Size() != 0 || len(l.Segments()) != 1 {
		t.Errorf("start %d, end %d, %d bytes", start, l.LEO(), l.Size())
	}
	if start, err := l.ApplyRetention(at+200_000, 120); err != nil || start != 120 || len(l.Segments()) != 1 {
		t.Errorf("an empty segment is not old: %d %v", start, err)
	}
	produce(t, l, 1, 0, at+200_000)
	checkAll(t, l)
	must(t, w.dir.Close())
	if l = w.reopen(); l.Start() != 120 || l.LEO() != 121 {
		t.Errorf("[%d, %d) after a kill", l.Start(), l.LEO())
	}
}

func TestAnOldRecordDoesNotTakeFreshOnesAlong(t *testing.T) { // B161
	w := newWorld(t)
	w.cfg.RetentionMs, w.cfg.SegmentMs = 3_600_000, 1<<40
	l := w.fresh()
	for _, age := range []model.Millis{0, 3 * 3_600_000, 60_000} {
		produce(t, l, 1, 0, now-age)
	}
	for len(l.Segments()) == 1 {
		produce(t, l, 1, 0, now-3*3_600_000)
	}
	for len(l.Segments()) == 2 {
		produce(t, l, 1, 0, now-3*3_600_000)
	}
	if start, err := l.ApplyRetention(now, l.LEO()); err != nil || start != 0 {
		t.Errorf("start %d, %v", start, err)
	}
}

func TestRetentionBySize(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	for range 200 {
		produce(t, l, 1, 0, now)
	}
	segs := l.Segments()
	cfg := w.cfg
	cfg.RetentionBytes = l.Size() - segs[0].Bytes - segs[1].Bytes + 1
	l.SetConfig(cfg)
	if start, err := l.ApplyRetention(now, 200); err != nil || start != segs[1].Base {
		t.Errorf("start %d, %v: only one segment may go", start, err)
	}
	cfg.Delete = false
	cfg.RetentionBytes = 0
	l.SetConfig(cfg)
	if start, err := l.ApplyRetention(now, 200); err != nil || start != segs[1].Base {
		t.Errorf("start %d, %v: a compacted topic has no retention", start, err)
	}
	must(t, l.RaiseStart(segs[3].Base))
	if _, err := l.ApplyRetention(now, 200); err != nil || l.Segments()[0].Base != segs[3].Base {
		t.Errorf("%v: what lies below the start goes in any case", err)
	}
}

func TestDeletedFilesStayForTheirDelay(t *testing.T) {
	w := newWorld(t)
	w.cfg.FileDeleteDelay = time.Minute
	w.cfg.RetentionMs = 1000
	l := w.fresh()
	for range 60 {
		produce(t, l, 2, 0, now)
	}
	s, err := l.Read(0, 1<<20, 120, true)
	must(t, err)
	_, err = l.ApplyRetention(now+2000, 120)
	must(t, err)
	deleted := func() (n int) {
		for name := range tree(t, w.fs, w.path) {
			if strings.HasSuffix(name, ".deleted") {
				n++
			}
		}
		return n
	}
	must(t, w.dir.RunBackground())
	if deleted() == 0 {
		t.Error("the files went at once")
	}
	w.now += 60_000
	must(t, w.dir.RunBackground())
	if n := deleted(); n != 0 {
		t.Errorf("%d files are left after the delay", n)
	}
	b := make([]byte, s.Len)
	if _, err := s.File.ReadAt(b, s.Pos); err != nil || !record.Valid(b[:first(b)]) {
		t.Errorf("a reader lost its segment: %v", err)
	}
	s.Release()
	s.Release()
}

// first is the size of the first batch.
func first(b []byte) int {
	h, _ := record.ParseHeader(b)
	return h.Size()
}

func TestADeletedLogIsGoneAtOnce(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	produce(t, l, 5, 0, now)
	must(t, w.dir.Delete(events0))
	if w.dir.Log(events0) != nil {
		t.Error("it is still there")
	}
	if _, err := l.Read(0, 1, 5, true); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := l.Append(now, storage.AppendBatch{Bytes: batch(1, 5, now), Stamp: true, Base: 5}); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	l, err := w.dir.Create(events0, model.UUID{7}, w.cfg, now)
	must(t, err)
	produce(t, l, 2, 0, now)
	checkAll(t, l)
	w.now += 60_000
	must(t, w.dir.RunBackground())
	for name := range tree(t, w.fs, w.path) {
		if strings.Contains(name, "-delete") {
			t.Errorf("%s is left", name)
		}
	}
	must(t, w.dir.Stray(events0))
	must(t, w.dir.CloseClean(1))
	if n := len(w.open().Logs()); n != 0 {
		t.Errorf("%d logs after all went", n)
	}
	if w.dir.OpenFiles() != 0 {
		t.Errorf("%d files open", w.dir.OpenFiles())
	}
}

func TestACutIsDurableAtOnce(t *testing.T) {
	w := newWorld(t)
	l := w.fresh()
	for i := range 60 {
		b := record.NewBuilder(record.BatchOptions{ProducerID: 7, BaseSequence: int32(i)})
		b.Add(now, nil, []byte("0123456789"))
		_, err := l.Append(now, storage.AppendBatch{Bytes: b.Bytes(), Stamp: true, Base: l.LEO()})
		must(t, err)
	}
	must(t, l.Flush(now))
	segs := l.Segments()
	to := segs[1].Base + 2
	_, err := l.Truncate(to, l.Epochs(), now)
	must(t, err)
	for name, content := range tree(t, w.fs.(*vfs.Mem).CrashClone(vfs.CrashOptions{}), w.path) {
		var base model.Offset
		suffix := ""
		if n, _ := fmt.Sscanf(name, "events-0/%020d%s", &base, &suffix); n != 2 {
			continue
		}
		if base > to && (suffix == ".log" || suffix == ".snapshot") || base == segs[1].Base && suffix == ".log" && int64(len(content)) >= segs[1].Bytes {
			t.Errorf("%s may come back with %d bytes", name, len(content))
		}
	}
}

func TestTheTopicIDIsDurableBeforeTheFirstBytes(t *testing.T) { // R8.9
	w := newWorld(t)
	l := w.fresh()
	produce(t, l, 1, 0, now)
	files := tree(t, w.fs.(*vfs.Mem).CrashClone(vfs.CrashOptions{}), w.path)
	if got := files["events-0/partition.metadata"]; got != "version: 0\ntopic_id: "+topicID.String() {
		t.Errorf("after a crash %q", got)
	}
}

func TestACutDuringTheBackgroundFlushKeepsTheRecoveryPointDown(t *testing.T) {
	w := newWorld(t)
	var l *storage.Log
	armed := false
	w.fs = vfs.Faulty(w.fs, func(op vfs.Op) error {
		if armed && op.Kind == vfs.OpSync && strings.HasSuffix(op.Path, ".log") {
			armed = false
			_, err := l.Truncate(5, nil, now)
			return err
		}
		return nil
	})
	l = w.fresh()
	for len(l.Segments()) < 3 {
		produce(t, l, 1, 0, now)
	}
	armed = true
	must(t, w.dir.RunBackground())
	if armed || l.LEO() != 5 || l.RecoveryPoint() > 5 {
		t.Errorf("recovery point %d of a log that ends at %d", l.RecoveryPoint(), l.LEO())
	}
}

// What a log that begins anew takes away under the background's hands is no fault of
// the disk.
func TestALogMayBeginAnewDuringTheBackgroundFlush(t *testing.T) {
	w := newWorld(t)
	var l *storage.Log
	armed, flushed := false, make(chan struct{})
	began, ended := make(chan struct{}), make(chan error, 1)
	w.fs = vfs.Faulty(w.fs, func(op vfs.Op) error {
		switch {
		case armed && op.Kind == vfs.OpSync && strings.HasSuffix(op.Path, ".log"): // by the background
			armed = false
			go func() {
				_, err := l.Restart(50, nil, now)
				ended <- err
			}()
			<-began
		case op.Kind == vfs.OpCreate && strings.HasSuffix(op.Path, "00050.log"): // the old files are gone
			close(began)
			<-flushed
		}
		return nil
	})
	l = w.fresh()
	for len(l.Segments()) < 3 {
		produce(t, l, 1, 0, now)
	}
	armed = true
	err := w.dir.RunBackground()
	close(flushed)
	must(t, err)
	must(t, <-ended)
	if l.Start() != 50 || l.LEO() != 50 || l.RecoveryPoint() > 50 {
		t.Errorf("the log has [%d, %d) and the recovery point %d", l.Start(), l.LEO(), l.RecoveryPoint())
	}
}
