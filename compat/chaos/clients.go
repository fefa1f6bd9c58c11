package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// client opens a client that looks quickly for new leaders and gives up on
// silent connections within seconds. What it has to say goes to a file, under its
// name.
func (c *cluster) client(name string, opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.bootstrap()...),
		kgo.Dialer(c.dial),
		kgo.WithLogger(kgo.BasicLogger(c.clientLog, kgo.LogLevelInfo, func() string {
			return fmt.Sprintf("%.3f %s: ", c.h.Now().Duration().Seconds(), name)
		})),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(5 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.RequestTimeoutOverhead(3 * time.Second),
		kgo.UnknownTopicRetries(-1),
		// A proxy accepts for a dead node too, and then ends the connection.
		kgo.AlwaysRetryEOF(),
	}, opts...)...)
}

// dial connects to a node, over its proxy where there is one.
func (c *cluster) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	return d.DialContext(ctx, network, c.net.Detour(addr))
}

// administrator opens a client for requests to the controller.
func (c *cluster) administrator() (*kadm.Client, error) {
	cl, err := c.client("administrator", kgo.RetryTimeout(5*time.Second))
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(cl), nil
}

// pause waits; false if the context ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
