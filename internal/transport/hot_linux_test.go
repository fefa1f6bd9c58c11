//go:build amd64 || arm64

package transport

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// hotDirs are directories on file systems with and without a disk, as far as this
// machine has them.
func hotDirs(t testing.TB) []string {
	dirs := []string{t.TempDir()}
	if shm, err := os.MkdirTemp("/dev/shm", "tidemark-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(shm) })
		dirs = append(dirs, shm)
	}
	return dirs
}

func hotFile(t testing.TB, dir string, size int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "log"))
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// seenInMemory asks a few times: the kernel's count misses a page now and then.
func seenInMemory(f *os.File, off int64, n int) (most int) {
	for range 20 {
		most = max(most, inMemory(int(f.Fd()), off, n))
	}
	return most
}

func TestWhatWasWrittenIsInMemory(t *testing.T) {
	for _, dir := range hotDirs(t) {
		f := hotFile(t, dir, 0)
		if _, err := f.Write(make([]byte, 2*hotPiece)); err != nil {
			t.Fatal(err)
		}
		if fd := int(f.Fd()); !onlyMemory(fd) && !cached(fd, 0, 1) {
			t.Logf("%s: the kernel cannot tell what is in memory", dir)
			continue
		}
		for _, r := range []struct {
			off  int64
			n    int
			want int
		}{{0, 1, 1}, {100, 8000, 8000}, {100, hotPiece, hotPiece}, {2*hotPiece - 1, 1, 1}} {
			if got := seenInMemory(f, r.off, r.n); got != r.want {
				t.Errorf("%s: of %d bytes from %d on, %d were seen in memory, not %d", dir, r.n, r.off, got, r.want)
			}
		}
	}
}

// A part of a file that was never written has no pages in the cache until somebody
// reads it, so it stands for what left the cache. Where there is no disk, all is in
// memory.
func TestWhatNeedsADiskIsNotInMemory(t *testing.T) {
	for _, dir := range hotDirs(t) {
		needsADisk(t, hotFile(t, dir, 4*hotPiece))
	}
}

func needsADisk(t *testing.T, f *os.File) {
	t.Helper()
	page := make([]byte, pageSize)
	for _, at := range []int64{0, hotPiece - pageSize} { // the ends, not what is between them
		if _, err := f.WriteAt(page, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []struct {
		what string
		off  int64
		n    int
	}{{"a gap between two pages", 0, hotPiece}, {"no page at all", 2 * hotPiece, 10}, {"nothing at the end", hotPiece - pageSize, 2 * int(pageSize)},
		{"behind the end of the file", 4 * hotPiece, 10}} {
		want := 0
		if onlyMemory(int(f.Fd())) {
			want = r.n
		}
		if got := seenInMemory(f, r.off, r.n); got != want {
			t.Errorf("%s, %s: %d of %d bytes were seen in memory, not %d", f.Name(), r.what, got, r.n, want)
		}
	}
}

// A reader that takes little at a time makes the sender wait again and again; no wait
// may miss that there is room.
func TestAnswersReachAReaderThatIsSlow(t *testing.T) {
	const size = 8 << 20
	for _, dir := range hotDirs(t) {
		f := hotFile(t, dir, size)
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i >> 8 * 7)
		}
		if _, err := f.WriteAt(want[:size/2], 0); err != nil { // the rest has no pages
			t.Fatal(err)
		}
		clear(want[size/2:])
		from, to := connected(t)
		from.(*net.TCPConn).SetWriteBuffer(64 << 10)
		from.SetWriteDeadline(time.Now().Add(time.Minute))
		sent := make(chan error, 1)
		go func() {
			n, err := routeTo(from).send(f.Fd(), 0, size)
			if err == nil && n != size {
				err = io.ErrShortWrite
			}
			sent <- err
		}()
		got := make([]byte, size)
		for at, step := 0, 1; at < size; step = step%50_000 + 977 {
			n, err := to.Read(got[at:min(at+step, size)])
			if err != nil {
				t.Fatalf("after %d bytes: %v", at, err)
			}
			at += n
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: other bytes came than are in the file", dir)
		}
	}
}

// A full connection is not tried again before it takes something.
func TestAFullConnectionIsSeen(t *testing.T) {
	from, to := connected(t)
	raw, err := from.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	asked := func() (is bool) {
		raw.Control(func(fd uintptr) { is = full(int(fd)) })
		return is
	}
	if asked() {
		t.Error("an empty connection is full")
	}
	from.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	for b := make([]byte, 1<<20); err == nil; {
		_, err = from.Write(b)
	}
	if !asked() {
		t.Error("a connection that takes nothing is not full")
	}
	go io.Copy(io.Discard, to)
	from.SetWriteDeadline(time.Time{})
	if _, err := from.Write([]byte{1}); err != nil {
		t.Error(err)
	}
	to.Close()
}

func BenchmarkInMemory(b *testing.B) {
	for i, dir := range hotDirs(b) {
		f := hotFile(b, dir, 0)
		f.Write(make([]byte, 8<<20))
		b.Run([]string{"temporary", "shm"}[i], func(b *testing.B) {
			for i := range b.N {
				inMemory(int(f.Fd()), int64(i%64)<<16+100, hotPiece)
			}
		})
	}
}
