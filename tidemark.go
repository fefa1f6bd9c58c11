package tidemark

import (
	"context"
	"fmt"
	"os"

	"github.com/tidemark-log/tidemark/internal/cluster"
)

// Broker is a running node.
type Broker struct {
	c         *cluster.Cluster
	throwaway string
}

// Open starts a broker and returns when it serves clients. ctx bounds the start.
func Open(ctx context.Context, cfg Config) (*Broker, error) {
	b := &Broker{}
	dir := cfg.Dir
	if dir == "" {
		var err error
		if dir, err = cluster.TempDir(); err != nil {
			return nil, err
		}
		b.throwaway = dir
	}
	c, err := cluster.Start(ctx, cluster.Options{Nodes: 1, Dir: dir, Port: cfg.Port, Set: cfg.Properties, Log: cfg.Log})
	if err != nil {
		b.remove()
		return nil, fmt.Errorf("open the broker: %w", err)
	}
	b.c = c
	return b, nil
}

// Addr is the address that clients connect to.
func (b *Broker) Addr() string { return b.c.Addrs()[0] }

// Close stops the broker in an orderly way: everything acknowledged is synced
// and the next start need not recover. ctx bounds the wait.
func (b *Broker) Close(ctx context.Context) error {
	err := b.c.Close(ctx)
	b.remove()
	return err
}

func (b *Broker) remove() {
	if b.throwaway != "" {
		os.RemoveAll(b.throwaway)
	}
}
