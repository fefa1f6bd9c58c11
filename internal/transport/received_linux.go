//go:build !race

package transport

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// received copies what has come on a connection, and does not wait if nothing has.
func received(fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}
