package stage

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

// conn is one end of a connection. Its bytes arrive in order; the end of the
// stream comes behind them.
type conn struct {
	process       *Process
	peer          *conn
	local, remote *net.TCPAddr

	buf      []byte       // arrived and not read
	flying   int          // bytes written here that the peer has not read
	eof      bool         // the peer ended, and all its bytes have arrived
	err      error        // what reads and writes fail with
	closed   bool         // on this side
	gone     bool         // the process behind it, or its machine, is gone
	sent     []*segment   // on their way
	change   *task.Signal // something arrived, or the connection ended
	room     *task.Signal // the peer has read
	readBy   time.Time    // deadlines
	writeBy  time.Time
	reader   *task.Waiter
	writer   *task.Waiter
	finished bool // its end was sent
}

// window is how many bytes may be under way one way, and chunk how large a
// segment is.
const (
	window = 1 << 20
	chunk  = 64 << 10
	// giveUp is after how long without an answer TCP gives a connection up.
	giveUp = 15 * time.Second
)

func pipe(near, far *Process, local, to *net.TCPAddr) (*conn, *conn) {
	a := newConn(near, local, to)
	b := newConn(far, to, local)
	a.peer, b.peer = b, a
	return a, b
}

func newConn(p *Process, local, remote *net.TCPAddr) *conn {
	c := &conn{process: p, local: local, remote: remote, change: p.Runtime.NewSignal(), room: p.Runtime.NewSignal(),
		reader: p.Runtime.NewWaiter(), writer: p.Runtime.NewWaiter()}
	p.conns = append(p.conns, c)
	return c
}

// Read returns what has arrived, or waits for it.
func (c *conn) Read(b []byte) (int, error) {
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case len(c.buf) > 0:
			n := copy(b, c.buf)
			c.buf = c.buf[n:]
			c.peer.flying -= n
			c.peer.room.Raise()
			return n, nil
		case c.err != nil:
			return 0, c.err
		case c.eof:
			return 0, io.EOF
		}
		d, late := c.left(c.readBy)
		if late {
			return 0, os.ErrDeadlineExceeded
		}
		c.reader.Wait(nil, d, c.change)
	}
}

// left is how long a deadline leaves.
func (c *conn) left(by time.Time) (d time.Duration, late bool) {
	if by.IsZero() {
		return task.Forever, false
	}
	d = by.Sub(c.process.Runtime.Now())
	return d, d <= 0
}

// Write sends b in segments. It waits while the peer does not read.
func (c *conn) Write(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		switch {
		case c.closed:
			return n, net.ErrClosed
		case c.err != nil:
			return n, c.err
		case c.process.dead:
			return n, net.ErrClosed
		}
		if c.flying >= window {
			d, late := c.left(c.writeBy)
			if late {
				return n, os.ErrDeadlineExceeded
			}
			c.writer.Wait(nil, d, c.room)
			continue
		}
		m := min(len(b)-n, chunk)
		c.transmit(append([]byte(nil), b[n:n+m]...))
		n += m
	}
	return n, nil
}

// transmit sends one segment behind all earlier ones.
func (c *conn) transmit(b []byte) {
	c.flying += len(b)
	sent := c.process.stage.now
	c.deliver(len(b), func(p *conn) {
		switch {
		case p.gone:
			c.unanswered(sent)
		case p.closed:
			c.refuse()
		case p.process.stage.now-sent > giveUp:
			p.fails(syscall.ETIMEDOUT)
			c.fails(syscall.ETIMEDOUT)
		default:
			p.buf = append(p.buf, b...)
			p.change.Raise()
		}
	})
}

// unanswered is what becomes of bytes for an end that is gone: they are refused if
// its machine runs, and else sent again, until somebody refuses them or TCP has no
// more patience.
func (c *conn) unanswered(sent time.Duration) {
	s := c.process.stage
	switch {
	case c.closed || c.err != nil:
	case c.peer.process.Machine.on:
		c.refuse()
	case s.now-sent > giveUp:
		c.fails(syscall.ETIMEDOUT)
	default:
		s.After(5*resend, func() { c.unanswered(sent) })
	}
}

// segment is a part of a stream on its way.
type segment struct {
	arrive  func(p *conn)
	through bool
}

// deliver has arrive called at the peer, in the order of the calls: a segment
// that was lost holds up those behind it.
func (c *conn) deliver(bytes int, arrive func(p *conn)) {
	seg := &segment{arrive: arrive}
	c.sent = append(c.sent, seg)
	c.process.stage.Net.send(c.process.Machine.IP, c.peer.process.Machine.IP, bytes, func() {
		seg.through = true
		for len(c.sent) > 0 && c.sent[0].through {
			first := c.sent[0]
			c.sent = c.sent[1:]
			first.arrive(c.peer)
		}
	})
}

// refuse is the answer to bytes for an end that is gone.
func (c *conn) refuse() {
	s := c.process.stage
	s.Net.send(c.peer.process.Machine.IP, c.process.Machine.IP, 64, func() { c.fails(syscall.ECONNRESET) })
}

// fails ends the connection on this side.
func (c *conn) fails(err error) {
	if c.err == nil && !c.closed {
		c.err = err
		c.change.Raise()
		c.room.Raise()
	}
}

// Close ends the connection; the peer reads what was written, then the end.
func (c *conn) Close() error {
	if c.process.dead || c.closed {
		return nil
	}
	c.closed = true
	c.finish()
	c.change.Raise()
	c.room.Raise()
	c.process.drop(c)
	return nil
}

// finish sends the end of the stream.
func (c *conn) finish() {
	if c.finished {
		return
	}
	c.finished = true
	c.deliver(64, func(p *conn) {
		p.eof = true
		p.change.Raise()
		p.room.Raise()
	})
}

// reset ends the connection of a process that was killed: what it wrote still
// arrives, then the end.
func (c *conn) reset() {
	if !c.closed {
		c.gone = true
		c.finish()
	}
}

// vanish is the end of a connection of which nobody is told.
func (c *conn) vanish() { c.gone = true }

func (p *Process) drop(c *conn) {
	for i, x := range p.conns {
		if x == c {
			p.conns[i] = p.conns[len(p.conns)-1]
			p.conns = p.conns[:len(p.conns)-1]
			return
		}
	}
}

// LocalAddr is this end's address.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the other end's.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is SetReadDeadline together with SetWriteDeadline.
func (c *conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline bounds reads, those under way too.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readBy = t
	c.change.Raise()
	return nil
}

// SetWriteDeadline bounds writes, those under way too.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeBy = t
	c.room.Raise()
	return nil
}
