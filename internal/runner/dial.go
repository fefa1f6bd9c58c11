package runner

import (
	"context"
	"time"

	"github.com/tidemark-log/tidemark/internal/transport"
)

func dial(ctx context.Context, addr string) (*transport.Client, error) {
	return transport.Dial(ctx, addr, transport.ClientOptions{ClientID: "tidemark", DialTimeout: time.Second})
}
