package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// ErrClientClosed is the error of calls on a Client after Close.
var ErrClientClosed = errors.New("the connection was closed on this side")

// ClientOptions of a connection to another node. Zero values take the defaults
// named here.
type ClientOptions struct {
	ClientID string
	// DialTimeout bounds connecting (10 seconds).
	DialTimeout time.Duration
	// MaxResponse bounds a response frame, in bytes (100 MiB).
	MaxResponse int
	// MaxInFlight bounds the requests that wait for an answer (256); further
	// calls wait.
	MaxInFlight int
	// Dial replaces the TCP dialer.
	Dial    func(ctx context.Context, addr string) (net.Conn, error)
	Runtime *task.Runtime // nil: goroutines and the machine's clock
}

// Client is one pipelined connection to a node. Its methods may be called from
// any task.
type Client struct {
	nc    net.Conn
	rt    *task.Runtime
	id    *string
	limit int
	most  int // calls in flight
	in    frameReader
	hint  atomic.Int64 // size of the last request: the next one's is about the same

	mu       sync.Mutex
	next     int32
	outbox   []*Frame // encoded and not written
	inFlight int      // calls that have a place
	standing []*call  // that wait for a place, in the order they came
	waiting  []*call  // sent or in outbox, in request order
	spare    []*call  // nobody's, for the next calls
	err      error    // why it ended; nil while it lives

	wake   *task.Signal // outbox is not empty, or the end
	closed *task.Signal
	loops  *task.Group
}

// call is one request on its way. It belongs to one Client for good.
type call struct {
	id       int32
	flexible bool
	frame    *Frame
	err      error
	over     bool         // answered or failed
	dropped  bool         // the caller went away
	moved    *task.Signal // it got its place, or is over
	w        *task.Waiter // the caller's
}

// Dial connects to a node. Refused tells whether the error means that no
// process listens there.
func Dial(ctx context.Context, addr string, opts ClientOptions) (*Client, error) {
	if opts.DialTimeout <= 0 {
		opts.DialTimeout = 10 * time.Second
	}
	if opts.Dial == nil {
		d := net.Dialer{}
		opts.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	ctx, cancel := opts.Runtime.WithTimeout(ctx, opts.DialTimeout)
	defer cancel()
	nc, err := opts.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return NewClient(nc, opts), nil
}

// NewClient speaks over a connection that exists; it owns nc from here on.
func NewClient(nc net.Conn, opts ClientOptions) *Client {
	if opts.MaxResponse <= 0 {
		opts.MaxResponse = 100 << 20
	}
	if opts.MaxInFlight <= 0 {
		opts.MaxInFlight = 256
	}
	rt := opts.Runtime
	c := &Client{
		nc: nc, rt: rt, limit: opts.MaxResponse, most: opts.MaxInFlight,
		in:     frameReader{nc: nc, from: inletOf(nc), rt: rt, buf: make([]byte, 4<<10), low: newLowWater(nc)},
		wake:   rt.NewSignal(),
		closed: rt.NewSignal(),
		loops:  rt.NewGroup(),
	}
	if opts.ClientID != "" {
		c.id = &opts.ClientID
	}
	c.loops.Go("client reader", func() { c.end(c.readLoop()) })
	c.loops.Go("client writer", func() { c.end(c.writeLoop()) })
	return c
}

// Refused says that a dial failed because nothing listens at the address: the
// process there is gone (R13.6).
func Refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// Closed is closed as soon as the connection ended on either side.
func (c *Client) Closed() <-chan struct{} { return c.closed.C() }

// ClosedSignal is Closed for tasks of the node.
func (c *Client) ClosedSignal() *task.Signal { return c.closed }

// Err is why the connection ended; nil while it lives.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// RemoteAddr is the address of the node.
func (c *Client) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// Close ends the connection; calls that wait fail with ErrClientClosed.
func (c *Client) Close() error {
	c.end(ErrClientClosed)
	c.loops.Wait()
	return nil
}

// Do sends a request, whose version must be set, and decodes its answer. An
// error means that there is no answer: ctx ended, or the connection did. The
// answer is the caller's; its byte fields share no pooled frame.
func (c *Client) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	frame, err := c.DoFrame(ctx, req)
	if err != nil {
		return nil, err
	}
	defer frame.Release()
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if err := resp.ReadFrom(bytes.Clone(frame.Body())); err != nil {
		return nil, fmt.Errorf("decode the answer to api key %d version %d: %w", req.Key(), req.GetVersion(), err)
	}
	return resp, nil
}

// DoFrame sends a request and returns its answer undecoded: Frame.Body is the
// response body. The caller releases the frame.
func (c *Client) DoFrame(ctx context.Context, req kmsg.Request) (*Frame, error) {
	k, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	k.flexible = wire.FlexibleResponseHeader(req.Key(), req.GetVersion())
	if err := c.post(req, k); err != nil {
		c.leave(k)
		return nil, err
	}
	if k.w.Wait(ctx, task.Forever, k.moved) == task.Ended && c.drop(k) {
		return nil, ctx.Err()
	}
	frame, err := k.frame, k.err
	c.leave(k)
	return frame, err
}

// enter waits for a place among the calls in flight.
func (c *Client) enter(ctx context.Context) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	k := c.newCall()
	if c.inFlight < c.most && len(c.standing) == 0 {
		c.inFlight++
		c.mu.Unlock()
		return k, nil
	}
	c.standing = append(c.standing, k)
	c.mu.Unlock()
	if k.w.Wait(ctx, task.Forever, k.moved) == task.Ended {
		return nil, c.giveUpPlace(k, ctx.Err())
	}
	if k.over {
		return nil, k.err
	}
	return k, nil
}

// giveUpPlace takes a call away whose caller does not wait for a place any more.
func (c *Client) giveUpPlace(k *call, why error) error {
	c.mu.Lock()
	at := slices.Index(c.standing, k)
	if at >= 0 {
		c.standing = slices.Delete(c.standing, at, at+1)
	}
	c.mu.Unlock()
	if at < 0 && !k.over {
		c.leave(k) // its place came at the same time
	}
	return why
}

// newCall takes a spare call. The caller holds mu.
func (c *Client) newCall() *call {
	n := len(c.spare)
	if n == 0 {
		return &call{moved: c.rt.NewSignal(), w: c.rt.NewWaiter()}
	}
	k := c.spare[n-1]
	c.spare = c.spare[:n-1]
	return k
}

// leave gives a call's place to the one that stands longest for it. Nobody waits
// for the call any more.
func (c *Client) leave(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free(k)
}

// free is leave for who holds mu.
func (c *Client) free(k *call) {
	*k = call{moved: k.moved, w: k.w}
	k.moved.Take()
	c.spare = append(c.spare, k)
	if len(c.standing) == 0 {
		c.inFlight--
		return
	}
	next := c.standing[0]
	c.standing = slices.Delete(c.standing, 0, 1)
	next.moved.Raise()
}

// Send sends a request that gets no answer, such as a Produce with acks=0.
func (c *Client) Send(ctx context.Context, req kmsg.Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.post(req, nil)
}

// post encodes a request and queues it; k, if not nil, waits for the answer.
func (c *Client) post(req kmsg.Request, k *call) error {
	frame := newFrame(int(c.hint.Load()))
	key, version := req.Key(), req.GetVersion()
	h := wire.Header{Key: key, Version: version, ClientID: c.id}
	buf := append(frame.buf[:0], 0, 0, 0, 0)
	buf = wire.AppendRequestHeader(buf, h, wire.Flexible(key, version))
	buf = req.AppendTo(buf)
	if frame.adopt(buf); len(buf)-4 > 1<<31-1 {
		frame.Release()
		return fmt.Errorf("a request of %d bytes", len(buf))
	}
	binary.BigEndian.PutUint32(buf, uint32(len(buf)-4))
	c.hint.Store(int64(len(buf)))

	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		frame.Release()
		return err
	}
	id := c.next
	c.next++
	binary.BigEndian.PutUint32(buf[8:], uint32(id))
	c.outbox = append(c.outbox, frame)
	if k != nil {
		k.id = id
		c.waiting = append(c.waiting, k)
	}
	c.mu.Unlock()
	c.wake.Raise()
	return nil
}

// drop gives a call up. False says that its answer came first.
func (c *Client) drop(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.dropped = !k.over
	return k.dropped
}

func (c *Client) writeLoop() error {
	var out []*Frame
	var vectors net.Buffers
	w := c.rt.NewWaiter()
	for {
		c.mu.Lock()
		out, c.outbox = c.outbox, out[:0]
		ended := c.err != nil
		c.mu.Unlock()
		if len(out) > 0 {
			vectors = vectors[:0]
			for _, f := range out {
				vectors = append(vectors, f.buf)
			}
			all := vectors
			_, err := vectors.WriteTo(c.nc)
			clear(all)
			vectors = all
			for i, f := range out {
				f.Release()
				out[i] = nil
			}
			if err != nil {
				return fmt.Errorf("write to %s: %w", c.nc.RemoteAddr(), err)
			}
			continue
		}
		if ended {
			return ErrClientClosed
		}
		w.Wait(nil, task.Forever, c.wake)
	}
}

func (c *Client) readLoop() error {
	for {
		frame, err := c.nextFrame()
		if err != nil {
			return fmt.Errorf("read from %s: %w", c.nc.RemoteAddr(), err)
		}
		if err := c.deliver(frame); err != nil {
			return fmt.Errorf("answer from %s: %w", c.nc.RemoteAddr(), err)
		}
	}
}

func (c *Client) nextFrame() (*Frame, error) {
	if err := c.in.fill(4, 0); err != nil {
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(c.in.ahead)))
	if size < 4 || size > c.limit {
		return nil, fmt.Errorf("a frame of %d bytes; at most %d are allowed", size, c.limit)
	}
	return c.in.rest(newFrame(min(size, firstCharged)), size, 0, nil)
}

// deliver hands a response frame to the oldest call.
func (c *Client) deliver(frame *Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		frame.Release()
		return errors.New("a response that nobody asked for")
	}
	k := c.waiting[0]
	c.waiting[0] = nil
	c.waiting = c.waiting[1:]
	id, body, err := wire.ParseResponse(frame.buf, k.flexible)
	if err == nil && id != k.id {
		err = fmt.Errorf("correlation id %d, expected %d", id, k.id)
	}
	if err != nil || k.dropped {
		frame.Release()
		k.err = err
	} else {
		frame.body = body
		k.frame = frame
	}
	c.finish(k)
	return err
}

// finish lets a call's caller go on, if it is still there. The caller of finish
// holds mu.
func (c *Client) finish(k *call) {
	if k.dropped {
		c.free(k)
		return
	}
	k.over = true
	k.moved.Raise()
}

// end closes the connection and fails the calls that wait; only the first
// reason counts.
func (c *Client) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	calls, outbox := append(c.waiting, c.standing...), c.outbox
	c.waiting, c.standing, c.outbox = nil, nil, nil
	for _, k := range calls {
		k.err = err
		c.finish(k)
	}
	c.mu.Unlock()
	c.closed.Close()
	c.wake.Raise()
	c.nc.Close()
	for _, f := range outbox {
		f.Release()
	}
}
