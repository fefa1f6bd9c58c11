package transport

import (
	"fmt"
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
