package partition

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// assign takes what the metadata log says. Only a greater leader epoch changes
// the role; the same one may change the assignment and the ISR (R4.1-R4.4).
// Intermediate states may be skipped.
func (p *Partition) assign(in *Assign) {
	switch {
	case in.PartitionEpoch < p.partitionEpoch, in.LeaderEpoch < p.epoch,
		p.hasDeferred && (in.PartitionEpoch < p.deferred.PartitionEpoch || in.LeaderEpoch < p.deferred.LeaderEpoch):
		p.out.because(Reason{Code: AssignStale, Broker: in.Leader, Epoch: in.LeaderEpoch})
	case !p.coherent(in):
		p.out.Err = model.ErrInvalidRequest
		p.out.because(Reason{Code: AssignInvalid, Broker: in.Leader, Epoch: in.LeaderEpoch})
	case in.LeaderEpoch == p.epoch:
		p.reassign(in)
	case p.InFlight():
		p.deferred, p.hasDeferred = *in, true
		p.out.because(Reason{Code: RoleWaits, Broker: in.Leader, Offset: p.leo, Bound: p.next, Epoch: in.LeaderEpoch})
	default:
		p.takeRole(in)
	}
}

// coherent reports whether in can be true: a leader is in the ISR, the ISR is
// part of AR (I13), and one epoch has one leader.
func (p *Partition) coherent(in *Assign) bool {
	if in.LeaderEpoch == p.epoch && in.Leader != p.leader {
		return false
	}
	return in.LeaderEpoch >= 0 && (in.Leader != p.cfg.ID || p.fits(in.ISR, in.Replicas))
}

// fits reports whether isr may be the ISR of this leader.
func (p *Partition) fits(isr, replicas []model.BrokerID) bool {
	return slices.Contains(isr, p.cfg.ID) && subset(isr, replicas)
}

func subset(a, b []model.BrokerID) bool {
	for _, id := range a {
		if !slices.Contains(b, id) {
			return false
		}
	}
	return true
}

// reassign takes a change inside the current leader epoch. The same partition
// epoch means the same state, which our own AlterPartition may have told first:
// then a newer proposal of ours is still open and must go on counting (I10).
func (p *Partition) reassign(in *Assign) {
	newer := in.PartitionEpoch > p.partitionEpoch
	p.partitionEpoch, p.replicas = in.PartitionEpoch, in.Replicas
	if p.role != Leader {
		return
	}
	l := &p.lead
	p.trackReplicas(true)
	if newer {
		if l.pending {
			p.out.because(Reason{Code: ISRSuperseded, Broker: model.NoBroker})
		}
		l.isr, l.maximal, l.pending = in.ISR, in.ISR, false
	}
	p.tryHW()
	p.out.Wake |= WakeFetch | WakeProduce | WakeDelete
}

// settle lets a change of role that waited for storage happen (R4.2a).
func (p *Partition) settle() {
	if p.hasDeferred && !p.InFlight() {
		p.hasDeferred = false
		p.takeRole(&p.deferred)
	}
}

// takeRole makes this replica leader or follower of a new leader epoch. Nothing
// is in flight.
func (p *Partition) takeRole(in *Assign) {
	wasLeader := p.role == Leader
	stayed := wasLeader && in.LeaderEpoch == p.epoch+1
	p.epoch, p.partitionEpoch = in.LeaderEpoch, in.PartitionEpoch
	p.leader, p.replicas = in.Leader, in.Replicas
	if in.Leader == p.cfg.ID {
		p.becomeLeader(in, stayed)
	} else {
		p.becomeFollower(wasLeader)
	}
	p.out.Wake |= WakeFetch | WakeProduce | WakeDelete
}

// becomeLeader starts a leadership, or a new epoch of one. The start of the
// epoch is noted even before its first record and must be durable before this
// leader serves (KAFKA-7415). The HW is kept, not set to the LEO (R4.2). stayed
// says that nobody else led since: only then is what was known of the followers
// still true. Another leader, of an epoch that we never heard of, may have cut
// their logs.
func (p *Partition) becomeLeader(in *Assign, stayed bool) {
	l := &p.lead
	if p.role == Follower {
		p.fetchFrom(model.NoBroker)
	}
	p.role, p.follow = Leader, followerState{}
	l.start = p.leo
	l.isr, l.maximal, l.pending = in.ISR, in.ISR, false
	p.trackReplicas(stayed)
	p.resetRemotes(stayed)
	p.epochs.Assign(p.epoch, p.leo)
	l.persisting = true
	p.out.persist = PersistEpochs{Epoch: p.epoch, Epochs: p.epochs.Entries()}
	p.out.PersistEpochs = &p.out.persist
	p.out.because(Reason{Code: BecameLeader, Broker: p.cfg.ID, Offset: p.leo, Epoch: p.epoch})
}

// trackReplicas gives each follower in AR its state and forgets the others. A
// follower that was known keeps what is known of it if keep is set.
func (p *Partition) trackReplicas(keep bool) {
	l := &p.lead
	old := l.remotes
	l.remotes = make([]remote, 0, len(p.replicas))
	for _, id := range p.replicas {
		if id == p.cfg.ID {
			continue
		}
		if i := indexRemote(old, id); keep && i >= 0 {
			l.remotes = append(l.remotes, old[i])
		} else {
			l.remotes = append(l.remotes, p.unknownRemote(id))
		}
	}
}

// unknownRemote is a follower that never fetched from this leader (R1.10).
func (p *Partition) unknownRemote(id model.BrokerID) remote {
	return remote{
		id: id, leo: model.UnknownOffset, logStart: model.UnknownOffset, pos: model.UnknownPosition,
		epoch: model.UnknownBrokerEpoch, leaderLEO: model.UnknownOffset, lastFetch: Never, caughtUp: Never,
	}
}

// resetRemotes starts the clocks of the followers anew: members of the ISR get
// lagMax to be heard of. A leader that stays keeps their offsets (R4.3).
func (p *Partition) resetRemotes(stayed bool) {
	for i := range p.lead.remotes {
		r := &p.lead.remotes[i]
		r.toldHW, r.waits, r.why = 0, false, NoReason
		r.lastFetch, r.caughtUp = Never, Never
		if slices.Contains(p.lead.isr, r.id) {
			r.caughtUp = p.now
			if stayed {
				r.lastFetch = p.now
			}
		}
		if stayed {
			r.leaderLEO = p.lead.start
		}
	}
}

// becomeFollower gives up all state of a leader and fetches from the new one,
// also when it has the same id as before: a missed epoch may have changed its
// log (KAFKA-7164). A log without epochs is cut to the HW first (R4.4, R4.5).
func (p *Partition) becomeFollower(wasLeader bool) {
	if wasLeader {
		p.leadership++
	}
	p.role, p.follow = Follower, followerState{}
	p.lead = leaderState{start: model.UnknownOffset, proposals: p.lead.proposals}
	p.fetchFrom(p.leader)
	if p.leader == model.NoBroker {
		p.out.because(Reason{Code: LostLeader, Broker: model.NoBroker, Epoch: p.epoch})
		return
	}
	p.out.because(Reason{Code: BecameFollower, Broker: p.leader, Epoch: p.epoch})
	if p.epochs.Len() == 0 && p.leo > p.hw {
		p.cut(p.hw, Reason{Code: CutNoEpochs, Broker: p.leader, Offset: p.hw, Bound: p.leo}, "R4.5")
	}
}

func (p *Partition) fetchFrom(leader model.BrokerID) {
	p.out.fetchFrom = leader
	p.out.FetchFrom = &p.out.fetchFrom
}

// configure takes new topic configs. A smaller minimum may free the HW; nothing else
// may move it here, for what else the metadata changed may not be told yet.
func (p *Partition) configure(in *Configure) {
	freed := in.MinISR < p.cfg.MinISR
	p.cfg.MinISR = in.MinISR
	if freed && p.role == Leader {
		p.tryHW()
	}
}

// stop ends this replica for good (R7.6).
func (p *Partition) stop(in *Stop) {
	p.stopErr = in.Err
	if p.stopErr == model.None {
		p.stopErr = model.ErrUnknownTopicOrPartition
	}
	if p.role == Follower {
		p.fetchFrom(model.NoBroker)
	}
	p.role, p.hasDeferred = Stopped, false
	p.leadership++
	p.generation++
	p.lead = leaderState{start: model.UnknownOffset}
	p.out.Wake = WakeFetch | WakeProduce | WakeDelete
	p.out.because(Reason{Code: ReplicaStopped, Broker: model.NoBroker})
}
