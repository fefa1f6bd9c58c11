package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// Whatever way a connection is read, its readers tell its ends apart by these.
func TestAnInletEndsAsAConnectionDoes(t *testing.T) {
	for _, c := range []struct {
		what string
		end  func(here, peer *net.TCPConn)
		want error
	}{
		{"the peer ends its side", func(_, peer *net.TCPConn) { peer.CloseWrite() }, io.EOF},
		{"the peer is gone", func(_, peer *net.TCPConn) { peer.SetLinger(0); peer.Close() }, syscall.ECONNRESET},
		{"it is closed here", func(here, _ *net.TCPConn) { here.Close() }, net.ErrClosed},
		{"nothing comes in time", func(here, _ *net.TCPConn) { here.SetReadDeadline(time.Now().Add(time.Millisecond)) }, os.ErrDeadlineExceeded},
	} {
		here, peer := connected(t)
		in := inletOf(here)
		if _, err := peer.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 10)
		if n, err := io.ReadAtLeast(in, b, 3); n != 3 || err != nil || string(b[:n]) != "abc" {
			t.Errorf("%s: before it, %q was read: %v", c.what, b[:n], err)
		}
		if n, err := in.Read(nil); n != 0 || err != nil {
			t.Errorf("%s: reading into nothing gives %d, %v", c.what, n, err)
		}
		read := make(chan error)
		go func() {
			_, err := in.Read(b)
			read <- err
		}()
		c.end(here.(*net.TCPConn), peer.(*net.TCPConn))
		if err := <-read; !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
		here.Close()
		if n, err := in.Read(b); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: closed, it gives %d, %v", c.what, n, err)
		}
	}
}

func TestReadingFromAConnectionTakesNoMemory(t *testing.T) {
	here, peer := connected(t)
	in, b := inletOf(here), make([]byte, 10)
	if n := testing.AllocsPerRun(100, func() {
		peer.Write(b)
		io.ReadFull(in, b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
