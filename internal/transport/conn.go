package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/wire"
)

const (
	// readAhead is the buffer of an idle connection: one system call reads a
	// small request whole, or the size and key of a large one.
	readAhead = 512
	// maxSmall bounds the frames of all keys but Produce and private ones: a
	// frame of tiny arrays takes up to 25 times its size when decoded.
	maxSmall = 8 << 20
	// firstChunk is how much of a large frame is allocated before its bytes
	// come; more of one that counts against a budget, or that a peer sends: to
	// grow is to copy.
	firstChunk   = 1 << 20
	firstCharged = 1 << maxClassBits
	// connWindow is how much of Produce requests one connection may hold: enough to
	// read the next one while the last is written.
	connWindow = 16 << 20

	keyProduce     = 0
	keyApiVersions = 18
)

// Conn is one connection of a client.
type Conn struct {
	server *Server
	id     uint64 // in the order of accepting
	nc     net.Conn
	direct *route // of files to nc; nil: they are read here
	ip     string // of the client
	// client is the software name and version that ApiVersions v3 told.
	client atomic.Pointer[ClientSoftware]

	// window bounds what is read from this connection and not stored yet.
	window *budget

	// The reader's own.
	header wire.Header
	alone  bool // the last request lets none overlap with it
	in     frameReader
	buf    [readAhead]byte

	mu      sync.Mutex
	queue   []*Request // handed over, in request order
	sending int        // taken out of the queue, and not sent yet
	reading bool       // the reader may hand over more
	ended   bool       // the socket is closed, or will be by the writer

	wakeWriter *task.Signal // the queue's head may be answered, or the end
	wakeReader *task.Signal // answers were sent, or the end
	closed     *task.Signal // closed with the socket
	pause      *task.Waiter // the reader's own
}

// ClientSoftware is what a client said of itself (KIP-511).
type ClientSoftware struct{ Name, Version string }

func newConn(s *Server, nc net.Conn) *Conn {
	ip := nc.RemoteAddr().String()
	if tcp, ok := nc.(*net.TCPConn); ok {
		ip = tcp.RemoteAddr().(*net.TCPAddr).IP.String()
		tune(tcp, &s.opts)
	}
	rt := s.opts.Runtime
	c := &Conn{
		server: s, nc: nc, direct: routeTo(nc), ip: ip, reading: true,
		window:     newBudget(rt, connWindow),
		wakeWriter: rt.NewSignal(),
		wakeReader: rt.NewSignal(),
		closed:     rt.NewSignal(),
		pause:      rt.NewWaiter(),
	}
	c.in = frameReader{nc: nc, from: inletOf(nc), rt: rt, buf: c.buf[:], low: newLowWater(nc)}
	return c
}

// tune sets socket options. A failure shows with the next read or write.
func tune(tcp *net.TCPConn, o *Options) {
	tcp.SetNoDelay(true)
	if o.SendBuffer > 0 {
		tcp.SetWriteBuffer(o.SendBuffer)
	}
	if o.ReceiveBuffer > 0 {
		tcp.SetReadBuffer(o.ReceiveBuffer)
	}
}

// RemoteAddr is the client's address.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// Listener is the name of the listener that accepted the connection.
func (c *Conn) Listener() string { return c.server.opts.Name }

// Closed is closed when the connection is gone: nobody will see an answer.
func (c *Conn) Closed() <-chan struct{} { return c.closed.C() }

// ClosedSignal is Closed for tasks of the node.
func (c *Conn) ClosedSignal() *task.Signal { return c.closed }

// Client is what the client said of itself; empty until it did.
func (c *Conn) Client() ClientSoftware {
	if p := c.client.Load(); p != nil {
		return *p
	}
	return ClientSoftware{}
}

// SetClient remembers what the client said of itself.
func (c *Conn) SetClient(sw ClientSoftware) { c.client.Store(&sw) }

// readLoop reads and hands over requests until the connection ends.
func (c *Conn) readLoop(h Handler) {
	for {
		r, err := c.next()
		if err != nil {
			c.endReading(err)
			return
		}
		if !c.admit(r) {
			r.frame.Release()
			c.endReading(nil)
			return
		}
		h.Serve(r)
	}
}

// errTurn says that nothing may be handed over any more.
var errTurn = errors.New("the connection ends")

// awaitTurn waits until a request with the key may be handed over. Answers that
// the client does not read count as open: they would pile up.
func (c *Conn) awaitTurn(key int16) error {
	most := c.server.opts.MaxPipelined - 1
	if key != keyProduce || c.alone {
		most = 0
	}
	if !c.waitSent(most) {
		return errTurn
	}
	c.alone = key != keyProduce
	return nil
}

// admit puts a request, whose turn it is, in the queue. False says that nothing
// may be handed over any more.
func (c *Conn) admit(r *Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || !c.reading {
		return false
	}
	c.queue = append(c.queue, r)
	return true
}

// waitSent waits until at most so many answers are still to be sent.
func (c *Conn) waitSent(most int) bool {
	for {
		c.mu.Lock()
		open, goOn := len(c.queue)+c.sending, !c.ended && c.reading
		c.mu.Unlock()
		if !goOn || open <= most {
			return goOn
		}
		c.pause.Wait(nil, task.Forever, c.wakeReader)
	}
}

// next reads one request when it is its turn. While it waits for the request's
// first bytes it notices that the client left. An error ends the connection.
func (c *Conn) next() (*Request, error) {
	size, err := c.nextSize()
	if err != nil {
		return nil, err
	}
	key := int16(binary.BigEndian.Uint16(c.in.ahead[4:]))
	version := int16(binary.BigEndian.Uint16(c.in.ahead[6:]))
	if err := c.checkFrame(size, key, version); err != nil {
		return nil, err
	}
	if err := c.awaitTurn(key); err != nil {
		return nil, err
	}
	var seen Preview
	if o := &c.server.opts; o.Preview != nil && key == keyProduce && size >= previewMin {
		seen = o.Preview(version)
	}
	frame, err := c.readFrame(size, key == keyProduce, seen)
	if err != nil {
		return nil, err
	}
	body, err := c.header.Parse(frame.buf)
	if err != nil {
		frame.Release()
		return nil, violation{err}
	}
	r := &Request{Header: c.header, Body: body, Conn: c, Preview: seen, frame: frame}
	if c.server.opts.Observer != nil {
		r.began = c.server.opts.Runtime.Now()
	}
	return r, nil
}

// nextSize reads until the size prefix, key and version of the next frame are
// ahead. A size that no frame has ends the connection without more ado.
func (c *Conn) nextSize() (int, error) {
	if err := c.await(4); err != nil {
		return 0, err
	}
	size, most := int(int32(binary.BigEndian.Uint32(c.in.ahead))), c.server.opts.MaxRequest
	if size < 8 || size > most {
		return 0, violation{fmt.Errorf("a frame of %d bytes; 8 to %d are allowed", size, most)}
	}
	return size, c.await(8)
}

// await reads until n bytes are ahead. A connection that owes answers is not
// idle, however long its client is silent.
func (c *Conn) await(n int) error {
	for {
		err := c.in.fill(n, c.server.opts.IdleLimit)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !c.busy() {
			return err
		}
	}
}

// busy says that answers are owed, so that the connection is not idle.
func (c *Conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reading && !c.ended && len(c.queue)+c.sending > 0
}

// checkFrame refuses frames before anything is allocated for them.
func (c *Conn) checkFrame(size int, key, version int16) error {
	o := &c.server.opts
	if !o.Versions.Serves(key, version) {
		r, known := o.Versions.Range(key)
		if !known || key != keyApiVersions || version <= r.Max {
			return violation{fmt.Errorf("api key %d version %d is not served", key, version)}
		}
	}
	if most := min(o.MaxRequest, maxSmall); size > most && key != keyProduce && key < wire.FirstPrivateKey {
		return violation{fmt.Errorf("a frame of %d bytes with api key %d; at most %d are allowed", size, key, most)}
	}
	return nil
}

// endReading is the reader's last act. A client that only ended its own side may
// still read, so answers that come soon are sent. Nobody reads after any other
// error.
func (c *Conn) endReading(err error) {
	if err != nil && err != errTurn && !c.stopped() {
		c.logEnd(err)
		if err != io.EOF || !c.busy() {
			c.cut()
			return
		}
	}
	c.mu.Lock()
	c.reading = false
	c.mu.Unlock()
	c.wakeWriter.Raise()
	if err == io.EOF {
		c.linger()
	}
}

// linger ends the connection when nobody may be there to read the answers.
func (c *Conn) linger() {
	if c.pause.Wait(nil, c.server.opts.StallLimit, c.closed) == task.Timeout {
		c.cut()
	}
}

// violation is a breach of the protocol, which an operator wants to know of. All
// other ends of connections are everyday.
type violation struct{ error }

func (c *Conn) logEnd(err error) {
	if v, ok := err.(violation); ok {
		c.server.warn("connection closed", c.RemoteAddr().String(), v.error)
		return
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return
	}
	c.server.opts.Log.Debug("connection ended", "peer", c.RemoteAddr().String(), "err", err)
}

// stopped says that stopReading was called.
func (c *Conn) stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.reading
}

// stopReading lets the connection end once all that was handed over is
// answered.
func (c *Conn) stopReading() {
	c.mu.Lock()
	c.reading = false
	c.mu.Unlock()
	c.wakeReader.Raise()
	c.wakeWriter.Raise()
}

// ErrStopping is why a handler closes a connection whose request it cannot serve
// any more, for its process ends.
var ErrStopping = errors.New("the server stops")

// fail remembers why a handler closes the connection.
func (c *Conn) fail(why error) {
	if !errors.Is(why, ErrStopping) {
		why = violation{why}
	}
	c.logEnd(why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
}

// answer puts an answer in its place in the queue.
func (c *Conn) answer(r *Request, a answer, resp Response) {
	c.mu.Lock()
	if r.state != unanswered {
		c.mu.Unlock()
		panic("transport: a request was answered twice")
	}
	r.state, r.response = a, resp
	gone, head := c.ended, len(c.queue) > 0 && c.queue[0] == r
	c.mu.Unlock()
	if o := c.server.opts.Observer; o != nil {
		o.Answered(r.Header.Key, c.server.opts.Runtime.Since(r.began))
	}
	if gone {
		discard(r)
		return
	}
	if head {
		c.wakeWriter.Raise()
	}
}

// discard drops an answered request that is not going to be written.
func discard(r *Request) {
	if d, ok := r.response.(Discarder); ok {
		d.Discard()
	}
	r.response = nil
	r.Free()
}

// maxBatch bounds how many answers are sent in one write.
const maxBatch = 64

// writeLoop sends answers in request order until the connection ends.
func (c *Conn) writeLoop() {
	defer c.server.forget(c)
	w := c.server.opts.Runtime.NewWaiter()
	var batch []*Request
	for {
		var last bool
		batch, last = c.ready(batch[:0])
		if err := c.send(batch); err != nil {
			c.logEnd(err)
			c.cut()
			return
		}
		clear(batch)
		c.sent()
		if last {
			c.cut()
			return
		}
		if len(batch) > 0 {
			continue
		}
		w.Wait(nil, task.Forever, c.wakeWriter)
	}
}

// ready takes the answered requests at the head of the queue. last says that
// the connection ends behind them.
func (c *Conn) ready(batch []*Request) (_ []*Request, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.queue) && n < maxBatch && c.queue[n].state != unanswered {
		r := c.queue[n]
		n++
		batch = append(batch, r)
		if r.state == answeredClose {
			last = true
			break
		}
	}
	rest := copy(c.queue, c.queue[n:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
	c.sending = n
	if rest == 0 && !c.reading {
		last = true
	}
	return batch, last
}

// sent lets the reader go on behind the answers that are on their way.
func (c *Conn) sent() {
	c.mu.Lock()
	before := c.sending
	c.sending = 0
	c.mu.Unlock()
	if before > 0 {
		c.wakeReader.Raise()
	}
}

// send writes the answers of a batch with as few system calls as it can.
func (c *Conn) send(batch []*Request) error {
	if len(batch) == 0 {
		return nil
	}
	l := layouts.Get().(*Layout)
	defer func() {
		l.reset()
		layouts.Put(l)
		for _, r := range batch {
			discard(r)
		}
	}()
	for _, r := range batch {
		if r.state != answered {
			continue
		}
		resp := r.response
		r.response = nil // laid out from here on, not discarded
		if err := l.add(r.Header.Key, r.Header.Version, r.Header.CorrelationID, resp); err != nil {
			return err
		}
	}
	s := senders.Get().(*sender)
	defer senders.Put(s)
	return s.send(c.nc, c.direct, l, c.beforeWrite)
}

func (c *Conn) beforeWrite() {
	c.nc.SetWriteDeadline(c.server.opts.Runtime.Now().Add(c.server.opts.StallLimit))
}

// cut closes the socket at once and drops what was answered and not sent.
func (c *Conn) cut() {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended, c.reading = true, false
	var dropped []*Request // the unanswered ones are dropped by their answer
	for _, r := range c.queue {
		if r.state != unanswered {
			dropped = append(dropped, r)
		}
	}
	c.queue = nil
	c.mu.Unlock()
	c.closed.Close()
	c.wakeReader.Raise()
	c.wakeWriter.Raise()
	c.nc.Close()
	for _, r := range dropped {
		discard(r)
	}
}
