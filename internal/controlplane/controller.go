package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// Controller is a running voter of the quorum.
type Controller struct {
	o       Options
	loop    *loop
	readers *readers
	pub     *broadcast
	server  *transport.Server
	served  *wire.Versions
	forward *forwarder
	ready   *ready

	quit     chan struct{} // closed to end the loop
	done     chan struct{} // closed when the loop has ended
	err      error         // why; set before done is closed
	stopOnce sync.Once
	closing  sync.Once
	group    sync.WaitGroup // server, readers, subscribers, registration
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
	c := &Controller{o: o, ready: newReady(), quit: make(chan struct{}), done: make(chan struct{})}
	l, err := c.recover()
	if err != nil {
		o.Listener.Close()
		return nil, fmt.Errorf("start controller %d: %w", o.NodeID, err)
	}
	c.loop = l
	c.served = c.versions()
	c.server = transport.NewServer(o.Listener, transport.Options{Name: o.ListenerName, Versions: c.served, Log: o.Log})
	c.forward = newForwarder(o.NodeID, c.pub, c.done, o.Dial)
	c.forward.local = c.Submit
	if err := l.publish(); err != nil {
		c.release()
		o.Listener.Close()
		return nil, fmt.Errorf("start controller %d: %w", o.NodeID, err)
	}
	l.planFirstCampaign()
	l.connectPeers()
	c.group.Go(c.readers.run)
	c.group.Go(func() { c.fail(c.server.Serve(c)) })
	go func() {
		c.err = l.run()
		if c.err != nil {
			c.abandon()
		}
		close(c.done)
	}()
	c.group.Go(func() { c.register() })
	return c, nil
}

// fail stops the controller because its listener failed.
func (c *Controller) fail(err error) {
	if err != nil {
		c.o.Log.Error("controller listener failed", "err", err)
		c.stop()
	}
}

// abandon cuts every connection after a failure, so that peers and brokers turn
// to another controller at once.
func (c *Controller) abandon() {
	c.o.Log.Error("controller failed", "err", c.err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.server.Close(ctx) // always says that it had to cut
}

// stop has the loop end.
func (c *Controller) stop() { c.stopOnce.Do(func() { close(c.quit) }) }

// Addr returns the address of the controller listener.
func (c *Controller) Addr() net.Addr { return c.server.Addr() }

// Ready is closed once this node knows a leader and its image holds the
// bootstrap records.
func (c *Controller) Ready() <-chan struct{} { return c.ready.ch }

// Image returns the newest committed image.
func (c *Controller) Image() *image.Image { return c.pub.img.Load() }

// Subscribe is described at Source.
func (c *Controller) Subscribe(fn func(*image.Image)) (stop func()) {
	return c.pub.subscribe(c.done, &c.group, fn)
}

// Active returns the active controller and its epoch.
func (c *Controller) Active() (model.BrokerID, model.Epoch) {
	l := c.pub.lead.Load()
	return l.leader, l.epoch
}

// Submit has this node answer req if it is the active controller; otherwise the
// answer carries NOT_CONTROLLER. ctx bounds the wait for the commit.
func (c *Controller) Submit(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	answer := make(chan kmsg.Response, 1)
	reply := func(resp kmsg.Response) { answer <- resp }
	if d, ok := req.(*kmsg.DescribeQuorumRequest); ok {
		if !c.describeQuorum(d, reply) {
			return nil, errClosed
		}
	} else if !c.loop.post(call{req: req, reply: reply}) {
		return nil, errClosed
	}
	select {
	case resp := <-answer:
		return resp, nil
	case <-c.done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the commit: %w", ctx.Err())
	}
}

// Forward is described at Source.
func (c *Controller) Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return c.forward.forward(ctx, req)
}

// Done is closed when the controller has failed or was closed.
func (c *Controller) Done() <-chan struct{} { return c.done }

// Err says why Done was closed; nil after a plain Close, and before.
func (c *Controller) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close ends the controller and all its goroutines. It returns the error that
// stopped the controller before, or that of closing its files.
func (c *Controller) Close() error {
	var err error
	c.closing.Do(func() {
		c.stop()
		<-c.done
		// What was posted while the loop ended has no other reader.
		served := make(chan struct{})
		var strays sync.WaitGroup
		strays.Go(func() { c.loop.refuseStrays(served) })
		close(c.readers.quit)
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		c.server.Close(ctx) // an answer that nobody takes is no error
		c.forward.close()
		c.group.Wait()
		c.loop.wait()
		close(served)
		strays.Wait()
		err = errors.Join(c.err, c.release())
	})
	return err
}

// release closes the files.
func (c *Controller) release() error {
	c.stopDial()
	return errors.Join(c.loop.wal.Close(), c.loop.dir.Close())
}

// refuseStrays answers requests that came while the loop ended.
func (l *loop) refuseStrays(served <-chan struct{}) {
	for {
		select {
		case ev := <-l.events:
			switch ev := ev.(type) {
			case call:
				ev.reply(refusal(ev.req, model.ErrNotController))
			case offer:
				ev.reply(model.ErrNotController)
			case describe:
				ev.done(&quorumStatus{lead: leadership{leader: model.NoBroker}})
			}
		case <-served:
			return
		}
	}
}

// wait waits for the goroutines that the loop started; it has ended.
func (l *loop) wait() {
	if l.incoming.cancel != nil {
		l.incoming.cancel()
		l.incoming.offer.reply(model.ErrNotController)
	}
	l.incoming.group.Wait()
	l.checkpoint.group.Wait()
	l.probes.group.Wait()
	l.beats.group.Wait()
}
