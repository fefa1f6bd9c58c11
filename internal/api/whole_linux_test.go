package api_test

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// watchedDisk is the machine's. It counts the bytes of files that are read into memory.
type watchedDisk struct {
	vfs.FS
	read atomic.Int64
}

func (d *watchedDisk) Open(path string) (vfs.File, error)   { return d.watch(d.FS.Open(path)) }
func (d *watchedDisk) Create(path string) (vfs.File, error) { return d.watch(d.FS.Create(path)) }

func (d *watchedDisk) watch(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return watchedFile{f.(kernelFile), &d.read}, nil
}

// kernelFile is what the machine's file system opens.
type kernelFile interface {
	vfs.File
	Fd() uintptr
}

type watchedFile struct {
	kernelFile
	read *atomic.Int64
}

func (f watchedFile) ReadAt(b []byte, off int64) (int, error) {
	f.read.Add(int64(len(b)))
	return f.kernelFile.ReadAt(b, off)
}

// Records go from a log to a consumer without a way through this process.
func TestALargeAnswerIsNotReadHere(t *testing.T) {
	disk := &watchedDisk{FS: vfs.OS}
	b := newBroker(t, disk, t.TempDir(), 1, nil)
	batch := batchOf(10_000)
	b.produced(produceOf(batch, 1), 0)
	before := disk.read.Load()
	got := do[*kmsg.FetchResponse](b, fetchOf(1<<20, 1)).Topics[0].Partitions[0].RecordBatches
	if n := disk.read.Load() - before; n > 0 {
		t.Errorf("of a batch of %d bytes, %d were read into memory", len(batch), n)
	}
	record.Stamp(batch, 0, 0)
	if !bytes.Equal(got, batch) {
		t.Errorf("%d bytes came, not the %d that were sent", len(got), len(batch))
	}
}
