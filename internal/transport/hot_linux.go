//go:build amd64 || arm64

package transport

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hotPiece is how much of a file is looked at, at a time: more than the send buffer of
// a connection takes.
const hotPiece = 256 << 10

var pageSize = int64(os.Getpagesize())

// mover moves a range of a file to a connection that does not block.
type mover struct {
	file       int
	all, asked bool  // vfs: what of the file is in memory
	hot        int64 // offset up to which it was seen there
}

func newMover(file descriptor) mover {
	m := mover{file: int(file.Fd())}
	if f, ok := file.(interface{ Memory() (all, asked bool) }); ok {
		m.all, m.asked = f.Memory()
	}
	return m
}

// move is sendfile, and may move less. Bytes that need no disk are sent without word to
// the scheduler: such a call is nothing but work for this processor, and to prepare for
// a wait costs more than it saves (ADR 0023).
func (m *mover) move(conn int, off *int64, n int) (int, error) {
	if m.hot <= *off {
		m.hot = *off + int64(m.inMemory(*off, n))
	}
	if m.hot == *off {
		return unix.Sendfile(conn, m.file, off, n)
	}
	n = min(n, int(m.hot-*off))
	sent, _, e := syscall.RawSyscall6(unix.SYS_SENDFILE, uintptr(conn), uintptr(m.file), uintptr(unsafe.Pointer(off)), uintptr(n), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(sent), nil
}

// inMemory is how many of n bytes from off on can be read without a disk; 0 may also
// mean that the kernel cannot tell (Linux before 6.5). The answer holds for a moment.
func (m *mover) inMemory(off int64, n int) int {
	if m.all {
		return n
	}
	if n = min(n, hotPiece); m.asked && cached(m.file, off, n) && isRead(m.file, off+int64(n)-1) {
		return n
	}
	return 0
}

// isRead says that a page in the page cache holds what the file does. It may be on its
// way; the pages ahead of it come first then, as a rule. One that is not there would be asked for
// from the disk, at a place that nobody reads next.
func isRead(file int, at int64) bool {
	var b [1]byte
	v := unix.Iovec{Base: &b[0], Len: 1}
	n, _, e := syscall.RawSyscall6(unix.SYS_PREADV2, uintptr(file), uintptr(unsafe.Pointer(&v)), 1, uintptr(at), 0, unix.RWF_NOWAIT)
	return e == 0 && n == 1
}

// cached says that all pages of a range are in the page cache.
func cached(file int, off int64, n int) bool {
	span := unix.CachestatRange{Off: uint64(off), Len: uint64(n)}
	var stat unix.Cachestat_t
	_, _, e := syscall.RawSyscall6(unix.SYS_CACHESTAT, uintptr(file), uintptr(unsafe.Pointer(&span)), uintptr(unsafe.Pointer(&stat)), 0, 0, 0)
	last := off + int64(n) - 1
	return e == 0 && int64(stat.Cache) >= last/pageSize-off/pageSize+1
}
