package controlplane

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// refusal answers a request of the core as a whole with an error. Requests that
// have no error of their own carry it in every item.
func refusal(req kmsg.Request, code model.Error) kmsg.Response {
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if p := topError(resp); p != nil {
		*p = int16(code)
	}
	switch r := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		for _, t := range req.(*kmsg.CreateTopicsRequest).Topics {
			out := kmsg.NewCreateTopicsResponseTopic()
			out.Topic, out.ErrorCode = t.Topic, int16(code)
			out.NumPartitions, out.ReplicationFactor = -1, -1
			r.Topics = append(r.Topics, out)
		}
	case *kmsg.DeleteTopicsResponse:
		refuseDeleteTopics(req.(*kmsg.DeleteTopicsRequest), r, code)
	case *kmsg.CreatePartitionsResponse:
		for _, t := range req.(*kmsg.CreatePartitionsRequest).Topics {
			out := kmsg.NewCreatePartitionsResponseTopic()
			out.Topic, out.ErrorCode = t.Topic, int16(code)
			r.Topics = append(r.Topics, out)
		}
	case *kmsg.AlterConfigsResponse:
		for _, t := range req.(*kmsg.AlterConfigsRequest).Resources {
			out := kmsg.NewAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName, out.ErrorCode = t.ResourceType, t.ResourceName, int16(code)
			r.Resources = append(r.Resources, out)
		}
	case *kmsg.IncrementalAlterConfigsResponse:
		for _, t := range req.(*kmsg.IncrementalAlterConfigsRequest).Resources {
			out := kmsg.NewIncrementalAlterConfigsResponseResource()
			out.ResourceType, out.ResourceName, out.ErrorCode = t.ResourceType, t.ResourceName, int16(code)
			r.Resources = append(r.Resources, out)
		}
	}
	return resp
}

func refuseDeleteTopics(req *kmsg.DeleteTopicsRequest, r *kmsg.DeleteTopicsResponse, code model.Error) {
	for _, name := range req.TopicNames {
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.ErrorCode = kmsg.StringPtr(name), int16(code)
		r.Topics = append(r.Topics, out)
	}
	for _, t := range req.Topics {
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID, out.ErrorCode = t.Topic, t.TopicID, int16(code)
		r.Topics = append(r.Topics, out)
	}
}

// topError returns where a response says that all of it failed, or nil.
func topError(resp kmsg.Response) *int16 {
	switch r := resp.(type) {
	case *kmsg.BrokerHeartbeatResponse:
		return &r.ErrorCode
	case *kmsg.AlterPartitionResponse:
		return &r.ErrorCode
	case *kmsg.BrokerRegistrationResponse:
		return &r.ErrorCode
	case *kmsg.AllocateProducerIDsResponse:
		return &r.ErrorCode
	case *kmsg.AssignReplicasToDirsResponse:
		return &r.ErrorCode
	case *kmsg.ElectLeadersResponse:
		return &r.ErrorCode
	case *kmsg.AlterPartitionAssignmentsResponse:
		return &r.ErrorCode
	case *kmsg.ListPartitionReassignmentsResponse:
		return &r.ErrorCode
	case *kmsg.UpdateFeaturesResponse:
		return &r.ErrorCode
	case *kmsg.UnregisterBrokerResponse:
		return &r.ErrorCode
	case *kmsg.ControllerRegistrationResponse:
		return &r.ErrorCode
	case *kmsg.DescribeQuorumResponse:
		return &r.ErrorCode
	case *kmsg.UnregisterControllerResponse:
		return &r.ErrorCode
	}
	return nil
}

// notController reports whether a response says that another node is the active
// controller, or none: then nothing was done.
func notController(resp kmsg.Response) bool {
	code := int16(0)
	if p := topError(resp); p != nil {
		code = *p
	}
	switch r := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		for _, t := range r.Topics {
			code = t.ErrorCode
		}
	case *kmsg.DeleteTopicsResponse:
		for _, t := range r.Topics {
			code = t.ErrorCode
		}
	case *kmsg.CreatePartitionsResponse:
		for _, t := range r.Topics {
			code = t.ErrorCode
		}
	case *kmsg.AlterConfigsResponse:
		for _, t := range r.Resources {
			code = t.ErrorCode
		}
	case *kmsg.IncrementalAlterConfigsResponse:
		for _, t := range r.Resources {
			code = t.ErrorCode
		}
	case *kmsg.DescribeQuorumResponse:
		if len(r.Topics) > 0 && len(r.Topics[0].Partitions) > 0 {
			code = r.Topics[0].Partitions[0].ErrorCode
		}
	}
	return code == int16(model.ErrNotController) || code == int16(model.ErrNotLeaderOrFollower)
}
