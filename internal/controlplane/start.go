package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"path"
	"time"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/controlplane/raftlog"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// ErrNotFormatted says that the directory holds neither a bootstrap checkpoint
// nor a raft log.
var ErrNotFormatted = errors.New("the metadata directory is not formatted")

const defaultListenerName = "CONTROLLER"

func (o *Options) setDefaults() {
	if o.ListenerName == "" {
		o.ListenerName = defaultListenerName
	}
	if o.SnapshotBytes <= 0 {
		o.SnapshotBytes = 20 << 20
	}
	if o.Tick <= 0 {
		o.Tick = 100 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Core.Features == nil {
		o.Core.Features = SupportedFeatures()
	}
	o.Core.NodeID, o.Core.ClusterID = o.NodeID, o.ClusterID
	o.Log = o.Log.With("controller", int(o.NodeID))
	for _, v := range o.Voters {
		if v.ID == o.NodeID && o.Host == "" {
			o.Host, o.Port = v.Host, v.Port
		}
	}
	if tcp, ok := o.Listener.Addr().(*net.TCPAddr); ok && o.Host == "" {
		o.Host, o.Port = tcp.IP.String(), uint16(tcp.Port)
		if tcp.IP.IsUnspecified() {
			o.Host = "localhost"
		}
	}
}

// recover opens the logs and makes the loop.
func (c *Controller) recover() (*loop, error) {
	o, rt := &c.o, c.rt
	l := &loop{
		o: *o, rt: rt, log: o.Log, fs: o.FS, began: rt.Now(), events: task.NewQueue[any](rt), quit: c.quit, group: rt.NewGroup(), ready: c.ready,
		peers:     peers{byID: map[model.BrokerID]*peer{}},
		connected: map[model.BrokerID]bool{}, seen: map[model.BrokerID]model.Millis{},
		rand:  random(rt, o.Seed, o.NodeID),
		beats: heartbeats{conns: map[model.BrokerID]*beat{}},
		state: projection.QuorumState{Leader: model.NoBroker, Epoch: model.NoEpoch},
	}
	var err error
	if l.dir, err = projection.Open(o.FS, o.Dir); err != nil {
		return nil, err
	}
	var rec raftlog.Recovered
	if l.wal, rec, err = raftlog.Open(o.FS, path.Join(o.Dir, "wal")); err != nil {
		l.dir.Close()
		return nil, err
	}
	if err := l.begin(rec); err != nil {
		l.wal.Close()
		l.dir.Close()
		return nil, err
	}
	l.probes.dial, c.stopDial = dialer(rt, o.Dial)
	c.readers = newReaders(rt, o.Log, o.ClusterID)
	c.pub = newBroadcast(rt, l.img)
	l.readers, l.pub = c.readers, c.pub
	return l, nil
}

// random returns the chance of a node; seed 0 takes one from the time.
func random(rt *task.Runtime, seed uint64, id model.BrokerID) *rand.Rand {
	if seed == 0 {
		seed = uint64(rt.Wall().UnixNano())
	}
	return rand.New(rand.NewPCG(seed, uint64(id)))
}

// begin starts the raft node on what was recovered.
func (l *loop) begin(rec raftlog.Recovered) error {
	if rec.Cut > 0 {
		l.log.Info("torn tail of the raft log cut off", "bytes", rec.Cut)
	}
	boot, err := l.readBootstrap()
	if err != nil {
		return err
	}
	if boot == nil && rec.Fresh() {
		return fmt.Errorf("%s: %w", l.o.Dir, ErrNotFormatted)
	}
	l.fresh = rec.Fresh()
	snap := rec.Snapshot
	l.img = image.New()
	if snap.Index > 0 {
		id := projection.ID{End: snap.End, Epoch: snap.Epoch}
		if l.img, l.lastStamp, err = projection.LoadImage(l.fs, l.o.Dir, id); err != nil {
			return err
		}
	}
	l.findVoters(boot)
	if l.voters.static || snap.Conf == nil {
		snap.Conf = quorum.Conf(l.voters.ids())
	}
	l.rlog = quorum.NewLog(rec.State, snap)
	if err := l.rlog.Append(rec.Entries); err != nil {
		return fmt.Errorf("%w: %w", raftlog.ErrDamaged, err)
	}
	l.o.Core.Bootstrap = boot.records()
	l.node, err = quorum.New(quorum.Config{
		ID: l.o.NodeID, Log: l.rlog, ElectionTicks: electionTicks, HeartbeatTicks: heartbeatTicks,
		Logger: raftLogger{l.log},
		Voters: func() []metalog.Control { return l.voters.records(l.img.KRaftVersion(), l.img.Voters()) },
	})
	return err
}

// bootstrap is what the bootstrap checkpoint holds.
type bootstrap struct {
	recs   []metalog.Record
	voters []metalog.Voter // kraft.version 1
}

func (b *bootstrap) records() []metalog.Record {
	if b == nil {
		return nil
	}
	return b.recs
}

// readBootstrap returns nil when there is no bootstrap checkpoint.
func (l *loop) readBootstrap() (*bootstrap, error) {
	b, err := projection.ReadFile(l.fs, l.o.Dir, projection.Bootstrap)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := &bootstrap{}
	err = metalog.ReadSnapshot(b, func(batch metalog.Batch) error {
		out.recs = append(out.recs, batch.Records...)
		for _, c := range batch.Control {
			if v, ok := c.(*metalog.KRaftVoters); ok {
				out.voters = v.Voters
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("bootstrap checkpoint: %w", err)
	}
	return out, nil
}

// findVoters takes the voters from the image or the bootstrap checkpoint, if the
// cluster has kraft.version 1, else from the options.
func (l *loop) findVoters(boot *bootstrap) {
	v := &l.voters
	v.name = l.o.ListenerName
	v.self = Voter{ID: l.o.NodeID, DirectoryID: l.o.DirectoryID, Host: l.o.Host, Port: l.o.Port}
	switch {
	case l.img.KRaftVersion() > 0:
		v.log = l.img.Voters()
		v.list = fromLog(v.log, v.name)
	case boot != nil && len(boot.voters) > 0:
		v.list = fromLog(boot.voters, v.name)
	default:
		v.static = true
		v.list = sortedVoters(l.o.Voters)
	}
}
