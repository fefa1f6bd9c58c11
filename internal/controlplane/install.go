package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
)

// installing is the installation of a leader's checkpoint on this node: the file
// is fetched first, and only then is raft told of the snapshot.
type installing struct {
	cancel context.CancelFunc // of the download under way; nil: none
	offer  offer
	// image is what the fetched checkpoint holds, until raft takes it.
	image *image.Image
	last  model.Millis
	id    projection.ID
}

type (
	// offer brings a leader's MsgSnap; reply tells the leader how it went.
	offer struct {
		message *pb.Message
		reply   func(model.Error)
	}
	// fetched says that the checkpoint of an offer is at hand, or why not.
	fetched struct {
		offer offer
		id    projection.ID
		image *image.Image
		last  model.Millis
		err   error
	}
)

// offered starts to fetch the checkpoint that a leader offers, unless this node
// needs none. A newer offer ends an older download.
func (l *loop) offered(ev offer) {
	snap, err := quorum.DecodeSnapshot(ev.message.GetSnapshot())
	if err != nil {
		l.log.Warn("snapshot refused", "err", err)
		ev.reply(model.ErrInvalidRequest)
		return
	}
	if snap.Index <= l.node.Applied().Index {
		l.step([]*pb.Message{ev.message})
		ev.reply(model.None)
		return
	}
	from := quorum.NodeID(ev.message.GetFrom())
	addr := l.voters.address(from)
	if addr == "" || l.incoming.cancel != nil {
		ev.reply(model.ErrNotController) // the leader offers again
		return
	}
	ctx, cancel := l.rt.WithTimeout(context.Background(), installTimeout)
	l.incoming.cancel, l.incoming.offer = cancel, ev
	id := projection.ID{End: snap.End, Epoch: snap.Epoch}
	d := download{
		rt: l.rt, fs: l.fs, dir: l.o.Dir, addr: addr, dialWith: l.o.Dial, clusterID: l.o.ClusterID,
		nodeID: l.o.NodeID, directoryID: l.o.DirectoryID, epoch: model.Epoch(ev.message.GetTerm()),
	}
	l.group.Go("checkpoint download", func() {
		defer cancel()
		out := fetched{offer: ev, id: id}
		if out.err = d.run(ctx, id); out.err == nil {
			out.image, out.last, out.err = projection.LoadImage(d.fs, d.dir, id)
		}
		l.post(out)
	})
}

// fetched has raft take the snapshot whose checkpoint is at hand.
func (l *loop) fetched(ev fetched) {
	l.incoming.cancel, l.incoming.offer = nil, offer{}
	if ev.err != nil {
		l.log.Warn("checkpoint could not be fetched", "end", ev.id.End, "err", ev.err)
		ev.offer.reply(model.ErrSnapshotNotFound)
		return
	}
	l.incoming.image, l.incoming.last, l.incoming.id = ev.image, ev.last, ev.id
	l.step([]*pb.Message{ev.offer.message})
	ev.offer.reply(model.None)
}

// install begins the log, the projection and the image anew at a snapshot.
func (l *loop) install(s *pb.Snapshot, state *pb.HardState) error {
	snap, err := quorum.DecodeSnapshot(s)
	if err != nil {
		return err
	}
	id := projection.ID{End: snap.End, Epoch: snap.Epoch}
	if l.incoming.image == nil || l.incoming.id != id {
		return fmt.Errorf("raft installs checkpoint %s, which is not at hand", id.FileName())
	}
	if err := l.wal.Compact(snap, state, nil); err != nil {
		return err
	}
	if err := l.dir.Reset(id); err != nil {
		return err
	}
	l.img, l.lastStamp = l.incoming.image, l.incoming.last
	l.incoming.image = nil
	l.checkpoint.since = 0
	l.log.Info("checkpoint of the leader installed", "offset", snap.End, "epoch", snap.Epoch)
	return nil
}

// dropUnused removes a fetched checkpoint that raft had no use for.
func (l *loop) dropUnused() {
	if l.incoming.image == nil {
		return
	}
	l.incoming.image = nil
	if l.dir.Has(l.incoming.id) {
		return
	}
	err := l.fs.Remove(path.Join(l.o.Dir, l.incoming.id.FileName()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Warn("unused checkpoint stays", "err", err)
	}
}
