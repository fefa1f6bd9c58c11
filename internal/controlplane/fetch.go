package controlplane

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// maxFetchWait bounds a long poll, whatever the request asks for.
const maxFetchWait = 30 * time.Second

// Versions of Fetch from which a reader names topics by id, and says which high
// watermark it knows (KIP-1166).
const (
	idFrom = 13
	hwFrom = 18
)

// fetch answers a Fetch of the metadata log (KIP-595, KIP-630). It reports false
// when the answer is to wait for a commit; first says that the request has just
// come. Only committed records are served, so the answer to a reader that has
// all of them is the only one that waits.
func (r *readers) fetch(x *read, first bool) bool {
	s, req := r.state.Load(), x.fetch
	p, code := r.fetchTarget(req)
	if code != model.None {
		resp := kmsg.NewPtrFetchResponse()
		resp.SetVersion(req.GetVersion())
		resp.ErrorCode = int16(code)
		x.req.Reply(transport.Message(resp))
		return true
	}
	if first {
		x.deadline = r.rt.Now().Add(min(max(0, time.Duration(req.MaxWaitMillis)*time.Millisecond), maxFetchWait))
	}
	out := kmsg.NewFetchResponseTopicPartition()
	out.PreferredReadReplica = -1
	out.RecordBatches = []byte{}
	out.HighWatermark, out.LastStableOffset, out.LogStartOffset = -1, -1, -1
	if code := s.check(model.Epoch(p.CurrentLeaderEpoch)); code != model.None {
		if code == model.ErrNotLeaderOrFollower && s.lead.leader == model.NoBroker && r.rt.Now().Before(x.deadline) {
			return false // a leader may be found meanwhile
		}
		out.ErrorCode = int16(code)
		return r.reply(x, s, &out)
	}
	if p.FetchOffset < 0 || p.LastFetchedEpoch > int32(s.lead.epoch) {
		out.ErrorCode = int16(model.ErrInvalidRequest)
		return r.reply(x, s, &out)
	}
	return r.read(x, s, p, &out, first)
}

// read fills an answer of the leader, or reports false to wait.
func (r *readers) read(x *read, s *served, p *kmsg.FetchRequestTopicPartition, out *kmsg.FetchResponseTopicPartition, first bool) bool {
	o := r.observe(x, p, s, first)
	out.HighWatermark, out.LogStartOffset = int64(s.hw), int64(s.view.Start())
	verdict, id := s.view.Check(model.Offset(p.FetchOffset), model.Epoch(max(p.LastFetchedEpoch, 0)))
	switch verdict {
	case projection.Snapshot:
		out.SnapshotID.EndOffset, out.SnapshotID.Epoch = int64(id.End), int32(id.Epoch)
	case projection.Diverging:
		out.DivergingEpoch.EndOffset, out.DivergingEpoch.Epoch = int64(id.End), int32(id.Epoch)
	default:
		records, err := s.view.Read(model.Offset(p.FetchOffset), fetchBytes(x.fetch, p))
		if errors.Is(err, projection.ErrGone) {
			return false // a newer view follows
		}
		if err != nil {
			r.log.Error("metadata log cannot be read", "offset", p.FetchOffset, "err", err)
			out.ErrorCode = int16(model.ErrKafkaStorageError)
			break
		}
		if len(records) == 0 && r.rt.Now().Before(x.deadline) && !news(o, p, s, x.fetch.GetVersion()) {
			return false
		}
		if records != nil {
			out.RecordBatches = records
		}
	}
	if o != nil {
		o.sentHW = s.hw
	}
	return r.reply(x, s, out)
}

// news reports whether the reader may not know the high watermark yet, though
// it has all records: it says so (KIP-1166), or nothing was sent to it so far.
func news(o *observerState, p *kmsg.FetchRequestTopicPartition, s *served, version int16) bool {
	if version >= hwFrom && p.HighWatermark != math.MaxInt64 {
		return model.Offset(p.HighWatermark) < s.hw
	}
	return o == nil || o.sentHW < s.hw
}

func fetchBytes(req *kmsg.FetchRequest, p *kmsg.FetchRequestTopicPartition) int {
	if p.PartitionMaxBytes <= 0 {
		return int(req.MaxBytes)
	}
	return int(min(req.MaxBytes, p.PartitionMaxBytes))
}

// fetchTarget returns the one partition of the metadata log that a Fetch asks
// for, or an error for the whole request.
func (r *readers) fetchTarget(req *kmsg.FetchRequest) (*kmsg.FetchRequestTopicPartition, model.Error) {
	if req.ClusterID != nil && *req.ClusterID != r.clusterID {
		return nil, model.ErrInconsistentClusterID
	}
	if len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].Partition != 0 {
		return nil, model.ErrInvalidRequest
	}
	t := &req.Topics[0]
	if req.GetVersion() >= idFrom && t.TopicID != projection.TopicID || req.GetVersion() < idFrom && t.Topic != metadataTopic {
		return nil, model.ErrInvalidRequest
	}
	return &t.Partitions[0], model.None
}

// check fences a reader that follows another epoch.
func (s *served) check(current model.Epoch) model.Error {
	switch {
	case current >= 0 && current < s.lead.epoch:
		return model.ErrFencedLeaderEpoch
	case current > s.lead.epoch:
		return model.ErrUnknownLeaderEpoch
	case !s.lead.active:
		return model.ErrNotLeaderOrFollower
	}
	return model.None
}

// reply sends the one partition, with the leader and its address.
func (r *readers) reply(x *read, s *served, p *kmsg.FetchResponseTopicPartition) bool {
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(x.fetch.GetVersion())
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = int32(s.lead.leader), int32(s.lead.epoch)
	t := kmsg.NewFetchResponseTopic()
	t.Topic, t.TopicID = metadataTopic, projection.TopicID
	t.Partitions = append(t.Partitions, *p)
	resp.Topics = append(resp.Topics, t)
	if v, ok := s.leader(); ok {
		resp.Brokers = append(resp.Brokers, kmsg.FetchResponseBroker{NodeID: int32(v.ID), Host: v.Host, Port: int32(v.Port)})
	}
	x.req.Reply(transport.Message(resp))
	return true
}

// leader returns the leader's voter entry.
func (s *served) leader() (Voter, bool) {
	for _, v := range s.voters {
		if v.ID == s.lead.leader {
			return v, true
		}
	}
	return Voter{}, false
}

// observe notes what a Fetch tells of its sender. Nil for one that is no node.
func (r *readers) observe(x *read, p *kmsg.FetchRequestTopicPartition, s *served, first bool) *observerState {
	id := x.fetch.ReplicaID
	if x.fetch.GetVersion() >= 15 {
		id = x.fetch.ReplicaState.ID
	}
	if id < 0 {
		return nil
	}
	key := observerKey{model.BrokerID(id), model.UUID(p.ReplicaDirectoryID)}
	o := r.observers[key]
	if o == nil {
		if len(r.observers) >= maxObservers {
			r.forgetOldest()
		}
		o = &observerState{seen: -1, caughtUp: -1, sentHW: model.UnknownOffset, lastEnd: model.UnknownOffset}
		r.observers[key] = o
	}
	if !first {
		return o
	}
	now, end := r.rt.Wall().UnixMilli(), model.Offset(p.FetchOffset)
	if end < o.end || end == 0 {
		o.sentHW = model.UnknownOffset // it began anew
	}
	// Caught up: to the log end of now, or to that of its last fetch (KIP-836).
	if end >= s.hw {
		o.caughtUp = now
	} else if o.lastEnd >= 0 && end >= o.lastEnd {
		o.caughtUp = o.seen
	}
	o.end, o.at, o.seen, o.lastEnd = end, r.rt.Now(), now, s.hw
	return o
}

// compare orders observers.
func (k observerKey) compare(other observerKey) int {
	return cmp.Or(cmp.Compare(k.id, other.id), bytes.Compare(k.directory[:], other.directory[:]))
}

// maxObservers bounds what is remembered of readers.
const maxObservers = 10_000

func (r *readers) forgetOldest() {
	var oldest observerKey
	at := time.Time{}
	for k, o := range r.observers {
		if c := o.at.Compare(at); at.IsZero() || c < 0 || c == 0 && k.compare(oldest) < 0 {
			oldest, at = k, o.at
		}
	}
	delete(r.observers, oldest)
}

// fetchSnapshot answers a FetchSnapshot with a piece of a checkpoint.
func (r *readers) fetchSnapshot(req *kmsg.FetchSnapshotRequest) *kmsg.FetchSnapshotResponse {
	resp := kmsg.NewPtrFetchSnapshotResponse()
	resp.SetVersion(req.GetVersion())
	if req.ClusterID != nil && *req.ClusterID != r.clusterID {
		resp.ErrorCode = int16(model.ErrInconsistentClusterID)
		return resp
	}
	if len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 {
		resp.ErrorCode = int16(model.ErrInvalidRequest)
		return resp
	}
	s, p := r.state.Load(), &req.Topics[0].Partitions[0]
	out := kmsg.NewFetchSnapshotResponseTopicPartition()
	out.Bytes = []byte{}
	out.Partition = p.Partition
	out.SnapshotID.EndOffset, out.SnapshotID.Epoch = p.SnapshotID.EndOffset, p.SnapshotID.Epoch
	out.CurrentLeader.LeaderID, out.CurrentLeader.LeaderEpoch = int32(s.lead.leader), int32(s.lead.epoch)
	if req.Topics[0].Topic != metadataTopic || p.Partition != 0 {
		out.ErrorCode = int16(model.ErrUnknownTopicOrPartition)
	} else if code := s.check(model.Epoch(p.CurrentLeaderEpoch)); code != model.None && code != model.ErrNotLeaderOrFollower {
		out.ErrorCode = int16(code)
	} else {
		// Whoever holds the checkpoint serves it: all of it is committed, and a
		// new leader may need this very reader to get its first entry committed.
		r.piece(s, req, p, &out)
	}
	t := kmsg.NewFetchSnapshotResponseTopic()
	t.Topic = metadataTopic
	t.Partitions = append(t.Partitions, out)
	resp.Topics = append(resp.Topics, t)
	if v, ok := s.leader(); ok && req.GetVersion() >= 1 {
		e := kmsg.NewFetchSnapshotResponseNodeEndpoint()
		e.NodeID, e.Host, e.Port = int32(v.ID), v.Host, v.Port
		resp.NodeEndpoints = append(resp.NodeEndpoints, e)
	}
	return resp
}

func (r *readers) piece(s *served, req *kmsg.FetchSnapshotRequest, p *kmsg.FetchSnapshotRequestTopicPartition, out *kmsg.FetchSnapshotResponseTopicPartition) {
	id := projection.ID{End: model.Offset(p.SnapshotID.EndOffset), Epoch: model.Epoch(p.SnapshotID.Epoch)}
	if id == projection.Bootstrap || id.End < 0 || id.Epoch < 0 {
		out.ErrorCode = int16(model.ErrSnapshotNotFound)
		return
	}
	b, size, err := s.view.ReadPiece(id, p.Position, int(req.MaxBytes))
	switch {
	case errors.Is(err, projection.ErrGone):
		out.ErrorCode = int16(model.ErrSnapshotNotFound)
	case errors.Is(err, io.EOF):
		out.ErrorCode = int16(model.ErrPositionOutOfRange)
	case err != nil:
		r.log.Error("checkpoint cannot be read", "checkpoint", id.FileName(), "err", err)
		out.ErrorCode = int16(model.ErrKafkaStorageError)
	default:
		out.Size, out.Position, out.Bytes = size, p.Position, b
	}
}
