package load

import (
	"syscall"
	"time"
)

// sleep waits in the kernel: the runtime's timers wake an idle process up to a
// millisecond late, which would be measured as the cluster's.
func sleep(d time.Duration) {
	if d > 0 {
		t := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&t, nil) // a signal may cut it short; the caller looks at the clock
	}
}
