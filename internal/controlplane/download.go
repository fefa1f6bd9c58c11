package controlplane

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// metadataTopic is the topic's name, for requests that do not know its id.
const metadataTopic = "__cluster_metadata"

// pieceBytes is how much of a checkpoint one request asks for.
const pieceBytes = 8 << 20

// maxCheckpoint bounds a checkpoint that another node says it has.
const maxCheckpoint = 2 << 30

// download fetches a checkpoint from the leader of an epoch into dir, piece by
// piece (KIP-630).
type download struct {
	rt          *task.Runtime
	fs          vfs.FS
	dir         string
	addr        string
	dialWith    Dial
	clusterID   string
	nodeID      model.BrokerID
	directoryID model.UUID
	epoch       model.Epoch
}

// run returns when the checkpoint file has its name, or with an error and no
// file.
func (d *download) run(ctx context.Context, id projection.ID) error {
	client, err := transport.Dial(ctx, d.addr, transport.ClientOptions{DialTimeout: dialTimeout, Dial: d.dialWith, Runtime: d.rt})
	if err != nil {
		return err
	}
	defer client.Close()
	return d.from(ctx, client, id)
}

func (d *download) from(ctx context.Context, client *transport.Client, id projection.ID) error {
	part, err := projection.NewPart(d.fs, d.dir, id)
	if err != nil {
		return err
	}
	for {
		done, err := d.piece(ctx, client, id, part)
		if err != nil {
			part.Abort()
			return fmt.Errorf("fetch checkpoint %s from %s: %w", id.FileName(), d.addr, err)
		}
		if done {
			return part.Commit()
		}
	}
}

// piece fetches the bytes behind those that part has.
func (d *download) piece(ctx context.Context, client *transport.Client, id projection.ID, part *projection.Part) (done bool, err error) {
	req := kmsg.NewPtrFetchSnapshotRequest()
	req.SetVersion(1)
	req.ClusterID = &d.clusterID
	req.ReplicaID = int32(d.nodeID)
	req.MaxBytes = pieceBytes
	t := kmsg.NewFetchSnapshotRequestTopic()
	t.Topic = metadataTopic
	p := kmsg.NewFetchSnapshotRequestTopicPartition()
	p.CurrentLeaderEpoch = int32(d.epoch)
	p.SnapshotID.EndOffset, p.SnapshotID.Epoch = int64(id.End), int32(id.Epoch)
	p.Position = part.Size()
	p.ReplicaDirectoryID = d.directoryID
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, frame, err := exchange(ctx, client, req)
	if err != nil {
		return false, err
	}
	defer frame.Release()
	got, err := snapshotPiece(resp.(*kmsg.FetchSnapshotResponse))
	if err != nil {
		return false, err
	}
	switch {
	case got.Position != part.Size() || len(got.Bytes) == 0 && got.Size != part.Size():
		return false, fmt.Errorf("%d bytes at %d where those at %d of %d were due", len(got.Bytes), got.Position, part.Size(), got.Size)
	case got.Size > maxCheckpoint || part.Size()+int64(len(got.Bytes)) > got.Size:
		return false, fmt.Errorf("a checkpoint of %d bytes", got.Size)
	}
	if _, err := part.Write(got.Bytes); err != nil {
		return false, err
	}
	return part.Size() == got.Size, nil
}

// snapshotPiece returns the only partition of a response, or its error.
func snapshotPiece(r *kmsg.FetchSnapshotResponse) (*kmsg.FetchSnapshotResponseTopicPartition, error) {
	if r.ErrorCode != 0 {
		return nil, model.Error(r.ErrorCode)
	}
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 {
		return nil, errors.New("the response does not hold the one partition")
	}
	p := &r.Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return nil, model.Error(p.ErrorCode)
	}
	return p, nil
}
