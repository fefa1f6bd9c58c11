package partition

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Peer is what the metadata image says about a broker: whether it may be in an
// ISR (R5.5) and where it stands.
type Peer struct {
	Epoch        model.BrokerEpoch
	Fenced       bool
	ShuttingDown bool
	Rack         string
}

// Peers is the brokers of the newest metadata image, shared by all partitions
// of a broker and replaced by their loop between Steps.
type Peers map[model.BrokerID]Peer

// Marks are the offsets of one replica (R1.5-R1.8).
type Marks struct {
	LogStart, LSO, HW, LEO model.Offset
}

// RemoteView is what the leader remembers of one follower (R1.10).
type RemoteView struct {
	ID           model.BrokerID
	LEO          model.Offset // RemoteLEO; UnknownOffset before its first fetch
	LogStart     model.Offset
	LastFetch    model.Time // Never before its first
	LastCaughtUp model.Time // Never when it was not
	Epoch        model.BrokerEpoch
	// Pos is where LEO lies in the leader's log, when known; ToldHW the HW that
	// it was told last (R3.18).
	Pos    model.Position
	ToldHW model.Offset
	// Peer is what the metadata says of its broker; false when it knows none.
	Peer       Peer
	Registered bool
	InISR      bool
	// Why it is outside the ISR; NoReason for a member.
	Why Reason
}

// View is a snapshot of a replica for people: replicas, explain, metrics.
type View struct {
	Role           Role
	Leader         model.BrokerID
	LeaderEpoch    model.Epoch
	PartitionEpoch model.PartitionEpoch
	Marks          Marks
	EpochStart     model.Offset   // LESO; UnknownOffset on a follower
	Now            model.Time     // of the last input
	HWPos          model.Position // where the HW lies, when known
	Next           model.Offset   // where the next append goes: [LEO, Next) is in flight
	Replicas, ISR  []model.BrokerID
	MaximalISR     []model.BrokerID
	MinISR         int // effective (R1.17)
	PendingISR     bool
	Proposed       []model.BrokerID    // the ISR that the controller is asked for; nil when none is pending
	ProposedLives  []model.BrokerEpoch // the broker epochs that it names, parallel to Proposed
	Remotes        []RemoteView
	// HoldsHW names the replica or rule that holds the high watermark.
	HoldsHW Reason
}

// View returns what people are shown of this replica. It allocates.
func (p *Partition) View() View {
	l := &p.lead
	v := View{
		Role: p.role, Leader: p.leader, LeaderEpoch: p.epoch, PartitionEpoch: p.partitionEpoch,
		Marks: p.Marks(), EpochStart: l.start, MinISR: p.minISR(), PendingISR: l.pending,
		Replicas: slices.Clone(p.replicas), ISR: slices.Clone(l.isr), MaximalISR: slices.Clone(l.maximal),
		Now: p.now, HWPos: p.hwPos, Next: p.next, HoldsHW: p.HoldsHW(),
	}
	if l.pending {
		for _, m := range l.proposal.ISR {
			v.Proposed, v.ProposedLives = append(v.Proposed, m.ID), append(v.ProposedLives, m.Epoch)
		}
	}
	for i := range l.remotes {
		r := &l.remotes[i]
		peer, registered := (*p.cfg.Peers)[r.id]
		v.Remotes = append(v.Remotes, RemoteView{
			ID: r.id, LEO: r.leo, LogStart: r.logStart, LastFetch: r.lastFetch, LastCaughtUp: r.caughtUp,
			Epoch: r.epoch, Pos: r.pos, ToldHW: r.toldHW, Peer: peer, Registered: registered, InISR: slices.Contains(l.isr, r.id), Why: p.whyOutside(r),
		})
	}
	return v
}

// whyOutside is why r is outside the ISR; NoReason for a member.
func (p *Partition) whyOutside(r *remote) Reason {
	why := Reason{Code: p.mayJoin(r), Broker: r.id, Offset: r.leo}
	switch {
	case slices.Contains(p.lead.isr, r.id):
		return Reason{Broker: model.NoBroker}
	case why.Code != NoReason:
	case r.leo < p.hw:
		why.Code, why.Bound = JoinBehindHW, p.hw
	case r.leo < p.lead.start:
		why.Code, why.Bound = JoinBehindEpoch, p.lead.start
	case r.logStart < p.logStart:
		why.Code, why.Offset, why.Bound = JoinBelowStart, r.logStart, p.logStart
	case slices.Contains(p.lead.maximal, r.id):
		why.Code = JoinProposed
	case p.lead.pending:
		why.Code = JoinWaitsForISR
	default:
		why.Code = JoinAtNextFetch
	}
	return why
}

// HoldsHW names the replica or the rule that holds the HW where it is.
func (p *Partition) HoldsHW() Reason {
	switch {
	case p.role == Stopped:
		return Reason{Code: ReplicaStopped, Broker: model.NoBroker}
	case p.role == Follower && p.leader != model.NoBroker:
		return Reason{Code: HWFollows, Broker: p.leader, Offset: p.hw, Bound: p.leo, Epoch: p.epoch}
	case p.role != Leader:
		return Reason{Code: LostLeader, Broker: model.NoBroker, Epoch: p.epoch}
	case p.lead.persisting:
		return Reason{Code: EpochWaits, Broker: model.NoBroker, Epoch: p.epoch}
	case len(p.lead.isr) < p.minISR():
		return p.underMinISR(HWUnderMinISR)
	}
	_, _, held := p.slowest()
	return held
}
