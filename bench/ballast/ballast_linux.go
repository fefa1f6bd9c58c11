package ballast

import "syscall"

// reserve maps memory of its own, in pages as large as they come: so it is free in
// one piece again.
func reserve(n int) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) // a wish
	return b, nil
}

func release(b []byte) error { return syscall.Munmap(b) }
