package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/view"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// findCoordinator serves key 10, versions 0 to 6: the broker that leads the
// partition of __consumer_offsets that a group belongs to. The topic is created
// when the first group asks. Errors: COORDINATOR_NOT_AVAILABLE until there is a
// leader, UNSUPPORTED_VERSION for the coordinators of transactions and share
// groups, INVALID_REQUEST for other types.
func (a *API) findCoordinator(ctx context.Context, r *transport.Request, req *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if req.Version < 4 {
		id, e, err := a.coordinatorOf(ctx, r, req.CoordinatorType, req.CoordinatorKey)
		resp.ErrorCode, resp.NodeID, resp.Host, resp.Port = err.Code(), int32(id), e.Host, int32(e.Port)
		if err != model.None {
			resp.ErrorMessage = text(err.Error())
		}
		return resp
	}
	for _, key := range req.CoordinatorKeys {
		out := kmsg.NewFindCoordinatorResponseCoordinator()
		id, e, err := a.coordinatorOf(ctx, r, req.CoordinatorType, key)
		out.Key, out.ErrorCode, out.NodeID, out.Host, out.Port = key, err.Code(), int32(id), e.Host, int32(e.Port)
		if err != model.None {
			out.ErrorMessage = text(err.Error())
		}
		resp.Coordinators = append(resp.Coordinators, out)
	}
	return resp
}

func (a *API) coordinatorOf(ctx context.Context, r *transport.Request, kind int8, key string) (model.BrokerID, metalog.Endpoint, model.Error) {
	switch {
	case kind == 1 || kind == 2: // transactions, share groups
		return model.NoBroker, metalog.Endpoint{}, model.ErrUnsupportedVersion
	case kind != 0:
		return model.NoBroker, metalog.Endpoint{}, model.ErrInvalidRequest
	}
	img := a.Images.Image()
	t := img.TopicByName(offsetsTopic)
	if t == nil || len(t.Partitions) == 0 {
		a.autoCreate(ctx, []string{offsetsTopic})
		return model.NoBroker, metalog.Endpoint{}, model.ErrCoordinatorNotAvailable
	}
	p := t.Partitions[groupPartition(key, int32(len(t.Partitions)))]
	e, ok := view.Endpoint(img.Broker(p.Leader), r.Conn.Listener())
	if !ok {
		return model.NoBroker, metalog.Endpoint{}, model.ErrCoordinatorNotAvailable
	}
	return p.Leader, e, model.None
}
