package ceiling

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// spent runs f on a thread of its own and returns the processor time of that
// thread, user and system.
func spent(f func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := thread()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := thread()
	return after - before, err
}

// thread reads the clock of the calling thread's time on a processor.
func thread() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}

func (m mover) sendfile(f, to *os.File) error {
	at := int64(0)
	for at < m.bytes {
		if _, err := unix.Sendfile(int(to.Fd()), int(f.Fd()), &at, min(m.piece, int(m.bytes-at))); err != nil {
			return err
		}
	}
	return nil
}

func (m mover) mapped(f, to *os.File) error {
	b, err := unix.Mmap(int(f.Fd()), 0, int(m.bytes), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	defer unix.Munmap(b)
	for at := 0; at < len(b); {
		n, err := to.Write(b[at:min(at+m.piece, len(b))])
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}
