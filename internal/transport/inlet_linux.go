package transport

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// inlet reads from a connection without word to the scheduler: a read is a copy of at
// most lowMost, and waits for nothing but who holds the connection in the kernel just
// then (ADR 0023). When nothing is there it waits as any reader does, as long as the
// deadline allows.
type inlet struct {
	raw  syscall.RawConn
	step func(fd uintptr) (done bool) // take, made once
	b    []byte                       // to read into
	n    int
	err  error
}

// inletOf is how to read from a connection.
func inletOf(nc net.Conn) io.Reader {
	raw := rawOf(nc)
	if raw == nil {
		return nc
	}
	i := &inlet{raw: raw}
	i.step = i.take
	return i
}

func (i *inlet) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	i.b, i.n, i.err = b[:min(len(b), lowMost)], 0, nil
	err := i.raw.Read(i.step)
	i.b = nil
	if err == nil {
		err = i.err
	}
	return i.n, err
}

func (i *inlet) take(fd uintptr) bool {
	for {
		n, e := received(fd, i.b)
		switch {
		case e == unix.EINTR:
			continue
		case e == unix.EAGAIN:
			return false
		case e != 0:
			i.err = os.NewSyscallError("read", e)
		case n == 0:
			i.err = io.EOF
		default:
			i.n = n
		}
		return true
	}
}
