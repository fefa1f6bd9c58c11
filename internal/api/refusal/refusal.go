// Package refusal is one error as the answer to a whole request.
package refusal

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Of answers a request that only the active controller can carry out with an error
// at the places where its version keeps errors, and with why where there is room for
// words. It returns nil for a request of another kind.
func Of(req kmsg.Request, err model.Error, why string) kmsg.Response {
	code := err.Code()
	switch req := req.(type) {
	case *kmsg.CreateTopicsRequest:
		return createTopics(req, code, &why)
	case *kmsg.DeleteTopicsRequest:
		return deleteTopics(req, code, &why)
	case *kmsg.CreatePartitionsRequest:
		return createPartitions(req, code, &why)
	case *kmsg.ElectLeadersRequest:
		return electLeaders(req, code, &why)
	case *kmsg.AlterConfigsRequest:
		return alterConfigs(req, code, &why)
	case *kmsg.IncrementalAlterConfigsRequest:
		return incrementalAlterConfigs(req, code, &why)
	}
	return whole(req, code, &why)
}

// whole answers requests that have one error for all.
func whole(req kmsg.Request, code int16, why *string) kmsg.Response {
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

func createTopics(req *kmsg.CreateTopicsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrCreateTopicsResponse()
	for i := range req.Topics {
		t := kmsg.NewCreateTopicsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = req.Topics[i].Topic, code, why
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func deleteTopics(req *kmsg.DeleteTopicsRequest, code int16, why *string) kmsg.Response {
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

func createPartitions(req *kmsg.CreatePartitionsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrCreatePartitionsResponse()
	for i := range req.Topics {
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = req.Topics[i].Topic, code, why
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func electLeaders(req *kmsg.ElectLeadersRequest, code int16, why *string) kmsg.Response {
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

func alterConfigs(req *kmsg.AlterConfigsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrAlterConfigsResponse()
	for i := range req.Resources {
		r := kmsg.NewAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		r.ErrorCode, r.ErrorMessage = code, why
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}

func incrementalAlterConfigs(req *kmsg.IncrementalAlterConfigsRequest, code int16, why *string) kmsg.Response {
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	for i := range req.Resources {
		r := kmsg.NewIncrementalAlterConfigsResponseResource()
		r.ResourceType, r.ResourceName = req.Resources[i].ResourceType, req.Resources[i].ResourceName
		r.ErrorCode, r.ErrorMessage = code, why
		resp.Resources = append(resp.Resources, r)
	}
	return resp
}
