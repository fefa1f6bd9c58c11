package transport

import (
	"bytes"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// pipes is a listener of in-memory connections, for tests with a fake clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(t *testing.T) *raw {
	here, there := net.Pipe()
	p.conns <- there
	t.Cleanup(func() { here.Close() })
	return &raw{t, here}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		startBench(t, l, Options{IdleLimit: 2 * time.Second})
		c := l.dial(t)
		start := time.Now()
		c.wantEnd()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("closed after %v", took)
		}
	})
}

// A client that sends on and on and reads nothing is served no further than its
// answers go, whatever it asks.
func TestAnswersThatNobodyReadsDoNotPileUp(t *testing.T) {
	for name, ask := range map[string]struct {
		req  kmsg.Request
		most int
	}{"produce": {produce(), 4}, "metadata": {metadata(), 1}, "versions": {apiVersions(3), 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const asked = 50
				l := newPipes()
				b := startBench(t, l, Options{MaxPipelined: 4})
				c := l.dial(t)
				go c.write(bytes.Repeat(frameOf(1, ask.req), asked))
				served := 0
				serve := func() {
					for synctest.Wait(); len(b.requests) > 0; synctest.Wait() {
						r := <-b.requests
						r.Reply(answerOf(r))
						served++
					}
				}
				if serve(); served != ask.most {
					t.Errorf("%d requests were served before an answer was read, want %d", served, ask.most)
				}
				for range asked {
					c.wantID(1)
					serve()
				}
				if served != asked {
					t.Errorf("%d of %d requests were served", served, asked)
				}
			})
		})
	}
}

// counted is a connection that counts the writes to it, by the deadline that is set ahead
// of each: a socket takes many buffers at once.
type counted struct {
	net.Conn
	writes atomic.Int32
}

func (c *counted) SetWriteDeadline(t time.Time) error {
	c.writes.Add(1)
	return c.Conn.SetWriteDeadline(t)
}

// As soon as the first answer that is owed is there, it and all that are ready behind it
// leave in one write.
func TestAnswersThatAreReadyLeaveInOneWrite(t *testing.T) {
	l := newPipes()
	b := startBench(t, l, Options{})
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close() })
	out := &counted{Conn: there}
	l.conns <- out
	c := &raw{t, here}
	var open []*Request
	for id := range int32(10) {
		c.send(id, produce())
		open = append(open, <-b.requests)
	}
	for _, r := range slices.Backward(open) {
		r.Reply(answerOf(r))
	}
	for id := range int32(10) {
		c.wantID(id)
	}
	if n := out.writes.Load(); n != 1 {
		t.Errorf("10 answers took %d writes", n)
	}
}

// A connection that waits for an answer is not idle (case B248), be it a
// parked Fetch or a Produce that waits for followers.
func TestConnectionsThatWaitForAnAnswerAreNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		b := startBench(t, l, Options{IdleLimit: 2 * time.Second})
		fetch, prod := l.dial(t), l.dial(t)
		fetch.send(1, metadata())
		prod.send(1, produce())
		parked := []*Request{<-b.requests, <-b.requests}
		time.Sleep(5 * time.Second)
		for _, r := range parked {
			r.Reply(answerOf(r))
		}
		fetch.wantID(1)
		prod.wantID(1)
		fetch.wantEnd()
		prod.wantEnd()
	})
}

// A client that left takes its connection along, though its long poll goes on
// (case B255).
func TestAClientThatLeftIsNotWaitedFor(t *testing.T) {
	for name, req := range map[string]kmsg.Request{"produce": produce(), "metadata": metadata()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				b := startBench(t, l, Options{StallLimit: 30 * time.Second})
				c := l.dial(t)
				c.send(1, req)
				r := <-b.requests
				c.Close()
				start := time.Now()
				<-r.Conn.Closed()
				if took := time.Since(start); took != 30*time.Second {
					t.Errorf("closed after %v", took)
				}
				r.Reply(answerOf(r))
			})
		})
	}
}

func TestHalfSentFramesEndAtTheStallLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		b := startBench(t, l, Options{StallLimit: time.Second})
		c := l.dial(t)
		frame := frameOf(1, produceOf(5000))
		c.write(frame[:1000])
		start := time.Now()
		c.wantEnd()
		if took := time.Since(start); took != time.Second {
			t.Errorf("closed after %v", took)
		}
		if got := b.InFlight(); got != 0 {
			t.Errorf("%d bytes still count as in flight", got)
		}
	})
}

func TestClientsThatReadNothingAreClosedAtTheStallLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		b := startBench(t, l, Options{StallLimit: time.Second})
		c := l.dial(t)
		c.send(1, metadata())
		r := <-b.requests
		r.Reply(answerOf(r)) // a pipe has no buffer: the write waits for a reader
		start := time.Now()
		<-r.Conn.Closed()
		if took := time.Since(start); took != time.Second {
			t.Errorf("closed after %v", took)
		}
	})
}

// Nothing is handed over while an exclusive request waits, and an exclusive
// request waits for the Produces before it (R13.8).
func TestNothingOvertakesARequestThatIsNotProduce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		b := startBench(t, l, Options{})
		c := l.dial(t)
		go func() {
			c.send(1, produce())
			c.send(2, metadata())
			c.send(3, produce())
			c.send(4, produce())
		}()
		answer := func(want int32) {
			r := <-b.requests
			if r.Header.CorrelationID != want {
				t.Fatalf("request %d was handed over, want %d", r.Header.CorrelationID, want)
			}
			synctest.Wait()
			if want <= 2 && len(b.requests) > 0 {
				t.Fatalf("request %d was handed over before %d was answered", (<-b.requests).Header.CorrelationID, want)
			}
			r.Reply(answerOf(r))
			c.wantID(want)
		}
		for id := int32(1); id <= 4; id++ {
			answer(id)
		}
	})
}

func TestAcceptGoesOnWhenDescriptorsRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &scarce{pipes: newPipes(), failures: 3}
		b := startBench(t, l, Options{})
		c := l.dial(t)
		c.send(1, metadata())
		r := <-b.requests
		r.Reply(answerOf(r))
		c.wantID(1)
	})
}

// scarce is a listener whose first accepts fail.
type scarce struct {
	*pipes
	failures int
}

type tooManyFiles struct{ error }

func (tooManyFiles) Error() string { return "too many open files" }

func (s *scarce) Accept() (net.Conn, error) {
	if s.failures > 0 {
		s.failures--
		return nil, tooManyFiles{}
	}
	return s.pipes.Accept()
}
