package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/view"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// Kinds of endpoints that DescribeCluster may ask for (KIP-919).
const (
	brokerEndpoints     = 1
	controllerEndpoints = 2
)

// describeCluster serves key 60, versions 0 to 2: the brokers that clients of
// this listener can reach, and from v2 on the fenced ones too if asked for
// (KIP-700, 1073). Errors: MISMATCHED_ENDPOINT_TYPE for the controllers, who
// answer for themselves; UNSUPPORTED_ENDPOINT_TYPE.
func (a *API) describeCluster(_ context.Context, r *transport.Request, req *kmsg.DescribeClusterRequest) kmsg.Response {
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.ControllerID, resp.EndpointType = int32(model.NoBroker), brokerEndpoints
	if req.Version >= 1 && req.EndpointType != brokerEndpoints {
		err := model.ErrUnsupportedEndpointType
		if req.EndpointType == controllerEndpoints {
			err = model.ErrMismatchedEndpointType
		}
		resp.ErrorCode, resp.ErrorMessage = err.Code(), text(err.Error())
		return resp
	}
	v := view.New(a.Images.Image(), r.Conn.Listener(), req.Version)
	resp.ClusterID, resp.ControllerID = a.ClusterID, int32(a.controllerID(v))
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	for _, b := range v.Image.Brokers() {
		e, ok := listed(b, v.Listener)
		if !ok || b.Fenced && !req.IncludeFencedBrokers {
			continue
		}
		out := kmsg.NewDescribeClusterResponseBroker()
		out.NodeID, out.Host, out.Port, out.Rack, out.IsFenced = int32(b.ID), e.Host, int32(e.Port), b.Rack, b.Fenced
		resp.Brokers = append(resp.Brokers, out)
	}
	return resp
}

// listed is where a broker said that it listens, be it fenced or not.
func listed(b *image.Broker, listener string) (metalog.Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Name == listener {
			return e, true
		}
	}
	return metalog.Endpoint{}, false
}
