package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func pair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	n := New()
	l, err := n.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	near, err := n.Dial(context.Background(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

func TestBytesArriveAndThenTheEnd(t *testing.T) {
	near, far := pair(t)
	near.Write([]byte("hello"))
	near.Close()
	if got, err := io.ReadAll(far); err != nil || string(got) != "hello" {
		t.Fatalf("read %q, %v", got, err)
	}
	if _, err := far.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("write to a closed end: %v", err)
	}
}

func TestADialIsRefusedWhereNobodyListens(t *testing.T) {
	n := New()
	l, _ := n.Listen("127.0.0.1:0")
	addr := l.Addr().String()
	l.Close()
	if _, err := n.Dial(context.Background(), addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial: %v", err)
	}
	if _, err := n.Listen(addr); err != nil {
		t.Fatalf("listen again: %v", err)
	}
}

func TestADeadlineEndsAReadOnAFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := pair(t)
		start := time.Now()
		near.SetReadDeadline(start.Add(time.Hour))
		_, err := near.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Hour {
			t.Fatalf("read ended after %v with %v", time.Since(start), err)
		}
	})
}

func TestAFullStreamHoldsItsWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := pair(t)
		wrote := make(chan struct{})
		go func() { near.Write(make([]byte, streamSize+1)); close(wrote) }()
		synctest.Wait()
		select {
		case <-wrote:
			t.Fatal("more than the stream holds was written before a read")
		default:
		}
		io.ReadFull(far, make([]byte, 10))
		<-wrote
	})
}

func TestADelayedByteArrivesInItsTimeAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 3 * time.Millisecond
		near, far := Pipe(&net.TCPAddr{}, &net.TCPAddr{}, delay)
		start := time.Now()
		near.Write([]byte("ab"))
		time.Sleep(time.Millisecond)
		near.Write([]byte("cd"))
		near.Close()
		buf := make([]byte, 8)
		for _, want := range []struct {
			bytes string
			after time.Duration
		}{{"ab", delay}, {"cd", delay + time.Millisecond}} {
			n, err := far.Read(buf[:])
			if took := time.Since(start); err != nil || string(buf[:n]) != want.bytes || took != want.after {
				t.Fatalf("read %q after %v, %v; want %q after %v", buf[:n], took, err, want.bytes, want.after)
			}
		}
		if _, err := far.Read(buf); err != io.EOF {
			t.Fatalf("after the last byte: %v", err)
		}
	})
}

func TestADeadlineComesBeforeADelayedByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := Pipe(&net.TCPAddr{}, &net.TCPAddr{}, time.Second)
		near.Write([]byte("abc"))
		buf := make([]byte, 1)
		far.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := far.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read: %v", err)
		}
		far.SetReadDeadline(time.Time{})
		for _, want := range "abc" {
			if _, err := far.Read(buf); err != nil || rune(buf[0]) != want {
				t.Fatalf("read %q, %v, want %q", buf, err, want)
			}
		}
	})
}

func TestNoDialHangsOnAListenerThatCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := New().Listen("127.0.0.1:0")
		l.Close()
		for range 100 { // dials that found the listener just before
			c, err := l.(*listener).connect(context.Background(), l.Addr())
			if err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatalf("the dial ends with %v", err)
			}
		}
	})
}
