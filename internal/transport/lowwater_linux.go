package transport

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// lowWater says how much must have come on a connection before its reader is
// woken.
type lowWater struct {
	raw syscall.RawConn // nil: of no use here
	at  int
}

func newLowWater(nc net.Conn) lowWater { return lowWater{raw: rawOf(nc), at: 1} }

// set takes effect for the next wait. A connection that cannot stays as it is.
func (w *lowWater) set(n int) {
	if w.raw == nil || n == w.at {
		return
	}
	_ = w.raw.Control(func(fd uintptr) {
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) == nil {
			w.at = n
		}
	})
}
