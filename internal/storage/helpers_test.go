package storage_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const (
	fixture = "testdata/kafka-4.4/node1"
	now     = model.Millis(1_796_002_300_000)
	cluster = "P0y1z4e6mz4kF-HprJgivA"
)

var (
	events0 = model.TopicPartition{Topic: "events", Partition: 0}
	topicID = model.UUID{1, 2, 3}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lines collects what is logged.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is one disk and the log directory on it.
type world struct {
	t    testing.TB
	fs   vfs.FS
	path string
	cfg  storage.LogConfig
	now  model.Millis
	log  lines
	dir  *storage.Dir
}

func small() storage.LogConfig {
	cfg := storage.DefaultLogConfig()
	cfg.SegmentBytes, cfg.SegmentIndexBytes, cfg.IndexIntervalBytes = 2000, 1200, 200
	return cfg
}

func newWorld(t testing.TB) *world {
	return &world{t: t, fs: vfs.NewMem(), path: "/data", cfg: small(), now: now}
}

func (w *world) options() storage.DirOptions {
	return storage.DirOptions{
		ClusterID: cluster, NodeID: 1, DirectoryID: model.UUID{9},
		Config: func(model.TopicPartition) storage.LogConfig { return w.cfg },
		Log:    slog.New(slog.NewTextHandler(&w.log, nil)),
		Now:    func() model.Millis { return w.now },
		Manual: true,
	}
}

func (w *world) open() *storage.Dir {
	w.t.Helper()
	d, err := storage.OpenDir(w.fs, w.path, w.options())
	must(w.t, err)
	w.dir = d
	return d
}

// fresh opens the directory and makes one log in it.
func (w *world) fresh() *storage.Log {
	w.t.Helper()
	l, err := w.open().Create(events0, topicID, w.cfg, w.now)
	must(w.t, err)
	return l
}

// reopen opens the directory again and returns the log.
func (w *world) reopen() *storage.Log {
	w.t.Helper()
	l := w.open().Log(events0)
	if l == nil {
		w.t.Fatal("the log is gone")
	}
	return l
}

// batch makes a produced batch of n records with values that name them.
func batch(n int, from model.Offset, at model.Millis) []byte {
	b := record.NewBuilder(record.PlainOptions())
	for i := range n {
		b.Add(at+model.Millis(i), []byte("k"), fmt.Appendf(nil, "value %d", from+model.Offset(i)))
	}
	return slices.Clone(b.Bytes())
}

// produce appends one batch of n records as a leader of the epoch.
func produce(t testing.TB, l *storage.Log, n int, epoch model.Epoch, at model.Millis) storage.Appended {
	t.Helper()
	a, err := l.Append(at, storage.AppendBatch{Bytes: batch(n, l.LEO(), at), Stamp: true, Base: l.LEO(), Epoch: epoch})
	must(t, err)
	return a
}

// values reads every record of [from, to), one fetch after the other, and checks
// the checksums.
func values(t testing.TB, l *storage.Log, from, to model.Offset, maxBytes int) []string {
	t.Helper()
	var out []string
	for at := from; at < to; {
		s, err := l.Read(at, maxBytes, to, true)
		must(t, err)
		if s.Len == 0 {
			t.Fatalf("nothing at %d of [%d, %d)", at, from, to)
		}
		b := make([]byte, s.Len)
		if _, err := s.File.ReadAt(b, s.Pos); err != nil {
			t.Fatal(err)
		}
		s.Release()
		next := at
		for h, batch := range record.Split(b) {
			if !record.Valid(batch) || next == at && h.Base != s.First {
				t.Fatalf("bad batch at %d", h.Base)
			}
			must(t, record.Records(batch, func(r *record.Record) bool {
				if r.Offset >= at {
					out = append(out, fmt.Sprintf("%d:%s", r.Offset, r.Value))
				}
				return true
			}))
			next = h.Next()
		}
		if next != s.Next || next <= at {
			t.Fatalf("slice from %d ends at %d, says %d", at, next, s.Next)
		}
		at = next
	}
	return out
}

func wantValues(from, to model.Offset) []string {
	var out []string
	for o := from; o < to; o++ {
		out = append(out, fmt.Sprintf("%d:value %d", o, o))
	}
	return out
}

func checkAll(t testing.TB, l *storage.Log) {
	t.Helper()
	for _, max := range []int{1, 300, 1 << 20} {
		got := values(t, l, l.Start(), l.LEO(), max)
		if want := wantValues(l.Start(), l.LEO()); !slices.Equal(got, want) {
			t.Fatalf("records [%d, %d) by %d bytes: %v", l.Start(), l.LEO(), max, got)
		}
	}
}

// tree is every file below a folder with its bytes.
func tree(t testing.TB, fsys vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	infos, err := fsys.ReadDir(dir)
	must(t, err)
	for _, info := range infos {
		name := filepath.Join(dir, info.Name)
		if info.Dir {
			for k, v := range tree(t, fsys, name) {
				out[filepath.Join(info.Name, k)] = v
			}
			continue
		}
		out[info.Name] = read(t, fsys, name)
	}
	return out
}

func read(t testing.TB, fsys vfs.FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name)
	must(t, err)
	defer f.Close()
	size, err := f.Size()
	must(t, err)
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return string(b)
}

func write(t testing.TB, fsys vfs.FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	must(t, err)
	must(t, f.Close())
}

// copyFixture puts the directory of a real Kafka onto a disk.
func copyFixture(t testing.TB, fsys vfs.FS, to string) {
	t.Helper()
	must(t, filepath.WalkDir(fixture, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dst := filepath.Join(to, strings.TrimPrefix(p, fixture))
		if e.IsDir() {
			return fsys.MkdirAll(dst)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		write(t, fsys, dst, string(b))
		return nil
	}))
}
