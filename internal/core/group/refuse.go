package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Refuse answers a group request as a whole with err, at the place where its
// version keeps errors. It returns nil for a request of another kind.
func Refuse(req kmsg.Request, err model.Error) kmsg.Response {
	code := int16(err)
	resp := req.ResponseKind()
	switch resp := resp.(type) {
	case *kmsg.JoinGroupResponse:
		resp.MemberID = req.(*kmsg.JoinGroupRequest).MemberID
		resp.ErrorCode = code
	case *kmsg.SyncGroupResponse:
		resp.ErrorCode = code
	case *kmsg.HeartbeatResponse:
		resp.ErrorCode = code
	case *kmsg.LeaveGroupResponse:
		resp.ErrorCode = code
	case *kmsg.ListGroupsResponse:
		resp.ErrorCode = code
	case *kmsg.OffsetDeleteResponse:
		resp.ErrorCode = code
	case *kmsg.OffsetCommitResponse:
		refuseCommit(req.(*kmsg.OffsetCommitRequest), resp, code)
	case *kmsg.OffsetFetchResponse:
		refuseFetch(req.(*kmsg.OffsetFetchRequest), resp, code)
	case *kmsg.DescribeGroupsResponse:
		for _, id := range req.(*kmsg.DescribeGroupsRequest).Groups {
			e := kmsg.NewDescribeGroupsResponseGroup()
			e.Group, e.ErrorCode = id, code
			resp.Groups = append(resp.Groups, e)
		}
	case *kmsg.DeleteGroupsResponse:
		for _, id := range req.(*kmsg.DeleteGroupsRequest).Groups {
			e := kmsg.NewDeleteGroupsResponseGroup()
			e.Group, e.ErrorCode = id, code
			resp.Groups = append(resp.Groups, e)
		}
	default:
		return nil
	}
	return resp
}

func refuseCommit(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, code int16) {
	for _, t := range req.Topics {
		e := kmsg.NewOffsetCommitResponseTopic()
		e.Topic, e.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			ep := kmsg.NewOffsetCommitResponseTopicPartition()
			ep.Partition, ep.ErrorCode = p.Partition, code
			e.Partitions = append(e.Partitions, ep)
		}
		resp.Topics = append(resp.Topics, e)
	}
}

// refuseFetch: v0 and v1 have no other place than the partitions.
func refuseFetch(req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse, code int16) {
	for _, g := range req.Groups {
		e := kmsg.NewOffsetFetchResponseGroup()
		e.Group, e.ErrorCode = g.Group, code
		resp.Groups = append(resp.Groups, e)
	}
	resp.ErrorCode = code
	if req.Version >= fetchTopLevelError {
		return
	}
	for _, t := range req.Topics {
		e := kmsg.NewOffsetFetchResponseTopic()
		e.Topic = t.Topic
		for _, p := range t.Partitions {
			ep := kmsg.NewOffsetFetchResponseTopicPartition()
			metadata := ""
			ep.Partition, ep.Offset, ep.Metadata, ep.ErrorCode = p, int64(model.UnknownOffset), &metadata, code
			e.Partitions = append(e.Partitions, ep)
		}
		resp.Topics = append(resp.Topics, e)
	}
}
