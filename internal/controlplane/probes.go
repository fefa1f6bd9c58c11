package controlplane

import (
	"context"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// heartbeats knows on which connection each broker sent its last heartbeat
// (R13.6). A broker of this very process has none.
type heartbeats struct {
	conns map[model.BrokerID]*beat
}

type beat struct {
	conn  *transport.Conn
	epoch model.BrokerEpoch
}

// heartbeatEnded says that a connection which carried heartbeats is gone.
type heartbeatEnded struct {
	broker model.BrokerID
	conn   *transport.Conn
}

// note remembers the connection of a heartbeat and watches its end.
func (h *heartbeats) note(l *loop, conn *transport.Conn, req *kmsg.BrokerHeartbeatRequest) {
	id, epoch := model.BrokerID(req.BrokerID), model.BrokerEpoch(req.BrokerEpoch)
	if conn == nil {
		delete(h.conns, id)
		return
	}
	if b := h.conns[id]; b != nil && b.conn == conn {
		b.epoch = epoch
		return
	}
	h.conns[id] = &beat{conn, epoch}
	l.group.Go("heartbeat connection", func() {
		if l.rt.Wait(nil, task.Forever, conn.ClosedSignal(), l.quit) == 0 {
			l.post(heartbeatEnded{id, conn})
		}
	})
}

// heartbeatEnded tells the core, unless the broker speaks on another connection
// by now.
func (l *loop) heartbeatEnded(ev heartbeatEnded) {
	b := l.beats.conns[ev.broker]
	if b == nil || b.conn != ev.conn {
		return
	}
	delete(l.beats.conns, ev.broker)
	if l.active == nil {
		return
	}
	if p, ok := l.active.state.Disconnected(l.now(), ev.broker, b.epoch); ok {
		l.probes.start(l, p)
	}
}

// Beat is what the deciding controller knows of the life of a broker.
type Beat struct {
	Broker model.BrokerID
	Epoch  model.BrokerEpoch
	Last   model.Time // when it was heard of
	Fenced bool       // decided, maybe not committed
	Stands bool       // so does the connection of its last heartbeat
}

// Beats visits the brokers that this controller has heard of while it decides. It
// reads what the controller's loop owns, so nothing else may run: it is for the
// simulator, between two steps.
func (c *Controller) Beats(visit func(Beat)) {
	a := c.loop.active
	if a == nil {
		return
	}
	for _, b := range a.state.Image().Brokers() {
		at, heard := a.state.LastHeard(b)
		if !heard {
			continue
		}
		on := c.loop.beats.conns[b.ID]
		visit(Beat{Broker: b.ID, Epoch: b.Epoch, Last: at, Fenced: b.Fenced,
			Stands: on != nil && on.epoch == b.Epoch && !on.conn.ClosedSignal().Closed()})
	}
}

// probes dials brokers whose heartbeat connection ended, a few times, and says so
// when a dial is refused: the process is gone.
type probes struct {
	dial func(addr string) error // gives up after a while, and when the loop ends
}

// probeRefused says that nothing listens where a broker registered.
type probeRefused struct {
	broker model.BrokerID
	epoch  model.BrokerEpoch
}

const probeTimeout = 2 * time.Second

// probePauses are the waits between the dials of one probe. The connections of a
// dying process may end before its listener does: a dial in between is accepted
// although nobody is there.
var probePauses = [...]time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
	400 * time.Millisecond, 800 * time.Millisecond}

func (p *probes) start(l *loop, probe controller.Probe) {
	if len(probe.Endpoints) == 0 {
		return
	}
	addr := address(probe.Endpoints[0].Host, probe.Endpoints[0].Port)
	l.group.Go("broker probe", func() {
		for try := 0; ; try++ {
			if transport.Refused(p.dial(addr)) {
				l.post(probeRefused{probe.Broker, probe.Epoch})
				return
			}
			if try == len(probePauses) || l.rt.Wait(nil, probePauses[try], l.quit) != task.Timeout {
				return
			}
		}
	})
}

// dialer tries whether somebody listens at an address; stop ends all attempts.
func dialer(rt *task.Runtime, with Dial) (dial func(addr string) error, stop func()) {
	ctx, stop := rt.WithCancel(context.Background())
	if with == nil {
		d := net.Dialer{}
		with = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	return func(addr string) error {
		ctx, cancel := rt.WithTimeout(ctx, probeTimeout)
		defer cancel()
		conn, err := with(ctx, addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}, stop
}

func (l *loop) probeRefused(ev probeRefused) {
	if l.active != nil {
		l.take(l.active.state.ProbeRefused(l.call(l.now()), ev.broker, ev.epoch), nil)
	}
}
