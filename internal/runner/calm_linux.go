package runner

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// slack is how much later than asked for a sleeping thread may wake, in
// nanoseconds. Linux's default is 50 µs, and Go's runtime has a thread that sleeps
// for 20 µs at a time while there is anything to do: most wake-ups of a broker were
// its own. Nothing that a broker waits for by the clock is that exact.
const slack = 500_000

// Calm makes the threads of this process sleep longer. A thread hands its slack to
// those it makes, and the runtime's are made before any code of ours: so the program
// is executed once more, as the same process, with the slack set. Where that fails,
// the process goes on as it is. Call it before anything is read or opened.
func Calm() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || now >= slack {
		return
	}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0) != nil {
		return
	}
	if again, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || again < slack {
		return // it would execute for ever
	}
	if path, err := os.Executable(); err == nil {
		_ = syscall.Exec(path, os.Args, os.Environ()) // the process is shown by this name
	}
	_ = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}
