package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/memnet"
)

// network is the sockets of a cluster in one process, with gates that hold
// bytes back: a paused node's, or those between two nodes that are cut off from
// each other. A held byte is not lost; it arrives when the gate opens, as TCP
// would deliver it.
type network struct {
	listen func(addr string) (net.Listener, error)
	dial   func(ctx context.Context, addr string) (net.Conn, error)

	mu     sync.Mutex
	owner  map[string]model.BrokerID // address -> node
	paused map[model.BrokerID]*gate
	cuts   map[[2]model.BrokerID]*gate
	conns  map[*gatedConn]struct{}
	asked  map[[2]model.BrokerID]*atomic.Int64 // {from, to} -> requests to the client port
	client map[string]bool                     // addresses of client ports
}

func newNetwork(memory bool, delay time.Duration) *network {
	n := &network{owner: map[string]model.BrokerID{}, paused: map[model.BrokerID]*gate{},
		cuts: map[[2]model.BrokerID]*gate{}, conns: map[*gatedConn]struct{}{},
		asked: map[[2]model.BrokerID]*atomic.Int64{}, client: map[string]bool{}}
	if memory {
		m := memnet.New()
		m.Delay = delay
		n.listen, n.dial = m.Listen, m.Dial
		return n
	}
	n.listen = func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
	n.dial = func(ctx context.Context, addr string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
	return n
}

// place notes the addresses of a node.
func (n *network) place(id model.BrokerID, client, controller string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paused[id] = newGate()
	n.owner[client], n.owner[controller] = id, id
	n.client[client] = true
}

// asks counts the requests of one node to the client port of another.
func (n *network) asks(from, to model.BrokerID) *atomic.Int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := [2]model.BrokerID{from, to}
	if n.asked[k] == nil {
		n.asked[k] = new(atomic.Int64)
	}
	return n.asked[k]
}

func pairOf(a, b model.BrokerID) [2]model.BrokerID {
	return [2]model.BrokerID{min(a, b), max(a, b)}
}

func (n *network) between(a, b model.BrokerID) *gate {
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.cuts[pairOf(a, b)]
	if g == nil {
		g = newGate()
		n.cuts[pairOf(a, b)] = g
	}
	return g
}

func (n *network) pause(id model.BrokerID, on bool) {
	n.mu.Lock()
	g := n.paused[id]
	n.mu.Unlock()
	if g != nil {
		g.set(on)
	}
}

func (n *network) cut(a, b model.BrokerID, on bool) { n.between(a, b).set(on) }

// cutOff closes every connection of a node that is being killed, so that its
// peers see the end at once, as they would of a dead process.
func (n *network) cutOff(id model.BrokerID) {
	n.mu.Lock()
	var mine []*gatedConn
	for c := range n.conns {
		if c.owner == id {
			mine = append(mine, c)
		}
	}
	n.mu.Unlock()
	for _, c := range mine {
		c.Close()
	}
}

// revive opens the gate of a node that starts again.
func (n *network) revive(id model.BrokerID) { n.pause(id, false) }

// dialer dials on behalf of a node. Across a cut nothing answers, so a dial
// waits until it is healed or given up; it is never refused, for the process
// over there lives.
func (n *network) dialer(from model.BrokerID) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		n.mu.Lock()
		to, known := n.owner[addr]
		client := n.client[addr]
		own := n.paused[from]
		n.mu.Unlock()
		gates := []*gate{own}
		if known {
			gates = append(gates, n.between(from, to))
		}
		for _, g := range gates {
			if err := g.wait(ctx.Done()); err != nil {
				return nil, fmt.Errorf("dial %s: %w", addr, ctx.Err())
			}
		}
		nc, err := n.dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		c := n.gated(nc, from, gates)
		if client {
			c.asked = n.asks(from, to)
		}
		return c, nil
	}
}

// wrap puts a node's gate in front of what a listener accepts.
func (n *network) wrap(id model.BrokerID, l net.Listener) net.Listener {
	return &gatedListener{Listener: l, net: n, id: id}
}

type gatedListener struct {
	net.Listener
	net *network
	id  model.BrokerID
}

func (l *gatedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.net.mu.Lock()
	g := l.net.paused[l.id]
	l.net.mu.Unlock()
	return l.net.gated(nc, l.id, []*gate{g}), nil
}

func (n *network) gated(nc net.Conn, owner model.BrokerID, gates []*gate) *gatedConn {
	c := &gatedConn{Conn: nc, net: n, owner: owner, gates: gates, closed: make(chan struct{})}
	n.mu.Lock()
	n.conns[c] = struct{}{}
	n.mu.Unlock()
	return c
}

// gatedConn is a connection whose bytes wait while one of its gates is shut.
type gatedConn struct {
	net.Conn
	net    *network
	owner  model.BrokerID
	gates  []*gate
	asked  *atomic.Int64 // counts writes, for a client writes each request at once; or nil
	once   sync.Once
	closed chan struct{}
}

// pass waits for the gates.
func (c *gatedConn) pass() error {
	for _, g := range c.gates {
		if err := g.wait(c.closed); err != nil {
			return net.ErrClosed
		}
	}
	return nil
}

// Read returns bytes once the gates are open.
func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if perr := c.pass(); perr != nil {
		return 0, perr
	}
	return n, err
}

// Write sends bytes once the gates are open.
func (c *gatedConn) Write(b []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	if c.asked != nil {
		c.asked.Add(1)
	}
	return c.Conn.Write(b)
}

// Close ends the connection and whoever waits at a gate for it.
func (c *gatedConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.net.mu.Lock()
		delete(c.net.conns, c)
		c.net.mu.Unlock()
	})
	return c.Conn.Close()
}

// gate is open or shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
	shut bool
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if shut == g.shut {
		return
	}
	g.shut = shut
	if shut {
		g.open = make(chan struct{})
	} else {
		close(g.open)
	}
}

// wait returns when the gate is open, or net.ErrClosed when done comes first.
func (g *gate) wait(done <-chan struct{}) error {
	for {
		g.mu.Lock()
		open := g.open
		shut := g.shut
		g.mu.Unlock()
		if !shut {
			return nil
		}
		select {
		case <-open:
		case <-done:
			return net.ErrClosed
		}
	}
}
