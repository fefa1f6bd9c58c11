package controlplane

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
)

// Source is what a broker needs of the metadata plane. A combined node takes it
// from its Controller, a separate broker from its Observer.
type Source interface {
	// Image returns the newest committed image. It is never nil and its end
	// never falls.
	Image() *image.Image
	// Subscribe calls fn with every newer committed image, in order, skipping
	// some when fn is slow; the current one comes first. fn runs in a task of
	// the source and may block. stop ends it and waits for fn to return.
	Subscribe(fn func(*image.Image)) (stop func())
	// Active returns the active controller as this node knows it, with its
	// epoch; model.NoBroker when there is none.
	Active() (model.BrokerID, model.Epoch)
	// Forward has the active controller answer req, looking for it anew after
	// NOT_CONTROLLER or a lost connection until ctx ends. A request that was
	// sent on a connection that then ended is sent again only if it is safe to
	// repeat; otherwise the error is returned.
	Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	// Done is closed when the source has failed or was closed.
	Done() <-chan struct{}
	// DoneSignal is Done for tasks of the node.
	DoneSignal() *task.Signal
	// Err says why Done was closed; nil after a plain Close.
	Err() error
	// Close ends every task of the source.
	Close() error
}

var (
	_ Source = (*Controller)(nil)
	_ Source = (*Observer)(nil)
)
