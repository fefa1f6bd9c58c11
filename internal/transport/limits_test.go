package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

func TestConnectionsBeyondTheBoundAreClosed(t *testing.T) {
	for name, opts := range map[string]Options{
		"in all": {MaxConnections: 2}, "per address": {MaxConnectionsPerIP: 2},
	} {
		t.Run(name, func(t *testing.T) {
			opts.SendBuffer, opts.ReceiveBuffer = 64<<10, 64<<10
			b := newBench(t, opts)
			one, two := b.dial(t), b.dial(t)
			for id, c := range []*raw{one, two} {
				c.send(int32(id), metadata())
				r := <-b.requests
				r.Reply(answerOf(r))
				c.wantID(int32(id))
			}
			b.dial(t).wantEnd()
			two.Close()
			for b.Connections() > 1 { // its goroutines take notice
				runtime.Gosched()
			}
			three := b.dial(t)
			three.send(9, metadata())
			r := <-b.requests
			r.Reply(answerOf(r))
			three.wantID(9)
		})
	}
}

// What cannot be a frame is refused by its first four bytes: the client may send
// no more, and wait for an answer (case B14).
func TestASizeThatNoFrameHasEndsTheConnection(t *testing.T) {
	sizes := []uint32{0, 1, 7, 1<<20 + 1, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1,
		binary.BigEndian.Uint32([]byte("GET ")), 0x16030102 /* the hello of TLS */}
	b := newBench(t, Options{MaxRequest: 1 << 20})
	for _, size := range sizes {
		c := b.dial(t)
		c.write(binary.BigEndian.AppendUint32(nil, size))
		c.wantEnd()
	}
}

// One bad client costs a bounded number of log lines, and none goes unnoticed
// (case B258).
func TestBadClientsDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newPipes()
		startBench(t, l, Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
		bad := func(n int) {
			for range n {
				c := l.dial(t)
				c.write([]byte("GET / HTTP/1.1\r\n\r\n"))
				c.wantEnd()
			}
			synctest.Wait()
		}
		bad(1000)
		if got := strings.Count(out.String(), "connection closed"); got != noiseLines {
			t.Errorf("%d lines, want %d", got, noiseLines)
		}
		time.Sleep(noiseWindow)
		bad(1)
		if !strings.Contains(out.String(), "lines=980") {
			t.Errorf("the log does not tell what it left out:\n%s", out.String())
		}
	})
}

// A server that stops ends connections without a warning; other handlers' reasons
// are told.
func TestOnlyAStopIsSilent(t *testing.T) {
	for why, lines := range map[error]int{ErrStopping: 0, errors.New("bad batch"): 1} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			l := newPipes()
			b := startBench(t, l, Options{Log: slog.New(slog.NewTextHandler(&out, nil))})
			c := l.dial(t)
			c.send(1, produce())
			(<-b.requests).CloseConn(why)
			c.wantEnd()
			synctest.Wait()
			if got := strings.Count(out.String(), "level=WARN"); got != lines {
				t.Errorf("%d warnings that %q, want %d", got, why, lines)
			}
		})
	}
}

// What packed batches unpack to is bounded for all connections together. More than the
// whole bound is held alone, and who waits goes on or hears that the connection ended.
func TestBytesUnpackedAreBounded(t *testing.T) {
	b := newBench(t, Options{MaxUnpacked: 1000})
	one, two := b.dial(t), b.dial(t)
	one.send(1, produceOf(10))
	r1 := <-b.requests
	two.send(1, produceOf(10))
	r2 := <-b.requests
	waiting := func(r *Request, n int64) chan bool {
		held := make(chan bool, 1)
		go func() { held <- r.Hold(n) }()
		for holdingBack(b.unpacked) == 0 {
			runtime.Gosched()
		}
		if len(held) > 0 {
			t.Errorf("%d more bytes are held beyond the bound", n)
		}
		return held
	}
	if !r1.Hold(5000) {
		t.Fatal("more than the bound is not held alone")
	}
	held := waiting(r2, 600)
	r1.Drop(5000)
	if !<-held || !r1.Hold(400) {
		t.Error("there is room, and it is not given")
	}
	held = waiting(r1, 1)
	r2.CloseConn(errors.New("enough"))
	r1.CloseConn(errors.New("enough"))
	if <-held {
		t.Error("room is given to a connection that ended")
	}
	r2.Drop(600)
	r1.Drop(400)
}

func holdingBack(b *budget) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Who wants much is not kept out by many who want little, and who gives up is forgotten.
func TestABudgetServesInTheOrderOfComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *task.Runtime
		b, never := newBudget(rt, 100), rt.NewSignal()
		if !b.take(60, task.Forever, never) {
			t.Fatal("there is room")
		}
		served := make(chan string, 3)
		ask := asking(b, served, never)
		ask("large", 500, task.Forever)
		ask("impatient", 20, time.Second)
		ask("small", 10, task.Forever)
		if len(served) > 0 {
			t.Errorf("%s was served before one that came first", <-served)
		}
		if got := <-served; got != "impatient gave up" {
			t.Error(got)
		}
		b.give(60)
		if got := <-served; got != "large" {
			t.Error(got)
		}
		synctest.Wait()
		if len(served) > 0 {
			t.Error("there is room beside one that takes all")
		}
		b.give(500)
		if got := <-served; got != "small" {
			t.Error(got)
		}
		b.give(10)
		if b.used != 0 || len(b.waiting) != 0 {
			t.Errorf("%d bytes are held, %d wait", b.used, len(b.waiting))
		}
	})
}

// asking takes bytes of a budget by name, and tells what became of it.
func asking(b *budget, served chan string, done *task.Signal) func(name string, n int64, limit time.Duration) {
	return func(name string, n int64, limit time.Duration) {
		go func() {
			if !b.take(n, limit, done) {
				name += " gave up"
			}
			served <- name
		}()
		synctest.Wait()
	}
}

// Where the first in the queue gives up, those behind it may have room.
func TestTheEndOfOneThatWaitsLetsOthersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *task.Runtime
		b, never, gone := newBudget(rt, 100), rt.NewSignal(), rt.NewSignal()
		b.take(60, task.Forever, never)
		first, second := make(chan bool), make(chan bool)
		go func() { first <- b.take(80, task.Forever, gone) }()
		synctest.Wait()
		go func() { second <- b.take(30, task.Forever, never) }()
		synctest.Wait()
		gone.Close()
		if <-first || !<-second || b.used != 90 {
			t.Errorf("%d bytes are held", b.used)
		}
	})
}

// What batches grow to counts as what came: the next request waits until it is stored.
func TestWhatARequestGrewToCountsUntilItIsStored(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, requests, served := NewServer(l, Options{}), make(chan *Request, 2), make(chan error, 1)
	go func() {
		served <- s.Serve(HandlerFunc(func(r *Request) {
			if r.Header.CorrelationID == 1 {
				r.Grow(connWindow)
			}
			requests <- r
		}))
	}()
	b := &bench{Server: s}
	c := b.dial(t)
	c.send(1, produceOf(10))
	c.send(2, produceOf(10))
	first := <-requests
	for holdingBack(first.Conn.window) == 0 {
		runtime.Gosched()
	}
	if len(requests) > 0 {
		t.Error("the next request was read")
	}
	first.Free()
	second := <-requests
	for id, r := range []*Request{first, second} {
		r.Reply(answerOf(r))
		c.wantID(int32(id + 1))
	}
	c.Close()
	s.Close(t.Context())
	if err := <-served; err != nil || s.budget.used != 0 {
		t.Errorf("%d bytes are held in the end, %v", s.budget.used, err)
	}
}
