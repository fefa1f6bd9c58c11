package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// findCoordinator serves key 10, versions 0 to 6: the broker that leads the
// partition of __consumer_offsets that a group belongs to. The topic is created
// when the first group asks. Errors: COORDINATOR_NOT_AVAILABLE until there is a
// leader, UNSUPPORTED_VERSION for the coordinators of transactions and share
// groups, INVALID_REQUEST for other types.
func (a *API) findCoordinator(c call, req *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if req.Version < 4 {
		id, e, err := a.coordinatorOf(c, req.CoordinatorType, req.CoordinatorKey)
		resp.ErrorCode, resp.NodeID, resp.Host, resp.Port = err.Code(), int32(id), e.Host, int32(e.Port)
		if err != model.None {
			resp.ErrorMessage = text(err.Error())
		}
		return resp
	}
	for _, key := range req.CoordinatorKeys {
		out := kmsg.NewFindCoordinatorResponseCoordinator()
		id, e, err := a.coordinatorOf(c, req.CoordinatorType, key)
		out.Key, out.ErrorCode, out.NodeID, out.Host, out.Port = key, err.Code(), int32(id), e.Host, int32(e.Port)
		if err != model.None {
			out.ErrorMessage = text(err.Error())
		}
		resp.Coordinators = append(resp.Coordinators, out)
	}
	return resp
}

// noEndpoint is what an error carries in the place of a coordinator.
var noEndpoint = metalog.Endpoint{}

func (a *API) coordinatorOf(c call, kind int8, key string) (model.BrokerID, metalog.Endpoint, model.Error) {
	switch {
	case kind == 1 || kind == 2: // transactions, share groups
		return model.NoBroker, noEndpoint, model.ErrUnsupportedVersion
	case kind != 0:
		return model.NoBroker, noEndpoint, model.ErrInvalidRequest
	}
	img := a.Images.Image()
	t := img.TopicByName(offsetsTopic)
	if t == nil || len(t.Partitions) == 0 {
		a.autoCreate([]string{offsetsTopic})
		return model.NoBroker, noEndpoint, model.ErrCoordinatorNotAvailable
	}
	p := t.Partitions[groupPartition(key, int32(len(t.Partitions)))]
	e, ok := endpoint(img.Broker(p.Leader), c.Conn.Listener())
	if !ok {
		return model.NoBroker, noEndpoint, model.ErrCoordinatorNotAvailable
	}
	return p.Leader, e, model.None
}
