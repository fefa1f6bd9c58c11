package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// errNotSent says that a request never left: the outcome is known, nothing
// happened.
var errNotSent = errors.New("the request was not sent")

// client is one Kafka client: its connections and what it knows of the cluster.
// It serves one task.
type client struct {
	env   *Env
	id    string
	conns []link // in the order in which they were made
	meta  metadata.Cluster
}

// link is the connection to one address.
type link struct {
	addr string
	c    *transport.Client
}

func newClient(env *Env) *client { return &client{env: env, id: env.name} }

// close ends the connections; the client may go on with new ones, as one that
// was restarted.
func (c *client) close() {
	for _, l := range c.conns {
		l.c.Close()
	}
	c.conns = nil
}

// forget closes the connection to addr, as clients do after an error on it.
func (c *client) forget(addr string) {
	c.conns = slices.DeleteFunc(c.conns, func(l link) bool {
		if l.addr == addr {
			l.c.Close()
		}
		return l.addr == addr
	})
}

// conn returns a connection to addr that lives.
func (c *client) conn(ctx context.Context, addr string) (*transport.Client, error) {
	for _, l := range c.conns {
		if l.addr != addr {
			continue
		}
		if l.c.Err() == nil {
			return l.c, nil
		}
		c.forget(addr)
		break
	}
	t, err := transport.Dial(ctx, addr, transport.ClientOptions{
		ClientID: c.id, DialTimeout: c.env.Options.RequestTimeout, Dial: c.env.Dial, Runtime: c.env.Runtime,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	c.conns = append(c.conns, link{addr, t})
	return t, nil
}

// ask sends a request to addr and waits for the answer, which takes wait longer
// than others. errNotSent is among the error's causes if nobody can have seen the
// request; after any other error its outcome is unknown.
func (c *client) ask(ctx context.Context, addr string, req kmsg.Request, wait time.Duration) (kmsg.Response, error) {
	c.setVersion(req)
	ctx, cancel := c.env.Runtime.WithTimeout(ctx, c.env.Options.RequestTimeout+wait)
	defer cancel()
	t, err := c.conn(ctx, addr)
	if err != nil {
		return nil, err
	}
	resp, err := t.Do(ctx, req)
	if err != nil {
		c.forget(addr)
		return nil, fmt.Errorf("%s to %s: %w", kmsg.NameForKey(req.Key()), addr, err)
	}
	return resp, nil
}

// setVersion takes the newest version that brokers serve, unless the request has
// one already.
func (c *client) setVersion(req kmsg.Request) {
	if req.GetVersion() == 0 {
		r, _ := wire.BrokerVersions.Range(req.Key())
		req.SetVersion(min(r.Max, req.MaxVersion()))
	}
}

// askBroker is ask, to a broker by its id.
func (c *client) askBroker(ctx context.Context, id int32, req kmsg.Request, wait time.Duration) (kmsg.Response, error) {
	addr := c.meta.Addr(id)
	if addr == "" {
		return nil, fmt.Errorf("%w: broker %d is not in the metadata", errNotSent, id)
	}
	return c.ask(ctx, addr, req, wait)
}

// askAny is ask, to any broker, known or from the bootstrap list.
func (c *client) askAny(ctx context.Context, req kmsg.Request, wait time.Duration) (kmsg.Response, error) {
	addrs := slices.Clone(c.env.Bootstrap)
	for _, addr := range c.meta.Addrs() {
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	c.env.Rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	var last error
	for _, addr := range addrs {
		resp, err := c.ask(ctx, addr, req, wait)
		if err == nil || !errors.Is(err, errNotSent) {
			return resp, err
		}
		last = err
	}
	return nil, last
}

// maxPause bounds the pause before another try.
const maxPause = 400 * time.Millisecond

// pause waits before try number n, from 1; false says that ctx ended.
func (c *client) pause(ctx context.Context, n int) bool {
	top := min(maxPause, 10*time.Millisecond<<min(n, 10))
	return c.env.Runtime.Sleep(ctx, top/2+time.Duration(c.env.Rand.Int64N(int64(top)/2)))
}
