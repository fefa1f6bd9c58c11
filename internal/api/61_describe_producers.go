package api

import (
	"context"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// describeProducers serves key 61, version 0: what the leader of a partition
// remembers of its idempotent producers (KIP-664). Errors:
// UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
func (a *API) describeProducers(ctx context.Context, _ *transport.Request, req *kmsg.DescribeProducersRequest) kmsg.Response {
	img := a.Images.Image()
	var asks []BoundQuery
	var rows []*kmsg.DescribeProducersResponseTopicPartition
	resp := kmsg.NewPtrDescribeProducersResponse()
	resp.Topics = make([]kmsg.DescribeProducersResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, to := &req.Topics[i], &resp.Topics[i]
		to.Topic = t.Topic
		to.Partitions = make([]kmsg.DescribeProducersResponseTopicPartition, len(t.Partitions))
		for j, id := range t.Partitions {
			out := &to.Partitions[j]
			out.Partition = id
			h, err := a.Data.placeByName(img, t.Topic, id)
			if out.ErrorCode = err.Code(); err == model.None {
				asks = append(asks, BoundQuery{Hosted: h, Current: model.NoEpoch, Err: model.ErrRequestTimedOut})
				rows = append(rows, out)
			}
		}
	}
	if len(asks) > 0 {
		a.Queries.Bounds(ctx, asks)
	}
	for i, out := range rows {
		if err := asks[i].Err; err != model.None && err != model.ErrOffsetNotAvailable {
			out.ErrorCode = err.Code()
			continue
		}
		for _, e := range asks[i].Hosted.Log.Producers().Entries() {
			out.ActiveProducers = append(out.ActiveProducers, activeProducer(e))
		}
	}
	return resp
}

func activeProducer(e producers.Entry) kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	p := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
	p.ProducerID, p.ProducerEpoch, p.LastSequence = int64(e.ID), int32(e.Epoch), e.LastSequence
	p.LastTimestamp, p.CoordinatorEpoch = int64(e.Timestamp), e.CoordinatorEpoch
	p.CurrentTxnStartOffset = int64(e.TxnFirst)
	return p
}
