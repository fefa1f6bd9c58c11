package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/view"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// describeTopicPartitions serves key 75, version 0: topics in order of their
// names with their eligible leader replicas, page by page (KIP-966). A page ends
// after the smaller of the request's limit and max.request.partition.size.limit;
// the cursor says where the next one begins. Errors per topic: INVALID_REQUEST
// for a negative cursor, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION,
// LEADER_NOT_AVAILABLE of a partition.
func (a *API) describeTopicPartitions(_ context.Context, r *transport.Request, req *kmsg.DescribeTopicPartitionsRequest) kmsg.Response {
	if req.Cursor != nil && req.Cursor.Partition < 0 {
		return refuseTopicPartitions(req, model.ErrInvalidRequest)
	}
	p := &topicPage{
		view: view.New(a.Images.Image(), r.Conn.Listener(), 1),
		resp: kmsg.NewPtrDescribeTopicPartitionsResponse(),
		left: max(1, min(int(req.ResponsePartitionLimit), a.Config.MaxRequestPartitions)),
	}
	first, from := "", 0
	if req.Cursor != nil {
		first, from = req.Cursor.Topic, int(req.Cursor.Partition)
	}
	begin := func(name string) int {
		if name == first {
			return from
		}
		return 0
	}
	if len(req.Topics) == 0 {
		for t := range p.view.Image.TopicsFrom(first) {
			if !p.add(t.Name, t, begin(t.Name)) {
				break
			}
		}
		return p.resp
	}
	for _, name := range sortedNames(req.Topics, first) {
		if !p.add(name, p.view.Image.TopicByName(name), begin(name)) {
			break
		}
	}
	return p.resp
}

func refuseTopicPartitions(req *kmsg.DescribeTopicPartitionsRequest, err model.Error) kmsg.Response {
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	for i := range req.Topics {
		t := kmsg.NewDescribeTopicPartitionsResponseTopic()
		t.Topic, t.ErrorCode = &req.Topics[i].Topic, err.Code()
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// sortedNames lists the names of a request from first on, each once.
func sortedNames(topics []kmsg.DescribeTopicPartitionsRequestTopic, first string) []string {
	names := make([]string, 0, len(topics))
	for i := range topics {
		if topics[i].Topic >= first {
			names = append(names, topics[i].Topic)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// topicPage is one page under construction; left is how many more partitions
// fit.
type topicPage struct {
	view *view.View
	resp *kmsg.DescribeTopicPartitionsResponse
	left int
}

// add describes the partitions of a topic from one on, as many as fit, and says
// whether the page goes on.
func (p *topicPage) add(name string, t *image.Topic, from int) bool {
	if p.left == 0 {
		p.next(name, 0)
		return false
	}
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.IsInternal, out.AuthorizedOperations = &name, internalTopic(name), topicOperations
	if t == nil {
		out.ErrorCode = missingTopic(name).Code()
		p.resp.Topics = append(p.resp.Topics, out)
		return true
	}
	out.TopicID = t.ID
	to := min(len(t.Partitions), from+p.left)
	for id := from; id < to; id++ {
		out.Partitions = append(out.Partitions, p.partition(int32(id), t.Partitions[id]))
	}
	p.left -= len(out.Partitions)
	p.resp.Topics = append(p.resp.Topics, out)
	if to < len(t.Partitions) {
		p.next(name, int32(to))
		return false
	}
	return true
}

func (p *topicPage) next(topic string, partition int32) {
	cursor := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	cursor.Topic, cursor.Partition = topic, partition
	p.resp.NextCursor = &cursor
}

func (p *topicPage) partition(id int32, part *image.Partition) kmsg.DescribeTopicPartitionsResponseTopicPartition {
	out := kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	out.Partition, out.LeaderID, out.LeaderEpoch = id, int32(part.Leader), int32(part.LeaderEpoch)
	out.Replicas, out.ISR = p.view.IDs(part.Replicas), p.view.IDs(part.ISR)
	out.EligibleLeaderReplicas, out.LastKnownELR = p.view.IDs(part.ELR), p.view.IDs(part.LastKnownELR)
	out.OfflineReplicas = p.view.Offline(part.Replicas)
	if !p.view.Alive(part.Leader) {
		out.LeaderID, out.ErrorCode = int32(model.NoBroker), model.ErrLeaderNotAvailable.Code()
	}
	return out
}
