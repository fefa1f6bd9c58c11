package api

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

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
	return refuse(req, code)
}

func forwardTimeout(req kmsg.Request) time.Duration {
	t, ok := req.(kmsg.TimeoutRequest)
	if !ok {
		return defaultForwardTimeout
	}
	return max(time.Duration(t.Timeout())*time.Millisecond, minForwardTimeout)
}

// refuse answers a forwarded request, as a whole, with one error at the places
// where its version keeps errors. It returns nil for a request of another kind.
func refuse(req kmsg.Request, err model.Error) kmsg.Response {
	code, why := err.Code(), text(err.Error())
	switch req := req.(type) {
	case *kmsg.CreateTopicsRequest:
		return refuseCreateTopics(req, code, why)
	case *kmsg.DeleteTopicsRequest:
		return refuseDeleteTopics(req, code, why)
	case *kmsg.CreatePartitionsRequest:
		return refuseCreatePartitions(req, code, why)
	case *kmsg.ElectLeadersRequest:
		return refuseElectLeaders(req, code, why)
	case *kmsg.AlterConfigsRequest:
		return refuseAlterConfigs(req, code, why)
	case *kmsg.IncrementalAlterConfigsRequest:
		return refuseIncrementalAlterConfigs(req, code, why)
	}
	return refuseWhole(req, code, why)
}

// refuseWhole answers requests that have one error for all.
func refuseWhole(req kmsg.Request, code int16, why *string) kmsg.Response {
	switch req.(type) {
	case *kmsg.AlterPartitionAssignmentsRequest:
		resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
		resp.ErrorCode, resp.ErrorMessage = code, why
		return resp
	case *kmsg.ListPartitionReassignmentsRequest:
		resp := kmsg.NewPtrListPartitionReassignmentsResponse()
		resp.ErrorCode, resp.ErrorMessage = code, why
		return resp
	case *kmsg.UpdateFeaturesRequest:
		resp := kmsg.NewPtrUpdateFeaturesResponse()
		resp.ErrorCode, resp.ErrorMessage = code, why
		return resp
	case *kmsg.DescribeQuorumRequest:
		resp := kmsg.NewPtrDescribeQuorumResponse()
		resp.ErrorCode, resp.ErrorMessage = code, why
		return resp
	case *kmsg.UnregisterBrokerRequest:
		resp := kmsg.NewPtrUnregisterBrokerResponse()
		resp.ErrorCode, resp.ErrorMessage = code, why
		return resp
	}
	return nil
}

func refuseCreateTopics(req *kmsg.CreateTopicsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrCreateTopicsResponse()
	for i := range req.Topics {
		t := kmsg.NewCreateTopicsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = req.Topics[i].Topic, code, why
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func refuseDeleteTopics(req *kmsg.DeleteTopicsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrDeleteTopicsResponse()
	for _, name := range req.TopicNames {
		t := kmsg.NewDeleteTopicsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = &name, code, why
		resp.Topics = append(resp.Topics, t)
	}
	for i := range req.Topics {
		t := kmsg.NewDeleteTopicsResponseTopic()
		t.Topic, t.TopicID, t.ErrorCode, t.ErrorMessage = req.Topics[i].Topic, req.Topics[i].TopicID, code, why
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func refuseCreatePartitions(req *kmsg.CreatePartitionsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrCreatePartitionsResponse()
	for i := range req.Topics {
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = req.Topics[i].Topic, code, why
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func refuseElectLeaders(req *kmsg.ElectLeadersRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrElectLeadersResponse()
	resp.ErrorCode = code
	for i := range req.Topics {
		t := kmsg.NewElectLeadersResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, partition := range req.Topics[i].Partitions {
			p := kmsg.NewElectLeadersResponseTopicPartition()
			p.Partition, p.ErrorCode, p.ErrorMessage = partition, code, why
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func refuseAlterConfigs(req *kmsg.AlterConfigsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrAlterConfigsResponse()
	for i := range req.Resources {
		r := kmsg.NewAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		r.ErrorCode, r.ErrorMessage = code, why
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}

func refuseIncrementalAlterConfigs(req *kmsg.IncrementalAlterConfigsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	for i := range req.Resources {
		r := kmsg.NewIncrementalAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		r.ErrorCode, r.ErrorMessage = code, why
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}
