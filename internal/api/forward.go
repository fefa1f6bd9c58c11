package api

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/refusal"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// forwarded are the requests that only the active controller can answer. It
// gets them as they are, and its answer is relayed.
var forwarded = []kmsg.Key{
	kmsg.CreateTopics, kmsg.DeleteTopics, kmsg.CreatePartitions, kmsg.ElectLeaders,
	kmsg.AlterPartitionAssignments, kmsg.ListPartitionReassignments, kmsg.UpdateFeatures,
	kmsg.DescribeQuorum, kmsg.UnregisterBroker,
}

// Waits for the controller, of requests that name a timeout and of those that
// do not.
const (
	minForwardTimeout     = time.Second
	defaultForwardTimeout = 30 * time.Second
)

// forward relays a request to the active controller and tries again until the
// request's timeout. When that ends, every part of the request is answered
// REQUEST_TIMED_OUT; when a connection broke on a request that is not safe to
// repeat, NETWORK_EXCEPTION.
func (a *API) forward(ctx context.Context, _ *transport.Request, req kmsg.Request) kmsg.Response {
	ctx, cancel := a.Runtime.WithTimeout(ctx, forwardTimeout(req))
	defer cancel()
	resp, err := a.Controller.Forward(ctx, req)
	if err == nil {
		return resp
	}
	a.Log.Warn("the controller did not answer", "api", kmsg.NameForKey(req.Key()), "err", err)
	code := model.ErrNetworkException
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		code = model.ErrRequestTimedOut
	}
	return refusal.Of(req, code, code.Error())
}

func forwardTimeout(req kmsg.Request) time.Duration {
	t, ok := req.(kmsg.TimeoutRequest)
	if !ok {
		return defaultForwardTimeout
	}
	return max(time.Duration(t.Timeout())*time.Millisecond, minForwardTimeout)
}
