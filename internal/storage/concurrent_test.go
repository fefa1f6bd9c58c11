package storage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

func TestReadersGoOnWhileTheLogGrowsAndShrinks(t *testing.T) { // B144
	w := newWorld(t)
	w.fs, w.path = vfs.OS, t.TempDir()
	w.cfg.FileDeleteDelay = 0
	o := w.options()
	o.Manual, o.MaxOpen = false, 8
	d, err := storage.OpenDir(w.fs, w.path, o)
	must(t, err)
	l, err := d.Create(events0, topicID, w.cfg, now)
	must(t, err)
	var stop atomic.Bool
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for !stop.Load() {
				readSome(t, l, r)
			}
		})
	}
	for i := range 600 {
		produce(t, l, 1+i%4, 0, now+model.Millis(i))
		if i%20 == 19 {
			must(t, l.RaiseStart(l.LEO()-60))
			_, err := l.ApplyRetention(now, l.LEO())
			must(t, err)
		}
		if i%50 == 49 {
			must(t, l.Flush(now))
			must(t, d.CheckpointRecovery())
		}
	}
	stop.Store(true)
	readers.Wait()
	checkAll(t, l)
	must(t, d.Delete(events0))
	must(t, d.CloseClean(1))
	if n := d.OpenFiles(); n != 0 || d.Err() != nil {
		t.Errorf("%d files are open, %v", n, d.Err())
	}
}

// readSome reads anywhere; only "out of range" is a good excuse for nothing.
func readSome(t *testing.T, l *storage.Log, r *rand.Rand) {
	start, end := l.Start(), l.LEO()
	if start == end {
		return
	}
	o := start + model.Offset(r.Int64N(int64(end-start)))
	s, err := l.Read(o, 400, end, true)
	if errors.Is(err, storage.ErrOffsetOutOfRange) && o < l.Start() {
		return
	}
	if err != nil || s.Len == 0 {
		t.Errorf("Read(%d) of [%d, %d): %d bytes, %v", o, start, end, s.Len, err)
		return
	}
	defer s.Release()
	b := make([]byte, s.Len)
	if _, err := s.File.ReadAt(b, s.Pos); err != nil {
		t.Errorf("read bytes of %d: %v", o, err)
		return
	}
	if h, ok := record.ParseHeader(b); !ok || h.Base > o || h.LastOffset() < o || !record.Valid(b[:h.Size()]) {
		t.Errorf("at %d there is %+v", o, h)
	}
	if _, _, err := l.OffsetForTime(now + model.Millis(r.IntN(600))); err != nil {
		t.Errorf("time query: %v", err)
	}
}

func TestOpenFilesAreBounded(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.MaxOpen = 10
	d, err := storage.OpenDir(w.fs, w.path, o)
	must(t, err)
	var logs []*storage.Log
	for p := range 40 {
		l, err := d.Create(model.TopicPartition{Topic: "t", Partition: int32(p)}, topicID, w.cfg, now)
		must(t, err)
		logs = append(logs, l)
	}
	for range 3 {
		for _, l := range logs {
			produce(t, l, 1, 0, now)
			if n := d.OpenFiles(); n > 10 {
				t.Fatalf("%d files are open", n)
			}
		}
	}
	for _, l := range logs {
		checkAll(t, l)
	}
	if n := d.OpenFiles(); n > 10 {
		t.Errorf("%d files are open", n)
	}
}

func TestAnIdleLogCostsLittle(t *testing.T) {
	const n = 300
	w := newWorld(t)
	w.fs, w.path = vfs.OS, t.TempDir()
	w.cfg = storage.DefaultLogConfig()
	d := w.open()
	for p := range n {
		_, err := d.Create(model.TopicPartition{Topic: "t", Partition: int32(p)}, topicID, w.cfg, now)
		must(t, err)
	}
	produce(t, d.Logs()[0], 1, 0, now)
	must(t, d.Close())
	before := heap()
	goroutines := runtime.NumGoroutine()
	o := w.options()
	o.Manual = false
	d, err := storage.OpenDir(w.fs, w.path, o)
	must(t, err)
	defer d.Close()
	if len(d.Logs()) != n {
		t.Fatalf("%d logs", len(d.Logs()))
	}
	if per := (int64(heap()) - int64(before)) / n; per > 4096 {
		t.Errorf("an idle log takes %d bytes", per)
	} else {
		t.Logf("an idle log takes %d bytes", per)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 1 {
		t.Errorf("%d goroutines for %d logs", more, n)
	}
	if open := d.OpenFiles(); open > 10 {
		t.Errorf("%d open files", open)
	}
	runtime.KeepAlive(d)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAnActiveIndexTakesNoSpace(t *testing.T) { // R8.3
	w := newWorld(t)
	w.fs, w.path = vfs.OS, t.TempDir()
	w.cfg = storage.DefaultLogConfig()
	l := w.fresh()
	for range 100 {
		produce(t, l, 10, 0, now)
	}
	fi, err := os.Stat(w.file("00000000000000000000.index"))
	must(t, err)
	if fi.Size() != 10<<20 {
		t.Errorf("the active index has %d bytes", fi.Size())
	}
	if n := blocks(fi) * 512; n > 64<<10 {
		t.Errorf("it takes %d bytes of disk", n)
	}
	must(t, w.dir.CloseClean(1))
	if fi, err = os.Stat(w.file("00000000000000000000.index")); err != nil || fi.Size() > 1000 {
		t.Errorf("after a stop it has %d bytes, %v", fi.Size(), err)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ records, size, batches int }{{1, 100, 1}, {100, 1000, 1}, {10, 100, 32}} {
		b.Run(fmt.Sprintf("%dx%dB in %d batches", c.records, c.size, c.batches), func(b *testing.B) {
			w := newWorld(b)
			w.fs, w.path, w.cfg = vfs.OS, b.TempDir(), storage.DefaultLogConfig()
			w.cfg.FileDeleteDelay = time.Millisecond
			l := w.fresh()
			bld := record.NewBuilder(record.PlainOptions())
			for range c.records {
				bld.Add(now, nil, make([]byte, c.size))
			}
			set := make([]storage.AppendBatch, c.batches)
			for i := range set {
				set[i] = storage.AppendBatch{Bytes: append([]byte(nil), bld.Bytes()...), Stamp: true}
			}
			b.SetBytes(int64(c.batches * bld.Size()))
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				base := l.LEO()
				for i := range set {
					set[i].Base = base + model.Offset(i*c.records)
				}
				if _, err := l.Append(now, set...); err != nil {
					b.Fatal(err)
				}
				if n%1024 == 0 && len(l.Segments()) > 2 {
					must(b, l.RaiseStart(base))
					_, err := l.ApplyRetention(now, base)
					must(b, err)
					w.now += 1000
					must(b, w.dir.RunBackground())
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	w := newWorld(b)
	w.fs, w.path, w.cfg = vfs.OS, b.TempDir(), storage.DefaultLogConfig()
	l := w.fresh()
	for range 20_000 {
		produce(b, l, 10, 0, now)
	}
	end := l.LEO()
	run := func(name string, from func(i int) model.Offset, max int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s, err := l.Read(from(i), max, end, true)
				if err != nil || s.Len == 0 {
					b.Fatal(s, err)
				}
				s.Release()
				i++
			}
		})
	}
	run("newest", func(int) model.Offset { return end - 10 }, 1<<20)
	run("near the end", func(int) model.Offset { return end - 5000 }, 1<<20)
	run("anywhere, 64 KiB", func(i int) model.Offset { return model.Offset(i*7919) % end }, 64<<10)
}
