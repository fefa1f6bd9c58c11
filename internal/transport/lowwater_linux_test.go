package transport

import (
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// noted is a listener that remembers the connection which it accepted last.
type noted struct {
	net.Listener
	conn net.Conn
}

func (l *noted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.conn = c
	}
	return c, err
}

// lowOf is how much has to come on a connection before its reader is woken. To say nothing
// is to say one byte.
func lowOf(t *testing.T, conn net.Conn) (n int) {
	t.Helper()
	err := rawOf(conn).Control(func(fd uintptr) {
		var err error
		if n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
	return max(n, 1)
}

// steps is a preview that notes how the reader of a frame was woken.
type steps struct {
	came []int // bytes of the frame after each read
	low  []int // what that read waited for
	look func() int
}

func (s *steps) Extend(frame []byte) {
	s.came, s.low = append(s.came, len(frame)), append(s.low, s.look())
}

// The reader of a large frame is not woken for each packet: it waits for all that is to
// come, up to lowMost. For what comes next it waits as before.
func TestALargeFrameIsWaitedForInLargeSteps(t *testing.T) {
	for _, size := range []int{previewMin, lowMin - 1000, lowMin, lowMost, 3 * lowMost} {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l := &noted{Listener: tcp}
		b := startBench(t, l, Options{Preview: func(int16) Preview { return &steps{look: func() int { return lowOf(t, l.conn) }} }})
		c := b.dial(t)
		frame := frameOf(1, produceOf(size))
		c.write(slices.Concat(frame, frameOf(2, metadata())))
		r := <-b.requests
		checkSteps(t, r.Preview.(*steps), len(frame)-4)
		r.Reply(answerOf(r))
		r = <-b.requests
		if n := lowOf(t, l.conn); n != 1 {
			t.Errorf("behind a frame of %d bytes, %d have to come", size, n)
		}
		r.Reply(answerOf(r))
		c.wantID(1)
		c.wantID(2)
	}
}

func checkSteps(t *testing.T, s *steps, size int) {
	t.Helper()
	before := readAhead - 4 // what is read ahead, as a rule
	for i, low := range s.low {
		least, most := 1, 1
		if size >= lowMin {
			least, most = min(size-before, lowMost), min(size-before, lowMost)
			if i == 0 {
				most = min(size, lowMost)
			}
		}
		if low < least || low > most {
			t.Errorf("of a frame of %d bytes, %d came, and its reader waits for %d more, not %d", size, before, low, least)
		}
		before = s.came[i]
	}
	if len(s.low) == 0 {
		t.Errorf("a frame of %d bytes was not seen", size)
	}
}

// crumbs is a preview that hands on how much of a frame there is.
type crumbs chan int

func (c crumbs) Extend(frame []byte) { c <- len(frame) }

// await waits until so much of the frame came.
func (c crumbs) await(t *testing.T, n int, ended chan error) {
	t.Helper()
	for all := 0; all < n; {
		select {
		case all = <-c:
		case err := <-ended:
			t.Fatalf("with %d bytes it is cut off: %v", n, err)
		}
	}
}

// A large frame over a slow connection takes its time. It is given up only when nothing
// at all comes for as long as a reader waits.
func TestASlowSenderOfALargeFrameIsNotCutOff(t *testing.T) {
	const limit = 300 * time.Millisecond
	here, peer := connected(t)
	f := frameReader{nc: here, from: inletOf(here), low: newLowWater(here), buf: make([]byte, 8), ahead: make([]byte, 4)}
	came, ended := make(crumbs), make(chan error)
	size, sent := 3*lowMin, 0
	go func() {
		frame, err := f.rest(newFrame(size), size, limit, came)
		if err == nil {
			frame.Release()
		}
		ended <- err
	}()
	for range 3 { // each less than what its reader waits for
		n, err := peer.Write(make([]byte, 1000))
		if err != nil {
			t.Fatal(err)
		}
		sent += n
		came.await(t, sent, ended)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("when nothing comes any more: %v", err)
	}
	if _, err := peer.Write([]byte("next")); err != nil {
		t.Fatal(err)
	}
	if err := f.fill(4, 0); err != nil { // which may take for ever
		t.Errorf("what is read without a limit: %v", err)
	}
}
