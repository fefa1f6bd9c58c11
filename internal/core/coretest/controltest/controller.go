// Package controltest is a small controller of one partition, for tests of the
// replication core. It has the rules that replication rests on and no log.
package controltest

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// Controller is the truth about the partition (R5.8, R6.3, R6.8, R6.10, R6.12).
type Controller struct {
	Replicas, ISR, ELR []model.BrokerID
	Leader             model.BrokerID
	LeaderEpoch        model.Epoch
	PartitionEpoch     model.PartitionEpoch
	MinISR             int // min.insync.replicas
	Registered         map[model.BrokerID]partition.Peer
	NextEpoch          model.BrokerEpoch
}

// State is what the metadata log says of the partition.
func (c *Controller) State() partition.Assign {
	return partition.Assign{
		Leader: c.Leader, LeaderEpoch: c.LeaderEpoch, PartitionEpoch: c.PartitionEpoch,
		Replicas: slices.Clone(c.Replicas), ISR: slices.Clone(c.ISR),
	}
}

// EffectiveMinISR is the smallest ISR that may commit (R1.17).
func (c *Controller) EffectiveMinISR() int { return min(c.MinISR, len(c.Replicas)) }

// Acceptable says whether a broker may lead (R6.2).
func (c *Controller) Acceptable(id model.BrokerID) bool {
	peer, ok := c.Registered[id]
	return ok && !peer.Fenced && !peer.ShuttingDown
}

// Candidate says whether a broker may be elected without loss once it runs.
func (c *Controller) Candidate(id model.BrokerID) bool {
	return slices.Contains(c.ISR, id) || slices.Contains(c.ELR, id)
}

// Change replaces replicas and ISR, keeps ELR and epochs right, and elects if
// the leader may not stay. unclean is a broker that lost its claim to hold
// committed records (R6.12); NoBroker for none.
func (c *Controller) Change(replicas, isr []model.BrokerID, unclean model.BrokerID) {
	shrunk := slices.ContainsFunc(c.Replicas, func(id model.BrokerID) bool { return !slices.Contains(replicas, id) })
	before := c.ISR
	c.Replicas = replicas
	c.ISR = slices.DeleteFunc(slices.Clone(isr), func(id model.BrokerID) bool { return !slices.Contains(replicas, id) })
	c.deriveELR(before, unclean)
	leader := c.Leader
	c.elect()
	if c.Leader != leader || shrunk {
		c.LeaderEpoch++
	}
	c.PartitionEpoch++
}

// deriveELR keeps who left below the minimum, while the HW is frozen (R6.10).
func (c *Controller) deriveELR(before []model.BrokerID, unclean model.BrokerID) {
	elr := append(slices.Clone(c.ELR), before...)
	c.ELR = nil
	if len(c.ISR) >= c.EffectiveMinISR() {
		return
	}
	for _, id := range c.Replicas {
		if slices.Contains(elr, id) && !slices.Contains(c.ISR, id) && id != unclean {
			c.ELR = append(c.ELR, id)
		}
	}
}

// elect keeps a valid leader, else takes the first valid replica (R6.3, R6.4).
func (c *Controller) elect() {
	if slices.Contains(c.ISR, c.Leader) && c.Acceptable(c.Leader) {
		return
	}
	c.Leader = model.NoBroker
	for _, id := range c.Replicas {
		if slices.Contains(c.ISR, id) && c.Acceptable(id) {
			c.Leader = id
			return
		}
	}
	for _, id := range c.Replicas {
		if len(c.ISR) == 0 && slices.Contains(c.ELR, id) && c.Acceptable(id) {
			c.Leader, c.ISR, c.ELR = id, []model.BrokerID{id}, without(c.ELR, id)
			return
		}
	}
}

// ElectIfNone gives a leaderless partition a leader if it can.
func (c *Controller) ElectIfNone() {
	if c.Leader != model.NoBroker {
		return
	}
	if c.elect(); c.Leader != model.NoBroker {
		c.LeaderEpoch++
		c.PartitionEpoch++
	}
}

// Decree makes somebody leader, or nobody: the scripts of old bug reports need
// leaders that today's controller would not choose.
func (c *Controller) Decree(leader model.BrokerID, isr []model.BrokerID) {
	if !c.Candidate(leader) || len(isr) >= c.EffectiveMinISR() {
		c.ELR = nil // R6.7, R6.10
	}
	c.Leader, c.ISR = leader, isr
	c.ELR = without(c.ELR, isr...)
	c.LeaderEpoch++
	c.PartitionEpoch++
}

// Register gives a broker a new incarnation, which starts fenced and so outside
// the ISR. After an unclean stop it may have lost records, so it leaves the ELR
// too (R6.12, R6.14).
func (c *Controller) Register(id model.BrokerID, clean bool) model.BrokerEpoch {
	c.NextEpoch++
	c.Registered[id] = partition.Peer{Epoch: c.NextEpoch, Rack: c.Registered[id].Rack, Fenced: true}
	unclean := model.NoBroker
	if !clean {
		unclean = id
	}
	if c.Candidate(id) && (!clean || slices.Contains(c.ISR, id)) {
		c.ELR = without(c.ELR, unclean)
		c.Change(c.Replicas, without(c.ISR, id), unclean)
	}
	return c.NextEpoch
}

// Leave takes a broker out of the ISR: it is fenced or shuts down (R6.15).
func (c *Controller) Leave(id model.BrokerID, peer partition.Peer) {
	c.Registered[id] = peer
	if slices.Contains(c.ISR, id) || c.Leader == id {
		c.Change(c.Replicas, without(c.ISR, id), model.NoBroker)
	}
}

// Unfence lets a broker in again.
func (c *Controller) Unfence(id model.BrokerID) {
	peer := c.Registered[id]
	peer.Fenced = false
	c.Registered[id] = peer
	c.ElectIfNone()
}

// Judge decides what the broker from, in its life epoch, proposes (R5.8, R5.9).
func (c *Controller) Judge(from model.BrokerID, epoch model.BrokerEpoch, p partition.AlterISR) partition.ISRAnswer {
	answer := partition.ISRAnswer{Proposal: p.Proposal, Err: c.refusal(from, epoch, p)}
	if answer.Err != model.None {
		return answer
	}
	isr := make([]model.BrokerID, len(p.ISR))
	for i, m := range p.ISR {
		isr[i] = m.ID
	}
	c.Change(c.Replicas, isr, model.NoBroker)
	answer.Leader, answer.LeaderEpoch, answer.PartitionEpoch = c.Leader, c.LeaderEpoch, c.PartitionEpoch
	answer.ISR = slices.Clone(c.ISR)
	return answer
}

func (c *Controller) refusal(from model.BrokerID, epoch model.BrokerEpoch, p partition.AlterISR) model.Error {
	switch {
	case c.Registered[from].Epoch != epoch:
		return model.ErrStaleBrokerEpoch
	case p.LeaderEpoch > c.LeaderEpoch || p.PartitionEpoch > c.PartitionEpoch:
		return model.ErrNotController
	case p.LeaderEpoch < c.LeaderEpoch:
		return model.ErrFencedLeaderEpoch
	case from != c.Leader:
		return model.ErrInvalidRequest
	case p.PartitionEpoch < c.PartitionEpoch:
		return model.ErrInvalidUpdateVersion
	}
	leads := false
	for _, m := range p.ISR {
		leads = leads || m.ID == c.Leader
		if !slices.Contains(c.Replicas, m.ID) {
			return model.ErrInvalidRequest
		}
	}
	if !leads {
		return model.ErrInvalidRequest
	}
	for _, m := range p.ISR {
		if m.Epoch != model.UnknownBrokerEpoch && m.Epoch != c.Registered[m.ID].Epoch || !c.Acceptable(m.ID) {
			return model.ErrIneligibleReplica
		}
	}
	return model.None
}

func without(list []model.BrokerID, drop ...model.BrokerID) []model.BrokerID {
	return slices.DeleteFunc(slices.Clone(list), func(id model.BrokerID) bool { return slices.Contains(drop, id) })
}
