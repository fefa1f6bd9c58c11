package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// Controller is a running voter of the quorum.
type Controller struct {
	o       Options
	rt      *task.Runtime
	loop    *loop
	readers *readers
	pub     *broadcast
	server  *transport.Server
	served  *wire.Versions
	forward *forwarder
	ready   *task.Signal // closed once it is

	quit     *task.Signal // closed to end the loop
	done     *task.Signal // closed when the loop has ended
	err      error        // why; set before done is closed
	closing  atomic.Bool
	closed   *task.Signal // closed at the end of Close
	group    *task.Group  // server, readers, subscribers, registration
	stopDial func()
}

var errClosed = errors.New("the controller is closed")

// closeTimeout is how long answers that are on their way may take at the end.
const closeTimeout = time.Second

// Start recovers the log of o.Dir, opens the controller listener to peers and
// starts the loop. It returns before a leader is known: see Ready. ctx bounds
// the start only. The listener is closed when Start fails.
func Start(ctx context.Context, o Options) (*Controller, error) {
	o.setDefaults()
	if o.Core.Configs == nil {
		o.Listener.Close()
		return nil, errors.New("start controller: Core.Configs is missing")
	}
	if err := ctx.Err(); err != nil {
		o.Listener.Close()
		return nil, err
	}
	rt := o.Runtime
	c := &Controller{
		o: o, rt: rt, ready: rt.NewSignal(), quit: rt.NewSignal(), done: rt.NewSignal(), closed: rt.NewSignal(), group: rt.NewGroup(),
	}
	l, err := c.recover()
	if err != nil {
		o.Listener.Close()
		return nil, fmt.Errorf("start controller %d: %w", o.NodeID, err)
	}
	c.loop = l
	c.served = c.versions()
	c.server = transport.NewServer(o.Listener, transport.Options{Name: o.ListenerName, Versions: c.served, Log: o.Log, Runtime: rt})
	c.forward = newForwarder(rt, o.NodeID, c.pub, c.done, o.Dial)
	c.forward.local = c.Submit
	if err := l.publish(); err != nil {
		c.release()
		o.Listener.Close()
		return nil, fmt.Errorf("start controller %d: %w", o.NodeID, err)
	}
	l.planFirstCampaign()
	l.connectPeers()
	c.group.Go("metadata readers", c.readers.run)
	c.group.Go("controller listener", func() { c.fail(c.server.Serve(c)) })
	rt.Go("controller", c.run)
	c.group.Go("controller registration", c.register)
	return c, nil
}

func (c *Controller) run() {
	c.err = c.loop.run()
	if c.err != nil {
		c.abandon()
	}
	c.done.Close()
}

// fail stops the controller because its listener failed.
func (c *Controller) fail(err error) {
	if err != nil {
		c.o.Log.Error("controller listener failed", "err", err)
		c.quit.Close()
	}
}

// abandon cuts every connection after a failure, so that peers and brokers turn
// to another controller at once.
func (c *Controller) abandon() {
	c.o.Log.Error("controller failed", "err", c.err)
	ctx, cancel := c.rt.WithCancel(context.Background())
	cancel()
	c.server.Close(ctx) // always says that it had to cut
}

// Addr returns the address of the controller listener.
func (c *Controller) Addr() net.Addr { return c.server.Addr() }

// Ready is closed once this node knows a leader and its image holds the
// bootstrap records.
func (c *Controller) Ready() <-chan struct{} { return c.ready.C() }

// ReadySignal is Ready for tasks of the node.
func (c *Controller) ReadySignal() *task.Signal { return c.ready }

// Image returns the newest committed image.
func (c *Controller) Image() *image.Image { return c.pub.img.Load() }

// Subscribe is described at Source.
func (c *Controller) Subscribe(fn func(*image.Image)) (stop func()) {
	return c.pub.subscribe(c.done, c.group, fn)
}

// Active returns the active controller and its epoch.
func (c *Controller) Active() (model.BrokerID, model.Epoch) {
	l := c.pub.lead.Load()
	return l.leader, l.epoch
}

// Submit has this node answer req if it is the active controller; otherwise the
// answer carries NOT_CONTROLLER. ctx bounds the wait for the commit.
func (c *Controller) Submit(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	var answer kmsg.Response // set before given is closed
	given := c.rt.NewSignal()
	reply := func(resp kmsg.Response) {
		answer = resp
		given.Close()
	}
	if d, ok := req.(*kmsg.DescribeQuorumRequest); ok {
		if !c.describeQuorum(d, reply) {
			return nil, errClosed
		}
	} else if !c.loop.post(call{req: req, reply: reply}) {
		return nil, errClosed
	}
	switch end := c.rt.Wait(ctx, task.Forever, given, c.done); {
	case given.Closed():
		return answer, nil
	case end == task.Ended:
		return nil, fmt.Errorf("wait for the commit: %w", ctx.Err())
	}
	return nil, errClosed
}

// Forward is described at Source.
func (c *Controller) Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return c.forward.forward(ctx, req)
}

// Done is closed when the controller has failed or was closed.
func (c *Controller) Done() <-chan struct{} { return c.done.C() }

// DoneSignal is Done for tasks of the node.
func (c *Controller) DoneSignal() *task.Signal { return c.done }

// Err says why Done was closed; nil after a plain Close, and before.
func (c *Controller) Err() error {
	if c.done.Closed() {
		return c.err
	}
	return nil
}

// Committed returns the image and the offset up to which the log is applied, as
// the loop has them: newer than Image for a moment. Only while no task runs.
func (c *Controller) Committed() (*image.Image, model.Offset) {
	return c.loop.img, c.loop.node.Applied().End
}

// Close ends the controller and all its tasks. It returns the error that stopped
// the controller before, or that of closing its files.
func (c *Controller) Close() error {
	if !c.closing.CompareAndSwap(false, true) {
		c.rt.Wait(nil, task.Forever, c.closed)
		return nil
	}
	defer c.closed.Close()
	c.quit.Close()
	c.rt.Wait(nil, task.Forever, c.done)
	c.readers.in.Close()
	ctx, cancel := c.rt.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	c.server.Close(ctx) // an answer that nobody takes is no error
	c.forward.close()
	c.group.Wait()
	c.stopDial()
	c.loop.wait()
	return errors.Join(c.err, c.release())
}

// release closes the files.
func (c *Controller) release() error {
	c.stopDial()
	return errors.Join(c.loop.wal.Close(), c.loop.dir.Close())
}

// wait waits for the tasks that the loop started; it has ended.
func (l *loop) wait() {
	if l.incoming.cancel != nil {
		l.incoming.cancel()
		l.incoming.offer.reply(model.ErrNotController)
	}
	l.group.Wait()
}
