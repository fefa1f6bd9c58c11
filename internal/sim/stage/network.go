package stage

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

// Network connects the machines by what TCP makes of a network: streams whose
// bytes come in order, late when packets were lost, or not at all.
type Network struct {
	// Latency is the usual time one way, Jitter what is added at most.
	Latency, Jitter time.Duration

	stage    *Stage
	hosts    map[string]*Machine // by address
	ports    map[string]*listener
	links    map[way]*Link
	nextPort int
}

// way is one direction between two addresses.
type way struct{ from, to string }

// Link is one direction between two machines.
type Link struct {
	// Cut drops everything, until it is healed.
	Cut bool
	// Loss is how many of a thousand segments have to be sent again.
	Loss int
	// Delay is added to the network's latency.
	Delay time.Duration
	// BytesPerSecond bounds what gets through; 0 is no bound.
	BytesPerSecond int64

	free time.Duration // when the link has sent what it took
	held []func()      // segments that wait for the end of a cut
}

func newNetwork(s *Stage) *Network {
	return &Network{Latency: 200 * time.Microsecond, Jitter: 300 * time.Microsecond, stage: s, hosts: map[string]*Machine{},
		ports: map[string]*listener{}, links: map[way]*Link{}, nextPort: 32768}
}

// Link is the way from one machine to another.
func (n *Network) Link(from, to *Machine) *Link { return n.link(from.IP, to.IP) }

func (n *Network) link(from, to string) *Link {
	l := n.links[way{from, to}]
	if l == nil {
		l = &Link{}
		n.links[way{from, to}] = l
	}
	return l
}

// Heal ends a cut: what waits is sent again soon.
func (n *Network) Heal(l *Link) {
	if !l.Cut {
		return
	}
	l.Cut = false
	held := l.held
	l.held = nil
	// One stream's segments arrive in their order: each is only told to go on.
	again := time.Duration(n.stage.Rand.Int64N(int64(resend)))
	n.stage.After(again, func() {
		for _, send := range held {
			send()
		}
	})
}

// resend is how long a lost segment takes to be sent again.
const resend = 200 * time.Millisecond

// send has arrive called when a segment of so many bytes got through.
func (n *Network) send(from, to string, bytes int, arrive func()) {
	l := n.link(from, to)
	if l.Cut {
		l.held = append(l.held, func() { n.send(from, to, bytes, arrive) })
		return
	}
	r := n.stage.Rand
	took := n.Latency + l.Delay
	if n.Jitter > 0 {
		took += time.Duration(r.Int64N(int64(n.Jitter)))
	}
	for l.Loss > 0 && r.IntN(1000) < l.Loss && took < time.Minute {
		took += resend + time.Duration(r.Int64N(int64(resend)))
	}
	if l.BytesPerSecond > 0 {
		l.free = max(l.free, n.stage.now) + time.Duration(int64(bytes)*int64(time.Second)/l.BytesPerSecond)
		took += l.free - n.stage.now
	}
	n.stage.After(took, arrive)
}

// listener is an open port.
type listener struct {
	process *Process
	addr    *net.TCPAddr
	key     string
	waiting []*conn
	change  *task.Signal
	closed  bool
}

// Listen opens a port of the process's machine.
func (p *Process) Listen(addr string) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	n := p.stage.Net
	tcp.IP = net.ParseIP(p.Machine.IP)
	if tcp.Port == 0 {
		n.nextPort++
		tcp.Port = n.nextPort
	}
	key := tcp.String()
	if _, taken := n.ports[key]; taken {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: tcp, Err: syscall.EADDRINUSE}
	}
	l := &listener{process: p, addr: tcp, key: key, change: p.Runtime.NewSignal()}
	n.ports[key] = l
	p.ports = append(p.ports, l)
	return l, nil
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		if len(l.waiting) > 0 {
			c := l.waiting[0]
			l.waiting = l.waiting[1:]
			return c, nil
		}
		if l.closed {
			return nil, net.ErrClosed
		}
		l.process.Runtime.Wait(nil, task.Forever, l.change)
	}
}

// Close closes the port.
func (l *listener) Close() error {
	if l.process.dead {
		return nil
	}
	l.shut()
	l.change.Close()
	return nil
}

func (l *listener) shut() {
	if l.closed {
		return
	}
	l.closed = true
	delete(l.process.stage.Net.ports, l.key)
	for _, c := range l.waiting {
		c.reset()
	}
	l.waiting = nil
}

// Addr is the port's address.
func (l *listener) Addr() net.Addr { return l.addr }

// dial is a connection that is being made.
type dial struct {
	near *conn
	err  error
	done *task.Signal
}

// Dial connects a process to a port. It is refused where the machine runs and the
// port is closed; where nobody answers it waits for ctx.
func (p *Process) Dial(ctx context.Context, addr string) (net.Conn, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	n := p.stage.Net
	n.nextPort++
	local := &net.TCPAddr{IP: net.ParseIP(p.Machine.IP), Port: 1<<15 + n.nextPort%(1<<15)}
	d := &dial{done: p.Runtime.NewSignal()}
	n.send(p.Machine.IP, tcp.IP.String(), 64, func() { n.knock(p, d, local, tcp) })
	if p.Runtime.Wait(ctx, task.Forever, d.done) != 0 {
		if d.near != nil {
			d.near.Close()
		}
		d.done = nil
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: tcp, Err: os.ErrDeadlineExceeded}
	}
	if d.err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: tcp, Err: d.err}
	}
	return d.near, nil
}

// knock is the arrival of a dial.
func (n *Network) knock(p *Process, d *dial, local, to *net.TCPAddr) {
	host := n.hosts[to.IP.String()]
	if host == nil || !host.on {
		return // nobody answers
	}
	l := n.ports[to.String()]
	if l == nil {
		n.answer(p, d, to, os.NewSyscallError("connect", syscall.ECONNREFUSED))
		return
	}
	if p.dead {
		return
	}
	near, far := pipe(p, l.process, local, to)
	d.near = near
	l.waiting = append(l.waiting, far)
	l.change.Raise()
	n.answer(p, d, to, nil)
}

func (n *Network) answer(p *Process, d *dial, from *net.TCPAddr, err error) {
	n.send(from.IP.String(), p.Machine.IP, 64, func() {
		if d.done == nil || p.dead {
			return
		}
		d.err = err
		d.done.Raise()
	})
}
