package api

import (
	"context"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// offsetForLeaderEpoch serves key 23, versions 2 to 4: where an epoch ended on
// the leader (R4.23, cases B99, B101). An unknown epoch is (-1, -1) without an
// error.
func (a *API) offsetForLeaderEpoch(ctx context.Context, _ *transport.Request, req *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	img := a.Images.Image()
	var asks []EpochQuery
	var rows []*kmsg.OffsetForLeaderEpochResponseTopicPartition
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	resp.Topics = make([]kmsg.OffsetForLeaderEpochResponseTopic, len(req.Topics))
	for i := range req.Topics {
		t, to := &req.Topics[i], &resp.Topics[i]
		to.Topic = t.Topic
		to.Partitions = make([]kmsg.OffsetForLeaderEpochResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p, out := &t.Partitions[j], &to.Partitions[j]
			out.Partition, out.LeaderEpoch, out.EndOffset = p.Partition, -1, -1
			h, err := a.Data.placeByName(img, t.Topic, p.Partition)
			if out.ErrorCode = err.Code(); err == model.None {
				asks = append(asks, EpochQuery{
					Hosted: h, Current: model.Epoch(p.CurrentLeaderEpoch), Epoch: model.Epoch(p.LeaderEpoch),
					Err: model.ErrRequestTimedOut, End: model.UndefinedEpochEnd,
				})
				rows = append(rows, out)
			}
		}
	}
	if len(asks) > 0 {
		a.Queries.EpochEnds(ctx, asks)
	}
	for i, out := range rows {
		q := &asks[i]
		if out.ErrorCode = q.Err.Code(); q.Err == model.None {
			out.LeaderEpoch, out.EndOffset = int32(q.End.Epoch), int64(q.End.End)
		}
	}
	return resp
}
