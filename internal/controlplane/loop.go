package controlplane

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/controlplane/raftlog"
	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

const (
	electionTicks  = 10
	heartbeatTicks = 3
	keepEntries    = 8 << 20 // most bytes of entries kept behind a checkpoint, for slow voters
)

// loop owns the raft node, its log, the projection, the committed image and,
// while this node leads, the controller core. Others send it events.
type loop struct {
	o     Options
	rt    *task.Runtime
	log   *slog.Logger
	fs    vfs.FS
	began time.Time // origin of model.Time
	// events is bounded by what others have outstanding: one request of each
	// connection, the messages that raft lets a peer have in flight.
	events  *task.Queue[any]
	quit    *task.Signal // closed to end the loop
	group   *task.Group  // downloads, checkpoints, probes, watchers of connections
	readers *readers
	pub     *broadcast
	ready   *task.Signal

	node  *quorum.Node
	rlog  *quorum.Log
	wal   *raftlog.Log
	dir   *projection.Dir
	peers peers

	img       *image.Image // committed
	lastStamp model.Millis // time of the last committed record
	voters    voters

	fresh      bool // nothing was ever written: the first voter campaigns at once
	connected  map[model.BrokerID]bool
	seen       map[model.BrokerID]model.Millis // when each voter was last heard of
	nextTick   model.Time
	campaignAt model.Time // 0: not planned
	campaigned bool       // the first campaign after the start was planned
	tries      int        // campaigns since a campaign was planned
	rand       *rand.Rand
	state      projection.QuorumState // as last written

	urgent, queue []call // requests for the core; heartbeats are urgent
	active        *active
	beats         heartbeats
	probes        probes

	checkpoint checkpointing
	incoming   installing
}

// call is a request that waits for its turn. reply is called exactly once.
type call struct {
	req   kmsg.Request
	reply func(kmsg.Response)
	conn  *transport.Conn // nil: from within the process
}

// Events of the loop, besides those of peers and probes.
type (
	// step brings raft messages from a peer.
	step struct{ messages []*pb.Message }
	// describe asks for the state of the quorum; done may be called in any task.
	describe struct {
		done func(*quorumStatus)
	}
)

func (l *loop) now() model.Time    { return model.Time(l.rt.Since(l.began)) + 1 }
func (l *loop) wall() model.Millis { return model.Millis(l.rt.Wall().UnixMilli()) }

// post hands an event to the loop; false says that the loop has ended.
func (l *loop) post(ev any) bool { return l.events.Post(ev) }

// run turns until quit is closed or an error stops the node, which it returns.
func (l *loop) run() (err error) {
	defer func() {
		p := recover()
		if task.Killed(p) {
			panic(p)
		}
		if p != nil { // raft panics when its invariants break
			err = fmt.Errorf("the metadata quorum stopped: %v\n%s", p, debug.Stack())
		}
		l.end()
	}()
	w := l.rt.NewWaiter()
	var taken []any
	for !l.quit.Closed() {
		taken = l.events.Take(taken)
		for _, ev := range taken {
			l.Turn(ev)
		}
		if err := l.work(); err != nil {
			return err
		}
		w.Wait(nil, max(0, l.deadline().Sub(l.now())), l.events.Wake, l.quit)
	}
	return nil
}

// Turn takes one event. What follows from it is done by work.
func (l *loop) Turn(ev any) {
	switch ev := ev.(type) {
	case step:
		l.step(ev.messages)
	case call:
		l.enqueue(ev)
	case peerUp:
		l.connected[ev.id] = true
		l.node.Beat()
		l.planFirstCampaign()
	case peerDown:
		l.peerDown(ev)
	case snapshotSent:
		l.node.SnapshotSent(ev.id, ev.ok)
	case offer:
		l.offered(ev)
	case fetched:
		l.fetched(ev)
	case written:
		l.checkpointWritten(ev)
	case heartbeatEnded:
		l.heartbeatEnded(ev)
	case probeRefused:
		l.probeRefused(ev)
	case describe:
		ev.done(l.status())
	default:
		panic(fmt.Sprintf("controlplane: no event %T", ev))
	}
}

func (l *loop) step(ms []*pb.Message) {
	wall := l.wall()
	for _, m := range ms {
		l.seen[quorum.NodeID(m.GetFrom())] = wall
		if err := l.node.Step(m); err != nil {
			l.log.Debug("raft message refused", "type", m.GetType().String(), "err", err)
		}
	}
}

// work does what is due and carries out what raft asks for.
func (l *loop) work() error {
	if l.checkpoint.err != nil {
		return l.checkpoint.err
	}
	now := l.now()
	l.tick(now)
	for {
		l.decide(now)
		activated, err := l.carryOut()
		if err != nil {
			return err
		}
		if !activated {
			break
		}
	}
	l.dropUnused()
	if err := l.publish(); err != nil {
		return err
	}
	l.complete() // who is answered finds the outcome in the image
	return l.maybeCheckpoint()
}

// tick moves raft's clock; time lost to a pause of the process is not made up
// for, so that a node does not depose its leader because it slept itself.
func (l *loop) tick(now model.Time) {
	if now >= l.nextTick {
		l.node.Tick()
		l.nextTick = max(l.nextTick.Add(l.o.Tick), now.Add(l.o.Tick/2))
	}
	if l.campaignAt != 0 && now >= l.campaignAt {
		l.campaign(now)
	}
}

func (l *loop) deadline() model.Time {
	d := l.nextTick
	if l.campaignAt != 0 {
		d = min(d, l.campaignAt)
	}
	if l.active != nil && !l.active.blocked { // else raft's progress is an event
		d = min(d, l.active.state.NextDeadline())
		if len(l.urgent)+len(l.queue) > 0 {
			d = 0
		}
	}
	return d
}

// carryOut does the work of raft until there is none. It reports whether this
// node began to decide.
func (l *loop) carryOut() (activated bool, err error) {
	for {
		rd, ok := l.node.Ready()
		if !ok {
			return activated, nil
		}
		l.peers.send(rd.Early, l.node.Unreachable)
		if err := l.persist(rd); err != nil {
			return false, err
		}
		l.peers.send(rd.Late, l.node.Unreachable)
		if err := l.apply(rd.Committed); err != nil {
			return false, err
		}
		if err := l.node.Advance(l.wall()); err != nil {
			return false, err
		}
		activated = l.followLeadership() || activated
	}
}

// persist makes durable what must be before messages leave.
func (l *loop) persist(rd quorum.Ready) error {
	state := rd.State
	if rd.Snapshot != nil {
		if state == nil {
			state = l.rlog.State()
		}
		if err := l.install(rd.Snapshot, state); err != nil {
			return err
		}
	}
	if state != nil || len(rd.Entries) > 0 {
		if err := l.wal.Save(state, rd.Entries, rd.Sync); err != nil {
			return err
		}
	}
	return l.node.Persisted(rd)
}

// apply folds committed entries into the image and the projection.
func (l *loop) apply(entries []*pb.Entry) error {
	for _, e := range entries {
		at, err := l.node.Apply(e)
		if err != nil {
			return err
		}
		if e.GetType() != pb.EntryNormal || len(e.GetData()) == 0 {
			continue
		}
		if err := l.dir.Append(e.GetData()); err != nil {
			return err
		}
		n, err := metalog.DecodeBatches(e.GetData(), func(b metalog.Batch) error {
			l.img = projection.Fold(l.img, b, b.End, b.Epoch)
			l.lastStamp = b.Timestamp
			return nil
		})
		if err != nil || n != len(e.GetData()) {
			return fmt.Errorf("entry %d: %d of %d bytes are metadata records: %w", at.Index, n, len(e.GetData()), err)
		}
		l.checkpoint.since += int64(n)
	}
	return nil
}

// publish tells readers and subscribers what changed.
func (l *loop) publish() error {
	id, epoch := l.node.Leader()
	lead := leadership{leader: id, epoch: epoch}
	if id == l.o.NodeID {
		lead.active = l.active != nil
		if !lead.active {
			lead.leader = model.NoBroker // elected, and not yet deciding
		}
	}
	if err := l.updateVoters(); err != nil {
		return err
	}
	lead.addr = l.voters.address(lead.leader)
	// Readers first: nobody in this process is to know more than they serve.
	l.readers.update(served{lead: lead, hw: l.node.Applied().End, view: l.dir.View(), img: l.img, voters: l.voters.list})
	l.pub.setImage(l.img)
	l.pub.setLead(lead)
	if lead.leader != model.NoBroker && l.img.Feature(featureMetadata) > 0 {
		l.ready.Close()
	}
	return l.writeQuorumState(lead.leader, epoch)
}

func (l *loop) writeQuorumState(leader model.BrokerID, epoch model.Epoch) error {
	st := projection.QuorumState{Leader: leader, Epoch: epoch, Voted: model.NoBroker}
	if leader == model.NoBroker {
		st.Voted = quorum.NodeID(l.rlog.State().GetVote())
	}
	if st.Leader == l.state.Leader && st.Epoch == l.state.Epoch && st.Voted == l.state.Voted {
		return nil
	}
	if l.voters.static {
		st.Voters = l.voters.ids()
	}
	l.state = st
	return l.dir.WriteQuorumState(st)
}

// end answers what waits and closes what the loop owns.
func (l *loop) end() {
	l.quit.Close()
	l.events.Close()
	l.resign()
	l.refuseAll()
	for _, ev := range l.events.Take(nil) {
		switch ev := ev.(type) {
		case call:
			ev.reply(refusal(ev.req, model.ErrNotController))
		case offer:
			ev.reply(model.ErrNotController)
		case describe:
			ev.done(&quorumStatus{lead: leadership{leader: model.NoBroker}})
		}
	}
	l.peers.close()
}

// call of the core at time now.
func (l *loop) call(now model.Time) controller.Call {
	return controller.Call{Now: now, NextOffset: l.active.next(l.node), Rand: l.rand}
}
