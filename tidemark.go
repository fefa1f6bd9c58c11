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
	failed    chan struct{}
	why       error // before failed is closed
}

// Open starts a broker and returns when it serves clients. ctx bounds the start.
func Open(ctx context.Context, cfg Config) (*Broker, error) {
	b := &Broker{failed: make(chan struct{})}
	dir := cfg.Dir
	if dir == "" {
		var err error
		if dir, err = cluster.TempDir(); err != nil {
			return nil, err
		}
		b.throwaway = dir
	}
	c, err := cluster.Start(ctx, cluster.Options{Nodes: 1, Dir: dir, Port: cfg.Port, Set: cfg.Properties, Log: cfg.Log,
		Ended: func(_ int, why error) { b.why = why; close(b.failed) }})
	if err != nil {
		b.remove()
		return nil, fmt.Errorf("open the broker: %w", err)
	}
	b.c = c
	return b, nil
}

// Addr is the address that clients connect to.
func (b *Broker) Addr() string { return b.c.Addrs()[0] }

// Failed is closed when the broker could not go on, by a disk that failed say: it serves
// nobody any more, and Err says why. It still has to be closed.
func (b *Broker) Failed() <-chan struct{} { return b.failed }

// Err is why Failed was closed; nil before.
func (b *Broker) Err() error {
	select {
	case <-b.failed:
		return b.why
	default:
		return nil
	}
}

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
