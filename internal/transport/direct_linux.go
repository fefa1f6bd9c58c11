package transport

import (
	"errors"
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// route is a connection to which the kernel moves the bytes of files by itself. Nil
// when it does not.
type route struct{ raw syscall.RawConn }

// routeTo opens the route to a connection.
func routeTo(w io.Writer) *route {
	if raw := rawOf(w); raw != nil {
		return &route{raw}
	}
	return nil
}

// rawOf is the kernel's side of a connection; nil if it has none.
func rawOf(conn any) syscall.RawConn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// unsupported says that the kernel does not move bytes from such a file.
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

// send moves n bytes of a file from off on. It returns how many the kernel took,
// which is fewer only with an error.
func (r *route) send(file descriptor, off int64, n int) (int, error) {
	done, m := 0, newMover(file)
	err := r.repeat(func(conn int) (bool, error) {
		k, err := m.move(conn, &off, n-done)
		if err != nil {
			return false, err
		}
		if k == 0 {
			return false, io.ErrUnexpectedEOF
		}
		if done += k; done < n && full(conn) {
			return false, unix.EAGAIN
		}
		return done == n, nil
	})
	return done, err
}

// full says that a connection takes nothing at this moment. To ask costs less than to
// try, and to be told so is enough to be woken.
func full(conn int) bool {
	p, now := unix.PollFd{Fd: int32(conn), Events: unix.POLLOUT}, unix.Timespec{}
	n, _, e := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return e == 0 && n == 0
}

// write writes bytes that more will follow at once: the kernel need not send a
// packet for them alone.
func (r *route) write(bufs net.Buffers) error {
	return r.repeat(func(conn int) (bool, error) {
		n, err := unix.SendmsgBuffers(conn, bufs, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
		if err != nil {
			return false, err
		}
		bufs = after(bufs, n)
		return len(bufs) == 0, nil
	})
}

// repeat takes steps until one says that it was the last, or fails. When the
// connection takes nothing it waits, as long as its deadline allows.
func (r *route) repeat(step func(conn int) (last bool, err error)) error {
	failed := error(nil)
	err := r.raw.Write(func(conn uintptr) bool {
		for {
			last, err := step(int(conn))
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN):
				return false
			case err != nil || last:
				failed = err
				return true
			}
		}
	})
	return errors.Join(failed, err)
}

// after is what is left of the buffers behind the first n bytes.
func after(bufs net.Buffers, n int) net.Buffers {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	if len(bufs) > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
}
