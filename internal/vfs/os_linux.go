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

// openUntimed opens a file so that reading it does not change when it was last read:
// that is a change of the file like any other, which waits for the journal. Only its
// owner may ask for this; others open it as usual.
func openUntimed(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOATIME, 0o644)
	if errors.Is(err, unix.EPERM) {
		return os.OpenFile(path, flags, 0o644)
	}
	return f, err
}

// memory is osFile.Memory of a file. Others than these lock a file against who writes
// it, ask a server, or are not known; and of these a file whose reads are timed may wait
// for the journal.
func memory(f *os.File) (all, asked bool) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return false, false
	}
	switch uint32(s.Type) { // signed on some processors
	case unix.TMPFS_MAGIC:
		return true, false
	case unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return false, untimed(f) || s.Flags&unix.MS_NOATIME != 0
	}
	return false, false
}

// untimed says that reading the file does not change it.
func untimed(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_NOATIME != 0
}
