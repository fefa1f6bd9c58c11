package least

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// pass sends a part of a file.
func pass(to, file *os.File, at int64, n int) error {
	for n > 0 {
		sent, err := unix.Sendfile(int(to.Fd()), int(file.Fd()), &at, n)
		if err != nil && err != unix.EINTR {
			return err
		}
		if err == nil && sent == 0 {
			return io.ErrUnexpectedEOF
		}
		n -= max(0, sent)
	}
	return nil
}

// ahead sends what a part of a file follows: it waits for that, to leave with it.
func ahead(to *os.File, b []byte) error {
	for len(b) > 0 {
		sent, err := unix.SendmsgBuffers(int(to.Fd()), [][]byte{b}, nil, nil, unix.MSG_MORE)
		if err != nil && err != unix.EINTR {
			return err
		}
		b = b[max(0, sent):]
	}
	return nil
}

// receive reads until b is full, in one call; a signal may leave it shorter. The thread
// may wake and sleep inside it: with SO_RCVLOWAT it would not, but a call that took a
// part sleeps until that many bytes more are there, at the end of a batch for ever.
func receive(from *os.File, b []byte) (int, error) {
	n, _, err := unix.Recvfrom(int(from.Fd()), b, unix.MSG_WAITALL)
	switch {
	case err == unix.EINTR:
		return 0, nil
	case err == nil && n == 0:
		return 0, io.EOF
	}
	return n, err
}
