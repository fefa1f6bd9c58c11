// Package memnet is a network in memory: listeners, connections with deadlines,
// refused dials. Its goroutines block only on channels of their own, so that a
// test's fake clock can move while they wait.
package memnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Network is a set of listeners that can reach each other. Addresses look like
// loopback ones. Every byte takes Delay from a writer to its reader; Delay is
// set before the first dial.
type Network struct {
	Delay time.Duration

	mu        sync.Mutex
	listeners map[string]*listener
	nextPort  int
}

// New returns an empty network.
func New() *Network { return &Network{listeners: map[string]*listener{}, nextPort: 10000} }

// firstClientPort is where the ports of dialling ends begin.
const firstClientPort = 40000

// Listen opens addr, HOST:PORT; port 0 takes one that is free. Error: address in
// use.
func (n *Network) Listen(addr string) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for tcp.Port == 0 {
		n.nextPort++
		if _, taken := n.listeners[fmt.Sprintf("%s:%d", tcp.IP, n.nextPort)]; !taken {
			tcp.Port = n.nextPort
		}
	}
	key := tcp.String()
	if _, taken := n.listeners[key]; taken {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: tcp, Err: syscall.EADDRINUSE}
	}
	l := &listener{net: n, addr: tcp, key: key, accept: make(chan net.Conn, 128), closed: make(chan struct{})}
	n.listeners[key] = l
	return l, nil
}

// Dial connects to a listener. Error: connection refused when nobody listens.
func (n *Network) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	n.mu.Lock()
	l := n.listeners[tcp.String()]
	n.nextPort++
	local := &net.TCPAddr{IP: tcp.IP, Port: firstClientPort + n.nextPort%20000}
	n.mu.Unlock()
	if l == nil {
		return nil, refused(tcp)
	}
	return l.connect(ctx, local)
}

func refused(addr net.Addr) error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// connect queues a connection from local to be accepted.
func (l *listener) connect(ctx context.Context, local net.Addr) (net.Conn, error) {
	near, far := Pipe(local, l.addr, l.net.Delay)
	select {
	case l.accept <- far:
		select {
		case <-l.closed: // perhaps after Close looked for connections
			l.reset()
		default:
		}
		return near, nil
	case <-l.closed:
		return nil, refused(l.addr)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct {
	net    *Network
	addr   *net.TCPAddr
	key    string
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further dials and resets what was not accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, l.key)
		l.net.mu.Unlock()
		close(l.closed)
		l.reset()
	})
	return nil
}

// reset ends the connections that nobody will accept.
func (l *listener) reset() {
	for {
		select {
		case c := <-l.accept:
			c.Close()
		default:
			return
		}
	}
}

// Addr is the listener's address.
func (l *listener) Addr() net.Addr { return l.addr }

// Pipe returns the two ends of a connection between two addresses, whose bytes
// take delay.
func Pipe(near, far net.Addr, delay time.Duration) (net.Conn, net.Conn) {
	a, b := newStream(delay), newStream(delay)
	return &conn{in: a, out: b, local: near, remote: far, readLimit: newLimit(), writeLimit: newLimit()},
		&conn{in: b, out: a, local: far, remote: near, readLimit: newLimit(), writeLimit: newLimit()}
}

// streamSize is how many bytes wait in one direction before writers do.
const streamSize = 1 << 20

// stream is one direction of a connection: a bounded buffer of bytes.
type stream struct {
	delay  time.Duration
	mu     sync.Mutex
	buf    []byte
	coming []arrival     // of the bytes in buf, in their order; unused without a delay
	done   bool          // the writer closed: EOF after the buffer
	broken bool          // the reader closed: writes fail
	change chan struct{} // closed and replaced at each change
}

// arrival is when so many bytes can be read.
type arrival struct {
	at    time.Time
	bytes int
}

func newStream(delay time.Duration) *stream {
	return &stream{delay: delay, change: make(chan struct{})}
}

// put appends bytes; the caller holds mu.
func (s *stream) put(b []byte) {
	s.buf = append(s.buf, b...)
	if s.delay > 0 {
		s.coming = append(s.coming, arrival{time.Now().Add(s.delay), len(b)})
	}
	s.changed()
}

// take moves what has arrived into b. If nothing has, next is when something
// will. The caller holds mu, and there are bytes.
func (s *stream) take(b []byte) (n int, next time.Time) {
	arrived := len(s.buf)
	if s.delay > 0 {
		arrived = 0
		now := time.Now()
		for _, a := range s.coming {
			if a.at.After(now) {
				next = a.at
				break
			}
			arrived += a.bytes
		}
	}
	if n = copy(b, s.buf[:arrived]); n == 0 {
		return 0, next
	}
	if s.buf = s.buf[n:]; len(s.buf) == 0 {
		s.buf = nil
	}
	for left := n; left > 0 && len(s.coming) > 0; {
		part := min(left, s.coming[0].bytes)
		if s.coming[0].bytes -= part; s.coming[0].bytes == 0 {
			s.coming = s.coming[1:]
		}
		left -= part
	}
	s.changed()
	return n, time.Time{}
}

// changed wakes everybody; the caller holds mu.
func (s *stream) changed() {
	close(s.change)
	s.change = make(chan struct{})
}

type conn struct {
	in, out               *stream
	local, remote         net.Addr
	readLimit, writeLimit *limit
	once                  sync.Once
}

// Read returns bytes, io.EOF after the other end closed, or a timeout.
func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		var next time.Time
		c.in.mu.Lock()
		switch {
		case c.in.broken:
			c.in.mu.Unlock()
			return 0, net.ErrClosed
		case len(c.in.buf) > 0:
			n, at := c.in.take(b)
			if n > 0 {
				c.in.mu.Unlock()
				return n, nil
			}
			next = at
		case c.in.done:
			c.in.mu.Unlock()
			return 0, io.EOF
		}
		change := c.in.change
		c.in.mu.Unlock()
		if err := c.readLimit.wait(change, next); err != nil {
			return 0, err
		}
	}
}

// Write takes bytes while there is room, or fails with EPIPE or a timeout.
func (c *conn) Write(b []byte) (int, error) {
	sent := 0
	for len(b) > 0 {
		c.out.mu.Lock()
		switch {
		case c.out.done:
			c.out.mu.Unlock()
			return sent, net.ErrClosed
		case c.out.broken:
			c.out.mu.Unlock()
			return sent, &net.OpError{Op: "write", Net: "tcp", Addr: c.remote, Err: syscall.EPIPE}
		}
		if room := streamSize - len(c.out.buf); room > 0 {
			n := min(room, len(b))
			c.out.put(b[:n])
			b, sent = b[n:], sent+n
			c.out.mu.Unlock()
			continue
		}
		change := c.out.change
		c.out.mu.Unlock()
		if err := c.writeLimit.wait(change, time.Time{}); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Close ends both directions.
func (c *conn) Close() error {
	c.once.Do(func() {
		for _, s := range []*stream{c.in, c.out} {
			s.mu.Lock()
			if s == c.in {
				s.broken = true
			} else {
				s.done = true
			}
			s.changed()
			s.mu.Unlock()
		}
	})
	return nil
}

// LocalAddr is the address of this end.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the address of the other end.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline bounds reads and writes.
func (c *conn) SetDeadline(t time.Time) error {
	c.readLimit.set(t)
	c.writeLimit.set(t)
	return nil
}

// SetReadDeadline bounds reads.
func (c *conn) SetReadDeadline(t time.Time) error { c.readLimit.set(t); return nil }

// SetWriteDeadline bounds writes.
func (c *conn) SetWriteDeadline(t time.Time) error { c.writeLimit.set(t); return nil }

// limit is a deadline that can move while somebody waits.
type limit struct {
	mu    sync.Mutex
	at    time.Time
	moved chan struct{}
}

func newLimit() *limit { return &limit{moved: make(chan struct{})} }

func (l *limit) set(t time.Time) {
	l.mu.Lock()
	l.at = t
	close(l.moved)
	l.moved = make(chan struct{})
	l.mu.Unlock()
}

// wait returns nil when change is closed, the deadline moved or next, if there is
// one, has come, or the timeout.
func (l *limit) wait(change <-chan struct{}, next time.Time) error {
	l.mu.Lock()
	at, moved := l.at, l.moved
	l.mu.Unlock()
	first := at
	if first.IsZero() || !next.IsZero() && next.Before(first) {
		first = next
	}
	if first.IsZero() {
		select {
		case <-change:
		case <-moved:
		}
		return nil
	}
	left := time.Until(first)
	if left <= 0 && first.Equal(at) {
		return os.ErrDeadlineExceeded
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-change:
	case <-moved:
	case <-t.C:
		if first.Equal(at) {
			return os.ErrDeadlineExceeded
		}
	}
	return nil
}
