package cold

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forget asks the kernel to drop the pages of the file.
func forget(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// resident returns how many bytes of the file are in memory, by whole pages.
func resident(f *os.File, size int64) (int64, error) {
	m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	defer unix.Munmap(m)
	page := os.Getpagesize()
	in := make([]byte, (len(m)+page-1)/page)
	if _, _, no := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&in[0]))); no != 0 {
		return 0, no
	}
	n := int64(0)
	for _, b := range in {
		n += int64(b & 1)
	}
	return n * int64(page), nil
}
