package controlplane

import (
	"context"
	"errors"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Controller is a running voter of the quorum.
type Controller struct{}

var errClosed = errors.New("the controller is closed")

// Start recovers the log of o.Dir, opens the controller listener to peers and
// starts the loop. It returns before a leader is known: see Ready. ctx bounds
// the start only.
func Start(ctx context.Context, o Options) (*Controller, error) { return nil, errClosed }

// Addr returns the address of the controller listener.
func (c *Controller) Addr() net.Addr { return nil }

// Ready is closed once this node knows a leader and its image holds the
// bootstrap records.
func (c *Controller) Ready() <-chan struct{} { return nil }

// Image returns the newest committed image.
func (c *Controller) Image() *image.Image { return nil }

// Subscribe is described at Source.
func (c *Controller) Subscribe(fn func(*image.Image)) (stop func()) { return func() {} }

// Active returns the active controller and its epoch.
func (c *Controller) Active() (model.BrokerID, model.Epoch) { return model.NoBroker, model.NoEpoch }

// Submit has this node answer req if it is the active controller; otherwise the
// answer carries NOT_CONTROLLER. ctx bounds the wait for the commit.
func (c *Controller) Submit(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return nil, errClosed
}

// Forward is described at Source.
func (c *Controller) Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return nil, errClosed
}

// Done is closed when the controller has failed or was closed.
func (c *Controller) Done() <-chan struct{} { return nil }

// Err says why Done was closed; nil after a plain Close.
func (c *Controller) Err() error { return nil }

// Close ends the controller and all its goroutines.
func (c *Controller) Close() error { return nil }
