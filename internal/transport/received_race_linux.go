//go:build race

package transport

import "syscall"

// received is a read that the race detector sees: bytes that come into a buffer which
// somebody else still uses are found.
func received(fd uintptr, b []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), b)
	e, _ := err.(syscall.Errno) // Read returns no other kind
	return max(n, 0), e
}
