package ballast

import "syscall"

// reserve maps memory of its own, in small pages: a large one cannot be let go of in
// parts.
func reserve(n int) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = syscall.Madvise(b, syscall.MADV_NOHUGEPAGE) // a wish
	return b, nil
}

func letGo(b []byte) error { return syscall.Madvise(b, syscall.MADV_DONTNEED) }

func release(b []byte) error { return syscall.Munmap(b) }
