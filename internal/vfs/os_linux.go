package vfs

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxVec is how many buffers one pwritev takes (IOV_MAX).
const maxVec = 1024

// writeVec writes with pwritev, going on after short writes.
func writeVec(f *os.File, bufs [][]byte, off int64) (int64, error) {
	var done int64
	for len(bufs) > 0 {
		n, err := unix.Pwritev(int(f.Fd()), bufs[:min(len(bufs), maxVec)], off+done)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, &os.PathError{Op: "pwritev", Path: f.Name(), Err: err}
		}
		if n == 0 && len(bufs[0]) > 0 {
			return done, io.ErrShortWrite
		}
		done += int64(n)
		for len(bufs) > 0 && n >= len(bufs[0]) {
			n -= len(bufs[0])
			bufs = bufs[1:]
		}
		if n > 0 {
			bufs[0] = bufs[0][n:]
		}
	}
	return done, nil
}

func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}
