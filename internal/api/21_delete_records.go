package api

import (
	"context"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// deleteRecords serves key 21, versions 0 to 2: raises log starts and waits for
// the live followers (R3.27). Errors per partition: INVALID_TOPIC_EXCEPTION for
// internal topics, POLICY_VIOLATION where cleanup.policy has no delete,
// OFFSET_OUT_OF_RANGE, REQUEST_TIMED_OUT; the low watermark is -1 then.
func (a *API) deleteRecords(ctx context.Context, _ *transport.Request, req *kmsg.DeleteRecordsRequest) kmsg.Response {
	img := a.Images.Image()
	var asks []DeleteQuery
	var rows []*kmsg.DeleteRecordsResponseTopicPartition
	resp := kmsg.NewPtrDeleteRecordsResponse()
	resp.Topics = make([]kmsg.DeleteRecordsResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, to := &req.Topics[i], &resp.Topics[i]
		to.Topic = t.Topic
		to.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p, out := &t.Partitions[j], &to.Partitions[j]
			out.Partition, out.LowWatermark = p.Partition, -1
			h, err := a.deletable(img, t.Topic, p.Partition)
			if out.ErrorCode = err.Code(); err == model.None {
				asks = append(asks, DeleteQuery{
					Hosted: h, Offset: model.Offset(p.Offset),
					Err: model.ErrRequestTimedOut, LowWatermark: model.UnknownOffset,
				})
				rows = append(rows, out)
			}
		}
	}
	if len(asks) > 0 {
		ctx, cancel := a.within(ctx, req.TimeoutMillis)
		defer cancel()
		a.Queries.DeleteRecords(ctx, asks)
	}
	for i, out := range rows {
		out.ErrorCode = asks[i].Err.Code()
		if asks[i].Err == model.None {
			out.LowWatermark = int64(asks[i].LowWatermark)
		}
	}
	return resp
}

// deletable finds a replica whose records clients may delete.
func (a *API) deletable(img *image.Image, topic string, partition int32) (*Hosted, model.Error) {
	h, err := a.Data.placeByName(img, topic, partition)
	switch {
	case err == model.ErrUnknownTopicOrPartition:
	case internalTopic(topic):
		err = model.ErrInvalidTopicException
	case err == model.None && !a.Data.Topic(topic).CleanupDelete:
		err = model.ErrPolicyViolation
	}
	return h, err
}
