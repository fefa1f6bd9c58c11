package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// Timestamps that stand for offsets, each with the version that introduced it.
const (
	latestOffset         = -1
	earliestOffset       = -2
	maxTimestampOffset   = -3 // v7, KIP-734
	earliestLocalOffset  = -4 // v8, KIP-405
	latestTieredOffset   = -5 // v9, KIP-1005
	earliestUploadOffset = -6 // v11, KIP-1023
	debugReplica         = -2 // may ask any replica
)

// listCall is one ListOffsets request. Asks are the partitions that the loop
// must tell the bounds of; rows say which answer each one belongs to.
type listCall struct {
	a    *API
	req  *kmsg.ListOffsetsRequest
	asks []BoundQuery
	rows []listRow
}

type listRow struct {
	timestamp int64
	out       *kmsg.ListOffsetsResponseTopicPartition
}

// listOffsets serves key 2, versions 1 to 11 (R9.5, R9.6). Errors per
// partition: INVALID_REQUEST when named twice, UNSUPPORTED_VERSION for a
// special timestamp that the version does not have, OFFSET_NOT_AVAILABLE
// (LEADER_NOT_AVAILABLE before v5), and those of the partition; offset,
// timestamp and epoch are -1 then.
func (a *API) listOffsets(ctx context.Context, _ *transport.Request, req *kmsg.ListOffsetsRequest) kmsg.Response {
	l := &listCall{a: a, req: req}
	resp := l.plan()
	if len(l.asks) > 0 {
		a.Queries.Bounds(ctx, l.asks)
	}
	for i := range l.asks {
		l.answer(&l.asks[i], l.rows[i])
	}
	return resp
}

// plan makes a row for every partition and an ask for those that get one.
func (l *listCall) plan() *kmsg.ListOffsetsResponse {
	img := l.a.Images.Image()
	named := repeated{}
	for i := range l.req.Topics {
		for j := range l.req.Topics[i].Partitions {
			named.add(l.req.Topics[i].Topic, l.req.Topics[i].Partitions[j].Partition)
		}
	}
	resp := kmsg.NewPtrListOffsetsResponse()
	resp.Topics = make([]kmsg.ListOffsetsResponseTopic, len(l.req.Topics))
	for i := range l.req.Topics {
		t, to := &l.req.Topics[i], &resp.Topics[i]
		to.Topic = t.Topic
		to.Partitions = make([]kmsg.ListOffsetsResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p, out := &t.Partitions[j], &to.Partitions[j]
			out.Default()
			out.Partition, out.Timestamp, out.Offset, out.LeaderEpoch = p.Partition, -1, -1, -1
			h, err := l.a.Data.placeByName(img, t.Topic, p.Partition)
			switch {
			case named.twice(t.Topic, p.Partition):
				err = model.ErrInvalidRequest
			case !timestampKnown(p.Timestamp, l.req.Version):
				err = model.ErrUnsupportedVersion
			}
			if out.ErrorCode = err.Code(); err == model.None {
				l.ask(h, p, out)
			}
		}
	}
	return resp
}

// timestampKnown says whether the version has this special timestamp.
func timestampKnown(ts int64, version int16) bool {
	switch ts {
	case latestOffset, earliestOffset:
		return true
	case maxTimestampOffset:
		return version >= 7
	case earliestLocalOffset:
		return version >= 8
	case latestTieredOffset:
		return version >= 9
	case earliestUploadOffset:
		return version >= 11
	}
	return ts >= 0
}

func (l *listCall) ask(h *Hosted, p *kmsg.ListOffsetsRequestTopicPartition, out *kmsg.ListOffsetsResponseTopicPartition) {
	iso := partition.ReadUncommitted
	switch {
	case l.req.ReplicaID >= 0:
		iso = partition.ReadLogEnd
	case l.req.IsolationLevel == 1:
		iso = partition.ReadCommitted
	}
	l.asks = append(l.asks, BoundQuery{
		Hosted: h, Current: model.Epoch(p.CurrentLeaderEpoch), Isolation: iso,
		AnyReplica: l.req.ReplicaID == debugReplica,
		Err:        model.ErrRequestTimedOut,
	})
	l.rows = append(l.rows, listRow{p.Timestamp, out})
}

// answer fills one row in, once the bounds are known.
func (l *listCall) answer(q *BoundQuery, row listRow) {
	hidden := q.Err == model.ErrOffsetNotAvailable
	if q.Err != model.None && !hidden {
		row.out.ErrorCode = q.Err.Code()
		return
	}
	var found bool
	switch row.timestamp {
	case earliestOffset, earliestLocalOffset:
		row.set(-1, q.LogStart, q.StartEpoch)
		found = true
	case latestOffset:
		if found = !hidden; found {
			row.set(-1, q.Bound, q.Epoch)
		}
	case latestTieredOffset, earliestUploadOffset: // nothing is tiered here
		found = true
	default:
		found = l.lookUp(q, row)
	}
	if !found && hidden {
		row.out.ErrorCode = model.ErrOffsetNotAvailable.Code()
		if l.req.Version < 5 {
			row.out.ErrorCode = model.ErrLeaderNotAvailable.Code()
		}
	}
}

func (r listRow) set(ts int64, offset model.Offset, epoch model.Epoch) {
	r.out.Timestamp, r.out.Offset, r.out.LeaderEpoch = ts, int64(offset), int32(epoch)
}

// lookUp finds the first record at or after a time, or the one with the largest
// time, and says whether there is one below the bound.
func (l *listCall) lookUp(q *BoundQuery, row listRow) bool {
	var at storage.TimestampOffset
	var ok bool
	var err error
	if row.timestamp == maxTimestampOffset {
		at, ok, err = q.Hosted.Log.MaxTimestampOffset()
	} else {
		at, ok, err = q.Hosted.Log.OffsetForTime(model.Millis(row.timestamp))
	}
	switch {
	case errors.Is(err, storage.ErrClosed):
		row.out.ErrorCode = model.ErrNotLeaderOrFollower.Code()
		return true
	case err != nil:
		l.a.Log.Error("a lookup by time failed", "partition", q.Hosted.TP.String(), "err", err)
		row.out.ErrorCode = model.ErrKafkaStorageError.Code()
		return true
	case !ok || at.Offset >= q.Bound:
		return false
	}
	row.set(int64(at.Timestamp), at.Offset, at.Epoch)
	return true
}
