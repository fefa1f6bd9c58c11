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
