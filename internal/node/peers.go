package node

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// peers dials other brokers by the listener that brokers use among themselves.
type peers struct {
	self     model.BrokerID
	listener string
	image    func() *image.Image
	dial     func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
	rt       *task.Runtime
	limit    int
}

// Dial connects to broker id.
func (p *peers) Dial(ctx context.Context, id model.BrokerID) (*transport.Client, error) {
	b := p.image().Broker(id)
	if b == nil {
		return nil, fmt.Errorf("broker %d is not registered", id)
	}
	for _, e := range b.Endpoints {
		if e.Name == p.listener {
			addr := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
			return transport.Dial(ctx, addr, transport.ClientOptions{
				ClientID: "broker-" + strconv.Itoa(int(p.self)), MaxResponse: p.limit, MaxInFlight: 4, Dial: p.dial, Runtime: p.rt})
		}
	}
	return nil, fmt.Errorf("broker %d has no listener %s", id, p.listener)
}
