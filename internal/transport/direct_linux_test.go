package transport

import (
	"bytes"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
)

// watched is a file of the kernel that counts what of it is read into memory.
type watched struct {
	*os.File
	read atomic.Int64
}

func (f *watched) ReadAt(b []byte, off int64) (int, error) {
	f.read.Add(int64(len(b)))
	return f.File.ReadAt(b, off)
}

// From 32 KiB on the kernel moves a range of a file to a client by itself: its bytes do
// not come here. Less of it costs less when it is read, and leaves with what is around it.
func TestLargeRangesOfFilesAreNotReadHere(t *testing.T) {
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	b := newBench(t, Options{})
	c := b.dial(t)
	for _, want := range []struct{ size, read int }{{32<<10 - 1, 32<<10 - 1}, {32 << 10, 0}, {len(content), 0}} {
		f := &watched{File: stored(t, content)}
		c.send(1, metadata())
		(<-b.requests).Reply(records{f, 0, want.size, func() {}})
		if body := c.wantID(1); !bytes.Contains(body, content[:want.size]) {
			t.Errorf("%d bytes did not arrive as they are in the file", want.size)
		}
		if n := f.read.Load(); n != int64(want.read) {
			t.Errorf("of %d bytes, %d were read into memory, not %d", want.size, n, want.read)
		}
	}
}
