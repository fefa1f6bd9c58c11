//go:build amd64 || arm64

package transport

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// told is a file of which is known what vfs says of its file system.
type told struct {
	*os.File
	all, asked bool
}

func (f told) Memory() (all, asked bool) { return f.all, f.asked }

func toldFile(t testing.TB, dir string, all, asked bool) told {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return told{f, all, asked}
}

// memoryDir is a directory without a disk, if this machine has one.
func memoryDir(t testing.TB) (dir string, ok bool) {
	dir, err := os.MkdirTemp("/dev/shm", "tidemark-")
	if err != nil {
		return "", false
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir, true
}

// asks says that the kernel can tell what of a file is in memory.
func asks(t testing.TB, f told) bool {
	t.Helper()
	if _, err := f.WriteAt([]byte{1}, 0); err != nil {
		t.Fatal(err)
	}
	span, stat := unix.CachestatRange{Len: 1}, unix.Cachestat_t{}
	_, err := unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 1)}, 0, unix.RWF_NOWAIT)
	if err == nil {
		err = unix.Cachestat(uint(f.Fd()), &span, &stat, 0)
	}
	if err != nil {
		t.Logf("of %s the kernel does not tell what is in memory: %v", f.Name(), err)
	}
	return err == nil
}

// seenInMemory asks a few times: the kernel's count misses a page now and then.
func seenInMemory(f told, off int64, n int) (most int) {
	m := newMover(f)
	for range 20 {
		most = max(most, m.inMemory(off, n))
	}
	return most
}

func TestWhatWasWrittenIsInMemory(t *testing.T) {
	f := toldFile(t, t.TempDir(), false, true)
	if !asks(t, f) {
		return
	}
	if _, err := f.WriteAt(make([]byte, 2*hotPiece), 0); err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		off     int64
		n, want int
	}{{0, 1, 1}, {100, 8000, 8000}, {100, hotPiece, hotPiece}, {100, hotPiece + 1, hotPiece}, {2*hotPiece - 1, 1, 1}} {
		if got := seenInMemory(f, r.off, r.n); got != r.want {
			t.Errorf("of %d bytes from %d on, %d were seen in memory, not %d", r.n, r.off, got, r.want)
		}
	}
}

// A part of a file that was never written has no pages in the cache until somebody
// reads it, so it stands for what left the cache.
func TestWhatNeedsADiskIsNotInMemory(t *testing.T) {
	f := toldFile(t, t.TempDir(), false, true)
	if !asks(t, f) {
		return
	}
	if err := f.Truncate(4 * hotPiece); err != nil {
		t.Fatal(err)
	}
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
		if got := seenInMemory(f, r.off, r.n); got != 0 {
			t.Errorf("%s: %d of %d bytes were seen in memory", r.what, got, r.n)
		}
	}
	f.asked = false
	if got := seenInMemory(f, 0, 10); got != 0 {
		t.Error("of a file system that is not known, something was seen in memory")
	}
}

// A reader that takes little at a time makes the sender wait again and again; no wait
// may miss that there is room, whatever is known of the file.
func TestAnswersReachAReaderThatIsSlow(t *testing.T) {
	const size = 8 << 20
	want := make([]byte, size)
	for i := range size / 2 { // the rest has no pages
		want[i] = byte(i >> 8 * 7)
	}
	files := []told{toldFile(t, t.TempDir(), false, false), toldFile(t, t.TempDir(), false, true)}
	if dir, ok := memoryDir(t); ok {
		files = append(files, toldFile(t, dir, true, false))
	}
	for _, f := range files {
		if _, err := f.WriteAt(want[:size/2], 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		if got := sendSlowly(t, f, size); string(got) != string(want) {
			t.Errorf("%+v: other bytes came than are in the file", f)
		}
	}
}

func sendSlowly(t *testing.T, f told, size int) []byte {
	t.Helper()
	from, to := connected(t)
	from.(*net.TCPConn).SetWriteBuffer(16 << 10)
	to.(*net.TCPConn).SetReadBuffer(16 << 10)
	limit := time.Now().Add(time.Minute)
	from.SetWriteDeadline(limit)
	to.SetReadDeadline(limit)
	sent := make(chan error, 1)
	go func() {
		_, err := routeTo(from).send(f, 0, size)
		from.Close()
		sent <- err
	}()
	got := make([]byte, size)
	for at, step := 0, 1; at < size; step = step%50_000 + 977 {
		n, err := to.Read(got[at:min(at+step, size)])
		if err != nil {
			t.Fatalf("%+v: after %d bytes: %v", f, at, err)
		}
		at += n
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	return got
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
	for b, end := make([]byte, 1<<20), time.Now().Add(time.Minute); !asked(); {
		if time.Now().After(end) {
			t.Fatal("nobody reads, and the connection is never full")
		}
		from.SetWriteDeadline(time.Now().Add(time.Millisecond))
		from.Write(b)
	}
	go io.Copy(io.Discard, to)
	from.SetWriteDeadline(time.Now().Add(time.Minute))
	if _, err := from.Write([]byte{1}); err != nil {
		t.Error(err)
	}
}

// Bytes that were just written need no disk, so they leave without word.
func TestTheMoverSeesWhatIsHot(t *testing.T) {
	f := toldFile(t, t.TempDir(), false, true)
	if !asks(t, f) {
		return
	}
	if _, err := f.WriteAt(make([]byte, 100_000), 0); err != nil {
		t.Fatal(err)
	}
	from, to := connected(t)
	go io.Copy(io.Discard, to)
	raw, err := from.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	hot := false
	for range 20 { // the kernel's count misses a page now and then
		m, off := newMover(f), int64(0)
		raw.Write(func(conn uintptr) bool {
			_, err = m.move(int(conn), &off, 1000)
			return err != unix.EAGAIN
		})
		if err != nil || off != 1000 {
			t.Fatalf("it moved to %d: %v", off, err)
		}
		hot = hot || m.hot == 1000
	}
	if !hot {
		t.Error("what was written a moment ago was taken for cold")
	}
}

func BenchmarkInMemory(b *testing.B) {
	f := toldFile(b, b.TempDir(), false, true)
	f.Write(make([]byte, 8<<20))
	m := newMover(f)
	for i := range b.N {
		m.inMemory(int64(i%64)<<16+100, hotPiece)
	}
}
