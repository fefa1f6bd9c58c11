package controlplane

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Observer follows a controller quorum by Kafka's Fetch and FetchSnapshot.
type Observer struct{ pub *broadcast }

// StartObserver loads what o.Dir holds and starts to follow the quorum. It
// returns before a leader is found.
func StartObserver(ctx context.Context, o ObserverOptions) (*Observer, error) { return nil, errClosed }

// Ready is closed once the observer has applied what its leader had committed
// when it was first reached.
func (o *Observer) Ready() <-chan struct{} { return nil }

// Image returns the newest committed image.
func (o *Observer) Image() *image.Image { return nil }

// Subscribe is described at Source.
func (o *Observer) Subscribe(fn func(*image.Image)) (stop func()) { return func() {} }

// Active returns the active controller and its epoch.
func (o *Observer) Active() (model.BrokerID, model.Epoch) { return model.NoBroker, model.NoEpoch }

// Forward is described at Source.
func (o *Observer) Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return nil, errClosed
}

// Done is closed when the observer has failed or was closed.
func (o *Observer) Done() <-chan struct{} { return nil }

// Err says why Done was closed; nil after a plain Close.
func (o *Observer) Err() error { return nil }

// Close ends the observer and all its goroutines.
func (o *Observer) Close() error { return nil }
