package partition

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// mayJoin is NoReason when the metadata allows r in an ISR: it is registered,
// neither fenced nor shutting down, and its last fetch is from its present life
// (R5.5).
func (p *Partition) mayJoin(r *remote) ReasonCode {
	peer, ok := (*p.cfg.Peers)[r.id]
	switch {
	case !ok:
		return JoinUnregistered
	case peer.Fenced:
		return JoinFenced
	case peer.ShuttingDown:
		return JoinShuttingDown
	case !r.heard:
		return JoinUnheard
	case r.epoch != model.UnknownBrokerEpoch && r.epoch != peer.Epoch:
		return JoinOldIncarnation
	}
	return NoReason
}

// expandISR proposes to take r in, if its fetch just now proves that it holds
// all that may be committed (R5.4). The HW alone does not: after an election it
// may lag what the last leader committed, but that is below the epoch start
// (KAFKA-7128).
func (p *Partition) expandISR(r *remote) {
	l := &p.lead
	if slices.Contains(l.maximal, r.id) {
		return
	}
	why := Reason{Code: p.mayJoin(r), Broker: r.id, Offset: r.leo}
	switch {
	case why.Code != NoReason:
	case r.leo < p.hw:
		why.Code, why.Bound = JoinBehindHW, p.hw
	case r.leo < l.start:
		why.Code, why.Bound = JoinBehindEpoch, l.start
	case r.logStart < p.logStart:
		why.Code, why.Offset, why.Bound = JoinBelowStart, r.logStart, p.logStart
	case l.pending:
		why.Code = JoinWaitsForISR
	default:
		why.Code = JoinProposed
		isr := append(slices.Clone(l.isr), r.id)
		l.maximal = isr
		p.propose(isr)
	}
	if why.Code != r.why {
		r.why = why.Code
		p.out.because(why)
	}
}

// shrinkISR proposes to drop the members that have been behind for longer than
// lagMax. A member at our LEO stays whatever the time (KAFKA-7152, R5.2). It
// goes on counting for the HW until the controller confirms (R5.7).
func (p *Partition) shrinkISR() {
	l := &p.lead
	if l.pending || !slices.ContainsFunc(l.isr, p.outOfSync) {
		return
	}
	stay := make([]model.BrokerID, 0, len(l.isr))
	for _, id := range l.isr {
		if !p.outOfSync(id) {
			stay = append(stay, id)
			continue
		}
		why := Reason{Code: LeftByLag, Broker: id, Offset: model.UnknownOffset, Bound: p.leo}
		if r := p.remote(id); r != nil {
			why.Offset, r.why = r.leo, LeftByLag
		}
		if why.Offset == model.UnknownOffset {
			why.Code = LeftUnheard
		}
		p.out.because(why)
	}
	p.propose(stay)
}

func (p *Partition) outOfSync(id model.BrokerID) bool {
	if id == p.cfg.ID {
		return false
	}
	r := p.remote(id)
	return r == nil || r.leo != p.leo && p.now.Sub(r.caughtUp) > p.cfg.LagMax
}

// propose opens a change of the ISR. Each member carries the broker epoch of the
// fetch that made the case (R5.5, R5.6).
func (p *Partition) propose(isr []model.BrokerID) {
	l := &p.lead
	l.proposals++
	l.pending = true
	members := make([]ISRMember, len(isr))
	for i, id := range isr {
		members[i] = ISRMember{ID: id, Epoch: model.UnknownBrokerEpoch}
		if id == p.cfg.ID {
			if peer, ok := (*p.cfg.Peers)[id]; ok {
				members[i].Epoch = peer.Epoch
			}
		} else if r := p.remote(id); r != nil && r.heard {
			members[i].Epoch = r.epoch
		}
	}
	l.proposal = AlterISR{Proposal: l.proposals, LeaderEpoch: p.epoch, PartitionEpoch: p.partitionEpoch, ISR: members}
	p.out.AlterISR = &l.proposal
}

// isrAnswer takes the controller's word on the open proposal (R5.10). Only two
// errors prove that nothing changed; with the others the stricter maximal ISR
// stays until metadata tells.
func (p *Partition) isrAnswer(in *ISRAnswer) {
	l := &p.lead
	if p.role != Leader || !l.pending || in.Proposal != l.proposal.Proposal {
		p.out.because(Reason{Code: ISRAnswerStale, Broker: model.NoBroker})
		return
	}
	why := Reason{Broker: model.NoBroker, Err: in.Err}
	switch in.Err {
	case model.None:
		p.commitISR(in)
		return
	case model.ErrOperationNotAttempted, model.ErrIneligibleReplica:
		why.Code = ISRRolledBack
		l.maximal, l.pending = l.isr, false
		p.tryHW()
	case model.ErrUnknownTopicOrPartition, model.ErrUnknownTopicID, model.ErrFencedLeaderEpoch,
		model.ErrInvalidUpdateVersion, model.ErrInvalidRequest, model.ErrNewLeaderElected:
		why.Code = ISRWaitsMetadata
	default:
		why.Code = ISRSentAgain
		p.out.AlterISR = &l.proposal
	}
	p.out.because(why)
}

// commitISR takes an accepted change. The HW is tried at once: on an idle
// partition nothing else would (KAFKA-13091).
func (p *Partition) commitISR(in *ISRAnswer) {
	l := &p.lead
	if in.LeaderEpoch != p.epoch || in.PartitionEpoch < p.partitionEpoch || !p.fits(in.ISR, p.replicas) {
		p.out.because(Reason{Code: ISRAnswerStale, Broker: model.NoBroker})
		return
	}
	l.isr, l.maximal, l.pending = in.ISR, in.ISR, false
	p.partitionEpoch = in.PartitionEpoch
	p.out.because(Reason{Code: ISRCommitted, Broker: model.NoBroker, Offset: model.Offset(len(l.isr))})
	p.tryHW()
	p.out.Wake |= WakeFetch | WakeProduce | WakeDelete
}
