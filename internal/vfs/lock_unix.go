//go:build unix

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes two locks. The POSIX record lock excludes a Kafka broker, whose
// FileChannel takes the same; flock excludes a second holder in this process,
// which a record lock lets through.
func lockFile(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(f.Fd(), unix.F_SETLK, &whole)
}
