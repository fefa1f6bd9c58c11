package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
	return b.waiting
}
