package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/sim/workload/conns"
	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// client is one Kafka client: its connections and what it knows of the cluster.
// It serves one task.
type client struct {
	env   *Env
	conns *conns.Conns
	meta  metadata.Cluster
}

func newClient(env *Env) *client {
	return &client{env: env, conns: conns.New(transport.ClientOptions{
		ClientID: env.name, DialTimeout: env.Options.RequestTimeout, Dial: env.Dial, Runtime: env.Runtime,
	})}
}

// close ends the connections; the client may go on with new ones, as one that
// was restarted.
func (c *client) close() { c.conns.Close() }

// ask sends a request to addr and waits for the answer, which takes wait longer
// than others. conns.ErrNotSent is among the error's causes if nobody can have seen
// the request; after any other error its outcome is unknown.
func (c *client) ask(ctx context.Context, addr string, req kmsg.Request, wait time.Duration) (kmsg.Response, error) {
	c.setVersion(req)
	ctx, cancel := c.env.Runtime.WithTimeout(ctx, c.env.Options.RequestTimeout+wait)
	defer cancel()
	t, err := c.conns.To(ctx, addr)
	if err != nil {
		return nil, err
	}
	resp, err := t.Do(ctx, req)
	if err != nil {
		c.conns.Forget(addr)
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
		return nil, fmt.Errorf("%w: broker %d is not in the metadata", conns.ErrNotSent, id)
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
		if err == nil || !errors.Is(err, conns.ErrNotSent) {
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
