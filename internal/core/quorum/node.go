package quorum

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Sizes that bound memory and messages, in bytes.
const (
	maxMessage     = 1 << 20
	maxInflight    = 64
	maxUncommitted = 64 << 20
	maxApply       = 8 << 20
)

// Errors of Propose. Neither leaves a trace in the log.
var (
	// ErrNotLeader says that this node does not lead, or leads in another epoch
	// than the caller thinks.
	ErrNotLeader = errors.New("not the leader of the metadata quorum")
	// ErrDropped says that too much is uncommitted, or leadership is being
	// handed over: propose the same records again later.
	ErrDropped = errors.New("the metadata quorum takes no more records for now")
)

// Config says how a node takes part.
type Config struct {
	ID  model.BrokerID
	Log *Log
	// ElectionTicks without news of the leader make a follower campaign after up
	// to as many more. A leader tells of itself every HeartbeatTicks.
	ElectionTicks, HeartbeatTicks int
	Logger                        raft.Logger
	// Voters, if not nil, gives the voter set that a new leader is to record
	// behind its LeaderChange: the log of a kraft.version 1 cluster must name
	// its voters, and only the bootstrap checkpoint does so at first.
	Voters func() []metalog.Control
}

// RaftID is the number of a node inside raft. Raft reads 0 as nobody, Kafka has a
// node 0: so it is one more.
func RaftID(id model.BrokerID) uint64 { return uint64(id) + 1 }

// NodeID undoes RaftID; the result is negative for an id that no node has.
func NodeID(id uint64) model.BrokerID {
	if id == 0 || id > math.MaxInt32 {
		return model.NoBroker
	}
	return model.BrokerID(id - 1)
}

// Conf makes the configuration with the voters.
func Conf(voters []model.BrokerID) *pb.ConfState {
	c := &pb.ConfState{}
	for _, id := range voters {
		c.Voters = append(c.Voters, RaftID(id))
	}
	slices.Sort(c.Voters)
	return c
}

// Voters lists the voters of a configuration, ascending.
func Voters(c *pb.ConfState) []model.BrokerID {
	var out []model.BrokerID
	for _, id := range c.GetVoters() {
		out = append(out, NodeID(id))
	}
	slices.Sort(out)
	return out
}

// Node is one voter or learner. Like raft.RawNode it belongs to one owner, who
// carries out every Ready: write Entries and State, sync if Sync says so, call
// Persisted, send Late, Apply each of Committed, call Advance.
type Node struct {
	cfg     Config
	raw     *raft.RawNode
	log     *Log
	applied Point
	conf    *pb.ConfState
	// term is the one this node leads in as far as it has noticed, else 0; next
	// is the offset of the next record that it will propose in that term.
	term        uint64
	next        model.Offset
	granted     []model.BrokerID // who voted for this node in grantedTerm
	grantedTerm uint64
}

// Ready is work for the owner of a node. Zero fields ask for nothing.
type Ready struct {
	// Early may be sent at once, Late only after Persisted.
	Early, Late []*pb.Message
	State       *pb.HardState // nil: unchanged
	Entries     []*pb.Entry
	// Snapshot replaces the log and the state; its checkpoint is at hand, for
	// the owner fetched it before it stepped the message.
	Snapshot  *pb.Snapshot
	Sync      bool
	Committed []*pb.Entry
}

// New starts a node on its log. What the log holds beyond its snapshot is
// applied again as it turns out to be committed.
func New(cfg Config) (*Node, error) {
	snap := cfg.Log.LastSnapshot()
	if snap.Conf == nil || len(snap.Conf.GetVoters()) == 0 {
		return nil, errors.New("the metadata quorum has no voters")
	}
	raw, err := raft.NewRawNode(&raft.Config{
		ID: RaftID(cfg.ID), Storage: cfg.Log, Applied: snap.Index, Logger: cfg.Logger,
		ElectionTick: cfg.ElectionTicks, HeartbeatTick: cfg.HeartbeatTicks,
		PreVote: true, CheckQuorum: true, DisableProposalForwarding: true,
		MaxSizePerMsg: maxMessage, MaxInflightMsgs: maxInflight, MaxCommittedSizePerReady: maxApply,
		MaxUncommittedEntriesSize: maxUncommitted, StepDownOnRemoval: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", err)
	}
	return &Node{cfg: cfg, raw: raw, log: cfg.Log, applied: snap.Point, conf: snap.Conf}, nil
}

// Tick moves raft's clock by one tick.
func (n *Node) Tick() { n.raw.Tick() }

// Campaign asks the voters for their votes, after a pre-vote.
func (n *Node) Campaign() error { return n.raw.Campaign() }

// ForgetLeader ends the lease of a leader whose process is known to be gone, so
// that this node grants votes at once (R13.7).
func (n *Node) ForgetLeader() error { return n.raw.ForgetLeader() }

// Beat has a leader tell its peers of itself at once, so that one that has just
// come back is brought up without waiting for the next heartbeat.
func (n *Node) Beat() {
	// A local message must name a local thread as its sender.
	_ = n.raw.Step(&pb.Message{Type: pb.MsgBeat.Enum(), From: new(raft.LocalAppendThread)})
}

// Transfer hands leadership to another voter, whose log is brought up first.
func (n *Node) Transfer(to model.BrokerID) { n.raw.TransferLeader(RaftID(to)) }

// Unreachable says that what was last sent to a peer may be lost.
func (n *Node) Unreachable(peer model.BrokerID) { n.raw.ReportUnreachable(RaftID(peer)) }

// SnapshotSent says how a snapshot fared that this leader had a peer install.
func (n *Node) SnapshotSent(peer model.BrokerID, ok bool) {
	status := raft.SnapshotFailure
	if ok {
		status = raft.SnapshotFinish
	}
	n.raw.ReportSnapshot(RaftID(peer), status)
}

// Step takes a message of another node. Messages that are not for this node or
// that no peer may send are refused.
func (n *Node) Step(m *pb.Message) error {
	from, to := NodeID(m.GetFrom()), NodeID(m.GetTo())
	if to != n.cfg.ID || from < 0 || from == to || raft.IsLocalMsg(m.GetType()) {
		return fmt.Errorf("a %s from %d to %d is not for node %d", m.GetType(), from, to, n.cfg.ID)
	}
	if m.GetTerm() > math.MaxInt32 {
		return fmt.Errorf("term %d of node %d does not fit an epoch", m.GetTerm(), from)
	}
	if m.GetType() == pb.MsgVoteResp && !m.GetReject() {
		n.noteVote(m.GetTerm(), from)
	}
	if n.lost(m) {
		n.handOver(from)
	}
	n.tame(m)
	return n.raw.Step(m)
}

func (n *Node) noteVote(term uint64, from model.BrokerID) {
	if term != n.grantedTerm {
		n.grantedTerm, n.granted = term, nil
	}
	if !slices.Contains(n.granted, from) {
		n.granted = append(n.granted, from)
	}
}

// Ready returns the next work, or false.
func (n *Node) Ready() (Ready, bool) {
	if !n.raw.HasReady() {
		return Ready{}, false
	}
	rd := n.raw.Ready()
	out := Ready{Entries: rd.Entries, Sync: rd.MustSync, Committed: rd.CommittedEntries}
	if !raft.IsEmptyHardState(rd.HardState) {
		out.State = rd.HardState
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		out.Snapshot = rd.Snapshot
	}
	for _, m := range rd.Messages {
		// A leader may replicate while it writes: its own vote was durable
		// before it led, and its own copy counts only once Persisted.
		switch m.GetType() {
		case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap:
			out.Early = append(out.Early, m)
		default:
			out.Late = append(out.Late, m)
		}
	}
	return out, true
}

// Persisted takes what the owner has written of rd into the log that raft reads.
func (n *Node) Persisted(rd Ready) error {
	if rd.Snapshot != nil {
		snap, err := DecodeSnapshot(rd.Snapshot)
		if err != nil {
			return err
		}
		n.log.Reset(snap)
		n.applied, n.conf = snap.Point, snap.Conf
	}
	if rd.State != nil {
		n.log.SetState(rd.State)
	}
	return n.log.Append(rd.Entries)
}

// Apply moves the applied point over the next committed entry and returns it.
// An error means that this log and the leader's stamps disagree, which no run of
// the protocol can bring about: the node must stop.
func (n *Node) Apply(e *pb.Entry) (Point, error) {
	next, err := after(n.applied, e)
	if err != nil {
		return n.applied, fmt.Errorf("apply: %w", err)
	}
	switch e.GetType() {
	case pb.EntryConfChange:
		cc := new(pb.ConfChange)
		if err := unmarshal(e.GetData(), cc); err != nil {
			return n.applied, fmt.Errorf("apply entry %d: %w", e.GetIndex(), err)
		}
		n.conf = n.raw.ApplyConfChange(cc)
	case pb.EntryConfChangeV2:
		cc := new(pb.ConfChangeV2)
		if err := unmarshal(e.GetData(), cc); err != nil {
			return n.applied, fmt.Errorf("apply entry %d: %w", e.GetIndex(), err)
		}
		n.conf = n.raw.ApplyConfChange(cc)
	}
	n.applied = next
	return next, nil
}

// Advance ends the handling of a Ready. If it makes this node the leader, the
// LeaderChange batch of the new epoch is proposed with the time wall.
func (n *Node) Advance(wall model.Millis) error {
	n.raw.Advance(raft.Ready{})
	st := n.raw.BasicStatus()
	if st.RaftState != raft.StateLeader {
		n.term = 0
		return nil
	}
	if st.GetTerm() == n.term {
		return nil
	}
	if st.GetTerm() > math.MaxInt32 {
		return fmt.Errorf("term %d does not fit an epoch", st.GetTerm())
	}
	n.term, n.next = st.GetTerm(), n.log.End()
	return n.proposeLeaderChange(wall)
}

// proposeLeaderChange writes the first batches of an epoch.
func (n *Node) proposeLeaderChange(wall model.Millis) error {
	change := &metalog.LeaderChange{Leader: n.cfg.ID, Voters: Voters(n.conf), Granting: []model.BrokerID{n.cfg.ID}}
	if n.grantedTerm == n.term {
		change.Granting = append(change.Granting, n.granted...)
	}
	slices.Sort(change.Granting)
	change.Granting = slices.Compact(change.Granting)
	epoch := model.Epoch(n.term)
	data := metalog.AppendControlBatch(nil, n.next, epoch, wall, []metalog.Control{change})
	end := n.next + 1
	if n.cfg.Voters != nil {
		if recs := n.cfg.Voters(); len(recs) > 0 {
			data = metalog.AppendControlBatch(data, end, epoch, wall, recs)
			end += model.Offset(len(recs))
		}
	}
	return n.propose(data, end)
}

// Leading returns the epoch that this node leads in, or false.
func (n *Node) Leading() (model.Epoch, bool) { return model.Epoch(n.term), n.term != 0 }

// Next returns the offset of the next record that this leader will propose.
func (n *Node) Next() model.Offset { return n.next }

// Propose stamps the batches with consecutive offsets from Next on and proposes
// them as one entry, which is committed whole or never. It returns the offset
// after the last record. Errors: ErrNotLeader, ErrDropped.
func (n *Node) Propose(wall model.Millis, level int16, batches ...[]metalog.Record) (model.Offset, error) {
	if n.term == 0 {
		return n.next, ErrNotLeader
	}
	var data []byte
	end := n.next
	for _, recs := range batches {
		if len(recs) == 0 {
			continue
		}
		data = metalog.AppendBatch(data, end, model.Epoch(n.term), wall, recs, level)
		end += model.Offset(len(recs))
	}
	if len(data) == 0 {
		return n.next, nil
	}
	return end, n.propose(data, end)
}

// ProposeControl is Propose for one control batch.
func (n *Node) ProposeControl(wall model.Millis, recs []metalog.Control) (model.Offset, error) {
	if n.term == 0 {
		return n.next, ErrNotLeader
	}
	end := n.next + model.Offset(len(recs))
	return end, n.propose(metalog.AppendControlBatch(nil, n.next, model.Epoch(n.term), wall, recs), end)
}

func (n *Node) propose(data []byte, end model.Offset) error {
	st := n.raw.BasicStatus()
	if st.RaftState != raft.StateLeader || st.GetTerm() != n.term {
		return ErrNotLeader
	}
	switch err := n.raw.Propose(data); {
	case errors.Is(err, raft.ErrProposalDropped):
		return ErrDropped
	case err != nil:
		return fmt.Errorf("propose at offset %d: %w", n.next, err)
	}
	n.next = end
	return nil
}

// ProposeConf proposes a membership change; the owner records the new voter set
// behind it once it is applied.
func (n *Node) ProposeConf(cc pb.ConfChangeI) error {
	if n.term == 0 {
		return ErrNotLeader
	}
	if err := n.raw.ProposeConfChange(cc); errors.Is(err, raft.ErrProposalDropped) {
		return ErrDropped
	} else if err != nil {
		return fmt.Errorf("propose a membership change: %w", err)
	}
	return nil
}

// Applied returns the point behind the last applied entry.
func (n *Node) Applied() Point { return n.applied }

// Conf returns the configuration in force at Applied.
func (n *Node) Conf() *pb.ConfState { return n.conf }

// Leader returns the leader that this node follows, or is, and the newest epoch
// that it knows of; model.NoBroker when there is no leader.
func (n *Node) Leader() (model.BrokerID, model.Epoch) {
	st := n.raw.BasicStatus()
	if st.Lead == raft.None {
		return model.NoBroker, model.Epoch(st.GetTerm())
	}
	return NodeID(st.Lead), model.Epoch(st.GetTerm())
}

// Progress is what a leader knows of one member.
type Progress struct {
	ID      model.BrokerID
	Learner bool
	// End is the offset after the last entry that the member is known to hold.
	End model.Offset
	// Active says that it was heard of in the last election timeout.
	Active bool
}

// Progress lists the members, by id; empty on a node that does not lead.
func (n *Node) Progress() []Progress {
	var out []Progress
	n.raw.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		p := Progress{ID: NodeID(id), Learner: typ == raft.ProgressTypeLearner, End: model.UnknownOffset, Active: pr.RecentActive}
		if at, err := n.log.point(pr.Match); err == nil && pr.Match > 0 {
			p.End = at.End
		}
		out = append(out, p)
	})
	slices.SortFunc(out, func(a, b Progress) int { return int(a.ID - b.ID) })
	return out
}
