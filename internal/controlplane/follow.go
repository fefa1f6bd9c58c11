package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/transport"
)

const (
	fetchMin    = 13 // topics by id
	fetchMax    = 18 // KIP-1166
	fetchWaitMs = 500
	// maxTail bounds what an Apache leader may send beyond its high watermark.
	maxTail = 64 << 20
)

// fetchVersion asks a node which version of Fetch it speaks.
func (f *follower) fetchVersion(ctx context.Context, client *transport.Client) (int16, error) {
	resp, err := f.ask(ctx, client, kmsg.NewPtrApiVersionsRequest())
	if err != nil {
		return 0, err
	}
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		if k.ApiKey == int16(kmsg.Fetch) && k.MaxVersion >= fetchMin && k.MinVersion <= fetchMax {
			return min(k.MaxVersion, fetchMax), nil
		}
	}
	return 0, errors.New("the node does not serve Fetch 13 to 18: no controller listener of Kafka 3.3 or later")
}

func (f *follower) fetchRequest(version int16) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(version)
	req.ClusterID = &f.o.ClusterID
	req.ReplicaID = int32(f.o.NodeID)
	req.ReplicaState.ID, req.ReplicaState.Epoch = int32(f.o.NodeID), -1
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = fetchWaitMs, 0, pieceBytes
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = metadataTopic, projection.TopicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch = int32(max(f.lead.epoch, 0))
	p.FetchOffset, p.LastFetchedEpoch = int64(f.end), int32(f.epoch)
	p.PartitionMaxBytes = pieceBytes
	p.ReplicaDirectoryID = f.o.DirectoryID
	p.HighWatermark = int64(f.hw)
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// fetchPartition returns the one partition of a response.
func fetchPartition(resp *kmsg.FetchResponse) (*kmsg.FetchResponseTopicPartition, error) {
	if resp.ErrorCode != 0 {
		return nil, model.Error(resp.ErrorCode)
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("the response does not hold the one partition")
	}
	return &resp.Topics[0].Partitions[0], nil
}

// adopt takes over what an answer says of the leader. It reports false when the
// node lives in an epoch that has passed.
func (f *follower) adopt(p *kmsg.FetchResponseTopicPartition, resp *kmsg.FetchResponse) bool {
	epoch, leader := model.Epoch(p.CurrentLeader.LeaderEpoch), model.BrokerID(p.CurrentLeader.LeaderID)
	if epoch < f.lead.epoch {
		return false
	}
	if epoch > f.lead.epoch || leader != model.NoBroker {
		f.lead = leadership{leader: leader, epoch: epoch, addr: f.leaderAddress(leader, resp)}
	} else if leader == model.NoBroker {
		f.lead.leader, f.lead.addr = model.NoBroker, ""
	}
	f.pub.setLead(f.lead)
	return true
}

// leaderAddress looks the leader up in the answer, the static voters and the log.
func (f *follower) leaderAddress(id model.BrokerID, resp *kmsg.FetchResponse) string {
	for _, b := range resp.Brokers {
		if model.BrokerID(b.NodeID) == id && b.Port > 0 && b.Port <= 1<<16-1 {
			return address(b.Host, uint16(b.Port))
		}
	}
	for _, v := range append(slices.Clone(f.o.Voters), fromLog(f.img.Voters(), defaultListenerName)...) {
		if v.ID == id {
			return address(v.Host, v.Port)
		}
	}
	return ""
}

// take applies an answer of the leader.
func (f *follower) take(ctx context.Context, client *transport.Client, p *kmsg.FetchResponseTopicPartition) error {
	switch code := model.Error(p.ErrorCode); {
	case code == model.ErrFencedLeaderEpoch || code == model.ErrUnknownLeaderEpoch:
		return nil // adopted: ask again
	case code != model.None:
		return code
	case p.SnapshotID.EndOffset >= 0 && p.SnapshotID.Epoch >= 0:
		return f.install(ctx, client, projection.ID{End: model.Offset(p.SnapshotID.EndOffset), Epoch: model.Epoch(p.SnapshotID.Epoch)})
	case p.DivergingEpoch.EndOffset >= 0 && p.DivergingEpoch.Epoch >= 0:
		return f.diverge(model.Offset(p.DivergingEpoch.EndOffset), model.Epoch(p.DivergingEpoch.Epoch))
	}
	if err := f.extend(p.RecordBatches); err != nil {
		return err
	}
	return f.commit(model.Offset(p.HighWatermark))
}

// extend adds batches to the tail.
func (f *follower) extend(b []byte) error {
	n, err := metalog.DecodeBatches(b, func(batch metalog.Batch) error {
		if batch.Base != f.end || batch.Epoch < f.epoch || batch.Epoch > f.lead.epoch {
			return fmt.Errorf("batch at %d of epoch %d where offset %d of epoch %d to %d was due", batch.Base, batch.Epoch, f.end, f.epoch, f.lead.epoch)
		}
		f.tail = append(f.tail, batch.Raw...)
		f.end, f.epoch = batch.End, batch.Epoch
		return nil
	})
	if err != nil {
		// Applying on without what this program cannot read would be wrong for
		// good; a broken answer heals with another one.
		return fmt.Errorf("metadata fetched at %d: %w", f.end, err)
	}
	if n == 0 && len(b) > 0 || len(f.tail) > maxTail {
		return fmt.Errorf("%d bytes fetched at %d, %d not committed", len(b), f.end, len(f.tail))
	}
	return nil
}

// commit makes the tail before hw part of the log on disk and of the image.
func (f *follower) commit(hw model.Offset) error {
	n := 0
	_, err := metalog.DecodeBatches(f.tail, func(batch metalog.Batch) error {
		if batch.End <= hw {
			n += len(batch.Raw)
		}
		return nil
	})
	if err != nil {
		return &fatalError{err}
	}
	if n > 0 {
		if err := f.dir.Append(f.tail[:n]); err != nil {
			return &fatalError{err}
		}
		if err := f.fold(f.tail[:n]); err != nil {
			return &fatalError{err}
		}
		f.tail = append([]byte(nil), f.tail[n:]...)
		f.pub.setImage(f.img)
	}
	f.hw = max(f.hw, min(hw, f.end))
	if hw >= 0 && f.img.Read() >= hw && f.img.Feature(featureMetadata) > 0 {
		f.ready.Close()
	}
	return nil
}

// diverge drops the tail behind what this log has in common with the leader's.
// What is committed is never dropped: a leader that asks for it leads another
// cluster, or lost data.
func (f *follower) diverge(end model.Offset, epoch model.Epoch) error {
	committed := f.img.Read()
	if end < committed {
		return fmt.Errorf("the leader's log diverges at %d in epoch %d, below the committed %d", end, epoch, committed)
	}
	keep, at, last := 0, committed, f.dir.Epoch()
	_, err := metalog.DecodeBatches(f.tail, func(batch metalog.Batch) error {
		if batch.End <= end && batch.Epoch <= epoch {
			keep, at, last = keep+len(batch.Raw), batch.End, batch.Epoch
		}
		return nil
	})
	if err != nil {
		return &fatalError{err}
	}
	if keep == len(f.tail) {
		return fmt.Errorf("the leader's log diverges at %d in epoch %d, this one does not reach there", end, epoch)
	}
	f.o.Log.Info("uncommitted metadata dropped", "from", at, "to", f.end)
	f.tail, f.end, f.epoch = f.tail[:keep], at, last
	return nil
}

// install fetches the leader's checkpoint and begins the log behind it.
func (f *follower) install(ctx context.Context, client *transport.Client, id projection.ID) error {
	if id.End <= f.img.Read() {
		return fmt.Errorf("the leader offers a checkpoint that ends at %d, below the committed %d", id.End, f.img.Read())
	}
	d := download{
		rt: f.rt, fs: f.o.FS, dir: f.o.Dir, addr: f.lead.addr, dialWith: f.o.Dial, clusterID: f.o.ClusterID,
		nodeID: f.o.NodeID, directoryID: f.o.DirectoryID, epoch: f.lead.epoch,
	}
	ctx, cancel := f.rt.WithTimeout(ctx, installTimeout)
	defer cancel()
	if err := d.from(ctx, client, id); err != nil {
		return err
	}
	img, last, err := projection.LoadImage(f.o.FS, f.o.Dir, id)
	if err != nil {
		return &fatalError{err}
	}
	if err := f.dir.Reset(id); err != nil {
		return &fatalError{err}
	}
	f.img, f.lastStamp, f.tail = img, last, nil
	f.end, f.epoch, f.since = id.End, id.Epoch, 0
	f.o.Log.Info("checkpoint installed", "offset", id.End, "epoch", id.Epoch)
	f.pub.setImage(img)
	return nil
}

// checkpoint writes a checkpoint of the image when enough came since the last,
// and takes note of one that is written.
func (f *follower) checkpoint() error {
	for _, w := range f.checkpoints.Take(nil) {
		f.checkpointing, f.size = false, w.size
		if w.err != nil {
			return fmt.Errorf("write checkpoint: %w", w.err)
		}
		if w.snap.End > f.dir.Start() {
			if err := f.dir.Added(projection.ID{End: w.snap.End, Epoch: w.snap.Epoch}); err != nil {
				return err
			}
		}
	}
	due := f.since >= max(f.o.SnapshotBytes, f.size)
	if !due || f.checkpointing || f.img.InTransaction() || f.img.Feature(featureMetadata) == 0 {
		return nil
	}
	if err := f.dir.Roll(); err != nil {
		return err
	}
	f.checkpointing, f.since = true, 0
	img, last, wall := f.img, f.lastStamp, model.Millis(f.rt.Wall().UnixMilli())
	f.group.Go("checkpoint", func() {
		snap := quorum.Snapshot{Point: quorum.Point{End: img.End(), Epoch: img.Epoch()}}
		size, err := writeCheckpoint(f.o.FS, f.o.Dir, img, last, wall, snap)
		f.checkpoints.Post(written{snap, size, err})
	})
	return nil
}
