package transport

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// What comes after a reader found nothing wakes it.
func TestAReaderThatWaitsIsGivenWhatComes(t *testing.T) {
	here, peer := connected(t)
	in, ok := inletOf(here).(*inlet)
	if !ok {
		t.Fatal("the connection is read as others are")
	}
	nothing, once := make(chan struct{}), sync.Once{}
	in.step = func(fd uintptr) bool {
		done := in.take(fd)
		if !done {
			once.Do(func() { close(nothing) })
		}
		return done
	}
	read, b := make(chan error), make([]byte, 10)
	go func() {
		n, err := in.Read(b)
		if string(b[:n]) != "abc" {
			err = fmt.Errorf("%q, %w", b[:n], err)
		}
		read <- err
	}()
	<-nothing
	if _, err := peer.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
}

// A copy holds a processor of the runtime, which nothing can take away meanwhile.
func TestOneReadCopiesSoMuchAtMost(t *testing.T) {
	here, peer := connected(t)
	if _, err := peer.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	in, asked := inletOf(here).(*inlet), 0
	in.step = func(fd uintptr) bool {
		asked = len(in.b)
		return in.take(fd)
	}
	if n, err := in.Read(make([]byte, 4<<20)); n == 0 || err != nil || asked != lowMost {
		t.Errorf("%d bytes were asked for: %d, %v", asked, n, err)
	}
}

// Both sides of a connection are read without word to the scheduler.
func TestConnectionsAreReadByAnInlet(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	c.send(1, metadata())
	r := <-b.requests
	for side, from := range map[string]io.Reader{"a server": r.Conn.in.from, "a client": connect(t, b, ClientOptions{}).in.from} {
		if _, ok := from.(*inlet); !ok {
			t.Errorf("%s reads from a %T", side, from)
		}
	}
	r.Reply(answerOf(r))
	c.wantID(1)
}

// sealed is a connection that is to be read by its inlet only.
type sealed struct {
	net.Conn
	t *testing.T
}

func (c sealed) Read(b []byte) (int, error) {
	c.t.Error("a connection is read beside its inlet")
	return c.Conn.Read(b)
}

// Neither what is read ahead nor the rest of a large frame goes another way.
func TestFramesAreReadByTheInletOnly(t *testing.T) {
	here, peer := connected(t)
	f := frameReader{nc: sealed{here, t}, from: inletOf(here), buf: make([]byte, readAhead)}
	want := frameOf(1, produceOf(lowMin))
	go peer.Write(want)
	if err := f.fill(8, 0); err != nil {
		t.Fatal(err)
	}
	frame, err := f.rest(newFrame(len(want)-4), len(want)-4, 0, nil)
	if err != nil || !bytes.Equal(frame.buf, want[4:]) {
		t.Fatalf("another frame came, %v", err)
	}
	frame.Release()
}
