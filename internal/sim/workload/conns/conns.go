// Package conns is the connections of one client to brokers.
package conns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/transport"
)

// ErrNotSent says that a request never left: the outcome is known, nothing
// happened.
var ErrNotSent = errors.New("the request was not sent")

// Conns are the connections, one to an address. They serve one task.
type Conns struct {
	opts  transport.ClientOptions
	links []link // in the order in which they were made
}

// link is the connection to one address.
type link struct {
	addr string
	c    *transport.Client
}

// New returns no connections; those to come are made with the options.
func New(o transport.ClientOptions) *Conns { return &Conns{opts: o} }

// Close ends the connections; new ones may be made afterwards.
func (c *Conns) Close() {
	for _, l := range c.links {
		l.c.Close()
	}
	c.links = nil
}

// Forget closes the connection to addr, as clients do after an error on it.
func (c *Conns) Forget(addr string) {
	c.links = slices.DeleteFunc(c.links, func(l link) bool {
		if l.addr == addr {
			l.c.Close()
		}
		return l.addr == addr
	})
}

// To returns a connection to addr that lives. ErrNotSent is among the causes of its
// error.
func (c *Conns) To(ctx context.Context, addr string) (*transport.Client, error) {
	for _, l := range c.links {
		if l.addr != addr {
			continue
		}
		if l.c.Err() == nil {
			return l.c, nil
		}
		c.Forget(addr)
		break
	}
	t, err := transport.Dial(ctx, addr, c.opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	c.links = append(c.links, link{addr, t})
	return t, nil
}
