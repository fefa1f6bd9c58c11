// Package transport carries Kafka's frames over sockets.
//
// Each connection has a reader and a writer task. The reader hands
// requests over one at a time, except that Produce requests may overlap
// (R13.8); the writer sends the answers in the order of the requests. Memory
// is bounded: a frame's size is checked against its key before it is
// allocated, the bytes of all Produce requests of a listener are limited, a
// client that does not read its answers is not given more, and an idle
// connection holds only its tasks and a small read buffer.
package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// Options of a listener. Zero values take the defaults named here.
type Options struct {
	// Name is the listener's name, such as PLAINTEXT; handlers see it by
	// Conn.Listener.
	Name string
	// Versions is what the listener serves; BrokerVersions by default.
	Versions *wire.Versions
	// MaxRequest bounds the frames of Produce and of private keys, in bytes
	// (socket.request.max.bytes; 100 MiB). Other keys are bounded by the
	// smaller of it and 8 MiB.
	MaxRequest int
	// IdleLimit closes a connection that sent nothing for so long and waits
	// for no answer (connections.max.idle.ms; 10 minutes).
	IdleLimit time.Duration
	// StallLimit closes a connection that takes no bytes, or stops in the
	// middle of a frame, for so long, or whose client ended its own side so long
	// ago (30 seconds).
	StallLimit time.Duration
	// MaxInFlight bounds the bytes of Produce requests that are held at one
	// time (512 MiB). Readers wait when it is reached.
	MaxInFlight int64
	// MaxUnpacked bounds what handlers hold unpacked of them at one time (256 MiB).
	// Readers wait in Request.Hold when it is reached.
	MaxUnpacked int64
	// MaxPipelined bounds the Produce requests of one connection that are
	// handed over and whose answers are not sent (64).
	MaxPipelined int
	// MaxConnections and MaxConnectionsPerIP bound the open connections
	// (max.connections, max.connections.per.ip; no bound): one more is closed
	// at once.
	MaxConnections      int
	MaxConnectionsPerIP int
	// Preview, if not nil, returns who looks at the frame of a Produce request of a
	// version while it arrives. It is asked for large ones.
	Preview func(version int16) Preview
	// SendBuffer and ReceiveBuffer are the sizes of socket buffers in bytes; 0
	// leaves the system's choice.
	SendBuffer, ReceiveBuffer int
	Log                       *slog.Logger
	// Observer, if not nil, is told of requests and connections, for metrics. Its
	// methods are called from connections' tasks and must not block.
	Observer Observer
	Runtime  *task.Runtime // nil: goroutines and the machine's clock
}

// Preview looks at a frame while it arrives, when its bytes are still in the
// processor's cache. It is called from the connection's reader, and must not keep the
// frame.
type Preview interface {
	// Extend is told that more of the frame came; frame is all that came so far.
	Extend(frame []byte)
}

// Observer is told what a listener does.
type Observer interface {
	// Answered tells how long it took from a request's last byte to its answer.
	Answered(key int16, took time.Duration)
	Opened()
	Closed()
	// Refused tells of a connection above the limits.
	Refused()
}

func (o Options) withDefaults() Options {
	if o.Versions == nil {
		o.Versions = wire.BrokerVersions
	}
	if o.MaxRequest <= 0 {
		o.MaxRequest = 100 << 20
	}
	if o.IdleLimit <= 0 {
		o.IdleLimit = 10 * time.Minute
	}
	if o.StallLimit <= 0 {
		o.StallLimit = 30 * time.Second
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 512 << 20
	}
	if o.MaxUnpacked <= 0 {
		o.MaxUnpacked = 256 << 20
	}
	if o.MaxPipelined <= 0 {
		o.MaxPipelined = 64
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = math.MaxInt
	}
	if o.MaxConnectionsPerIP <= 0 {
		o.MaxConnectionsPerIP = math.MaxInt
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server is one listener and its connections.
type Server struct {
	opts     Options
	listener net.Listener
	budget   *budget
	unpacked *budget
	stopping *task.Signal
	idle     *task.Signal // closed after Close with the last handler
	noise    noise

	mu       sync.Mutex
	accepted uint64
	handlers int // readers and writers of all connections
	conns    map[*Conn]struct{}
	perIP    map[string]int
	closed   bool
}

// Listen opens a TCP listener; port 0 lets the kernel choose.
func Listen(addr string, opts Options) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return NewServer(l, opts), nil
}

// NewServer serves connections of any listener.
func NewServer(l net.Listener, opts Options) *Server {
	opts = opts.withDefaults()
	return &Server{
		opts:     opts,
		listener: l,
		budget:   newBudget(opts.Runtime, opts.MaxInFlight),
		unpacked: newBudget(opts.Runtime, opts.MaxUnpacked),
		stopping: opts.Runtime.NewSignal(),
		idle:     opts.Runtime.NewSignal(),
		conns:    make(map[*Conn]struct{}),
		perIP:    make(map[string]int),
	}
}

// Addr is the address that the listener is bound to.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve accepts connections until Close; it returns nil then, and the error of
// a listener that failed otherwise.
func (s *Server) Serve(h Handler) error {
	for delay := time.Duration(0); ; {
		nc, err := s.listener.Accept()
		switch {
		case err == nil:
			delay = 0
			s.start(nc, h)
		case s.isClosed():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept on %s: %w", s.Addr(), err)
		default: // out of descriptors, mostly: wait for some to be closed
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			s.opts.Log.Warn("accept failed", "addr", s.Addr().String(), "err", err, "retry_in", delay)
			s.opts.Runtime.Wait(nil, delay, s.stopping)
		}
	}
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Server) start(nc net.Conn, h Handler) {
	c := newConn(s, nc)
	if err := s.admit(c); err != nil {
		nc.Close()
		s.warn("connection refused", c.ip, err)
		if o := s.opts.Observer; o != nil {
			o.Refused()
		}
		return
	}
	if o := s.opts.Observer; o != nil {
		o.Opened()
	}
	s.opts.Runtime.Go("connection reader", func() { defer s.handled(); c.readLoop(h) })
	s.opts.Runtime.Go("connection writer", func() { defer s.handled(); c.writeLoop() })
}

func (s *Server) warn(what, peer string, err error) {
	s.noise.warn(s.opts.Runtime.Now(), s.opts.Log, what, peer, err)
}

// admit counts a connection in, unless there are too many.
func (s *Server) admit(c *Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return net.ErrClosed
	case len(s.conns) >= s.opts.MaxConnections:
		return fmt.Errorf("%d connections are open", len(s.conns))
	case s.perIP[c.ip] >= s.opts.MaxConnectionsPerIP:
		return fmt.Errorf("%d connections of this address are open", s.perIP[c.ip])
	}
	s.conns[c] = struct{}{}
	s.perIP[c.ip]++
	s.handlers += 2
	s.accepted++
	c.id = s.accepted
	return nil
}

// handled counts a reader or writer out.
func (s *Server) handled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers--
	s.checkIdle()
}

// checkIdle tells those who wait in Close that nothing runs any more. The caller
// holds mu.
func (s *Server) checkIdle() {
	if s.closed && s.handlers == 0 {
		s.idle.Close()
	}
}

func (s *Server) forget(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.opts.Observer; o != nil {
		o.Closed()
	}
	delete(s.conns, c)
	if s.perIP[c.ip]--; s.perIP[c.ip] == 0 {
		delete(s.perIP, c.ip)
	}
}

// Connections is how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// InFlight is how many bytes of Produce requests are held.
func (s *Server) InFlight() int64 {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.budget.used
}

// Close stops accepting and reading. Requests that were handed over are still
// answered until ctx ends; then the connections are cut. It returns when all
// tasks of the listener are gone; the error is ctx's when it had to cut.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	conns := s.snapshot()
	s.checkIdle()
	s.mu.Unlock()
	if first {
		s.stopping.Close()
		s.listener.Close()
	}
	for _, c := range conns {
		c.stopReading()
	}
	w := s.opts.Runtime.NewWaiter()
	if w.Wait(ctx, task.Forever, s.idle) != task.Ended {
		return nil
	}
	for _, c := range conns {
		c.cut()
	}
	w.Wait(nil, task.Forever, s.idle)
	return ctx.Err()
}

// snapshot returns the connections in the order in which they were accepted.
func (s *Server) snapshot() []*Conn {
	return slices.SortedFunc(maps.Keys(s.conns), func(a, b *Conn) int { return cmp.Compare(a.id, b.id) })
}
