package coretest

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// controller is the truth about the one partition: a small copy of the rules
// that matter to replication (R5.8, R6.3, R6.8, R6.10, R6.12).
type controller struct {
	replicas, isr, elr []model.BrokerID
	lastKnown          model.BrokerID
	leader             model.BrokerID
	leaderEpoch        model.Epoch
	partitionEpoch     model.PartitionEpoch
	recovering         bool
	minISR             int
	registered         map[model.BrokerID]partition.Peer
	nextEpoch          model.BrokerEpoch
	history            []version
	pending            []*alteration
}

// version is one state of the metadata log that brokers may hear of.
type version struct {
	assign partition.Assign
	peers  partition.Peers
}

// alteration is an AlterPartition on its way, or its answer on the way back.
type alteration struct {
	from     model.BrokerID
	epoch    model.BrokerEpoch
	by       *partition.Partition // the replica that proposed
	proposal partition.AlterISR
	answer   *partition.ISRAnswer
}

func (c *controller) effectiveMinISR() int { return min(c.minISR, len(c.replicas)) }

// acceptable says whether a broker may lead (R6.2).
func (c *controller) acceptable(id model.BrokerID) bool {
	peer, ok := c.registered[id]
	return ok && !peer.Fenced && !peer.ShuttingDown
}

// change replaces replicas and ISR, keeps ELR and epochs right, and elects if
// the leader may not stay. unclean is a broker that lost its claim to hold
// committed records (R6.12); NoBroker for none.
func (c *controller) change(replicas, isr []model.BrokerID, unclean model.BrokerID) {
	shrunk := slices.ContainsFunc(c.replicas, func(id model.BrokerID) bool { return !slices.Contains(replicas, id) })
	before := c.isr
	c.replicas = replicas
	c.isr = slices.DeleteFunc(slices.Clone(isr), func(id model.BrokerID) bool { return !slices.Contains(replicas, id) })
	c.deriveELR(before, unclean)
	leader := c.leader
	c.elect()
	if c.leader != leader || shrunk {
		c.leaderEpoch++
	}
	c.partitionEpoch++
	if leader != model.NoBroker && c.leader == model.NoBroker && len(c.isr) == 0 {
		c.lastKnown = leader
	}
}

// deriveELR keeps who left below the minimum, while the HW is frozen (R6.10).
func (c *controller) deriveELR(before []model.BrokerID, unclean model.BrokerID) {
	elr := append(slices.Clone(c.elr), before...)
	c.elr = nil
	if len(c.isr) >= c.effectiveMinISR() {
		return
	}
	for _, id := range c.replicas {
		if slices.Contains(elr, id) && !slices.Contains(c.isr, id) && id != unclean {
			c.elr = append(c.elr, id)
		}
	}
}

// elect keeps a valid leader, else takes the first valid replica (R6.3, R6.4).
func (c *controller) elect() {
	if slices.Contains(c.isr, c.leader) && c.acceptable(c.leader) {
		return
	}
	c.leader = model.NoBroker
	for _, id := range c.replicas {
		if slices.Contains(c.isr, id) && c.acceptable(id) {
			c.leader = id
			return
		}
	}
	for _, id := range c.replicas {
		if len(c.isr) == 0 && slices.Contains(c.elr, id) && c.acceptable(id) {
			c.leader, c.isr, c.elr = id, []model.BrokerID{id}, without(c.elr, id)
			return
		}
	}
}

// publish makes the present state a version of the metadata log and lets the
// brokers hear it: those given, or all that run.
func (w *World) publish(hearers []model.BrokerID) {
	c := &w.ctl
	v := version{peers: partition.Peers{}, assign: partition.Assign{
		Leader: c.leader, LeaderEpoch: c.leaderEpoch, PartitionEpoch: c.partitionEpoch,
		Replicas: slices.Clone(c.replicas), ISR: slices.Clone(c.isr), Recovering: c.recovering,
	}}
	for id, peer := range c.registered {
		v.peers[id] = peer
	}
	c.history = append(c.history, v)
	for _, b := range w.brokers {
		if !b.down && (hearers == nil || slices.Contains(hearers, b.id)) {
			w.hear(b, len(c.history))
		}
	}
}

// hear tells b the metadata up to a version: only its final state counts, and
// the brokers come before the partition (R4.1).
func (w *World) hear(b *broker, upTo int) {
	if upTo <= b.heard {
		return
	}
	v := w.ctl.history[upTo-1]
	b.heard = upTo
	clear(b.peers)
	for id, peer := range v.peers {
		b.peers[id] = peer
	}
	hosts := slices.Contains(v.assign.Replicas, b.id)
	switch {
	case !hosts && b.p != nil: // it lost the replica, and deletes it
		w.step(b, &partition.Stop{Err: model.ErrNotLeaderOrFollower}, nil)
		w.settle()
		b.lossy = b.lossy || len(b.log.batches) > 0
		b.p, b.log, b.jobs, b.wake = nil, disk{}, nil, 0
		w.forgetParked(b)
		return
	case !hosts:
		return
	case b.p == nil:
		w.start(b, 0)
	}
	assign := v.assign
	w.step(b, &assign, nil)
}

// sayController prints who leads, and who may.
func (w *World) sayController() {
	if w.quiet {
		return
	}
	c := &w.ctl
	leader := "no leader"
	if c.leader != model.NoBroker {
		leader = "leader b" + itoa(c.leader)
	}
	more := ""
	if len(c.elr) > 0 {
		more = " ELR=" + set(c.elr)
	}
	w.say("controller: %s epoch=%d ISR=%s%s", leader, c.leaderEpoch, set(c.isr), more)
}

// alterPartition sends a proposal to the controller. A broker has one under way
// at a time; a second is not attempted (R5.6).
func (w *World) alterPartition(b *broker, a partition.AlterISR) {
	ids := make([]model.BrokerID, len(a.ISR))
	for i, m := range a.ISR {
		ids[i] = m.ID
	}
	w.tell(b, "AlterPartition isr=%s", set(ids))
	if b.alter != nil {
		w.step(b, &partition.ISRAnswer{Proposal: a.Proposal, Err: model.ErrOperationNotAttempted}, nil)
		return
	}
	a.ISR = slices.Clone(a.ISR)
	b.alter = &alteration{from: b.id, epoch: b.epoch, by: b.p, proposal: a}
	w.ctl.pending = append(w.ctl.pending, b.alter)
}

// judge decides an AlterPartition (R5.8, R5.9). Who joins counts as having all
// committed records again: the checkers hold it to that.
func (w *World) judge(a *alteration) partition.ISRAnswer {
	c, p := &w.ctl, a.proposal
	answer := partition.ISRAnswer{Proposal: p.Proposal, Err: c.refusal(a)}
	if answer.Err != model.None {
		return answer
	}
	isr := make([]model.BrokerID, len(p.ISR))
	for i, m := range p.ISR {
		isr[i] = m.ID
		if b := w.broker(m.ID); !slices.Contains(c.isr, m.ID) && !b.down {
			b.lossy, b.hit = false, false
		}
	}
	c.change(c.replicas, isr, model.NoBroker)
	c.recovering = false
	answer.Leader, answer.LeaderEpoch, answer.PartitionEpoch = c.leader, c.leaderEpoch, c.partitionEpoch
	answer.ISR = slices.Clone(c.isr)
	return answer
}

func (c *controller) refusal(a *alteration) model.Error {
	p := a.proposal
	switch {
	case c.registered[a.from].Epoch != a.epoch:
		return model.ErrStaleBrokerEpoch
	case p.LeaderEpoch > c.leaderEpoch || p.PartitionEpoch > c.partitionEpoch:
		return model.ErrNotController
	case p.LeaderEpoch < c.leaderEpoch:
		return model.ErrFencedLeaderEpoch
	case a.from != c.leader:
		return model.ErrInvalidRequest
	case p.PartitionEpoch < c.partitionEpoch:
		return model.ErrInvalidUpdateVersion
	}
	leads := false
	for _, m := range p.ISR {
		leads = leads || m.ID == c.leader
		if !slices.Contains(c.replicas, m.ID) {
			return model.ErrInvalidRequest
		}
	}
	if !leads {
		return model.ErrInvalidRequest
	}
	for _, m := range p.ISR {
		if m.Epoch != model.UnknownBrokerEpoch && m.Epoch != c.registered[m.ID].Epoch || !c.acceptable(m.ID) {
			return model.ErrIneligibleReplica
		}
	}
	return model.None
}

// register gives a broker a new incarnation, which starts fenced and so outside
// the ISR. After an unclean stop it may have lost records, so it leaves the ELR
// too (R6.12, R6.14).
func (w *World) register(b *broker, clean bool) {
	c := &w.ctl
	c.nextEpoch++
	b.epoch = c.nextEpoch
	c.registered[b.id] = partition.Peer{Epoch: b.epoch, Rack: c.registered[b.id].Rack, Fenced: true}
	if b.lossy {
		w.noteLoss(b)
	}
	unclean := model.NoBroker
	if !clean {
		unclean = b.id
	}
	if c.candidate(b.id) && (!clean || slices.Contains(c.isr, b.id)) {
		c.elr = without(c.elr, unclean)
		c.change(c.replicas, without(c.isr, b.id), unclean)
	}
}

// electIfNone gives a leaderless partition a leader if it can.
func (c *controller) electIfNone() {
	if c.leader != model.NoBroker {
		return
	}
	if c.elect(); c.leader != model.NoBroker {
		c.leaderEpoch++
		c.partitionEpoch++
	}
}

// leave takes a broker out of the ISR: it is fenced or shuts down (R6.15).
func (c *controller) leave(id model.BrokerID, peer partition.Peer) {
	c.registered[id] = peer
	if slices.Contains(c.isr, id) || c.leader == id {
		c.change(c.replicas, without(c.isr, id), model.NoBroker)
	}
}

// force is an election by decree: the scripts of old bug reports need leaders
// that today's controller would not choose.
func (w *World) force(leader model.BrokerID, isr []model.BrokerID) error {
	c := &w.ctl
	if leader != model.NoBroker && !slices.Contains(isr, leader) {
		return fmt.Errorf("leader b%d is outside the ISR %s", leader, set(isr))
	}
	for _, id := range isr {
		if id != leader && slices.Contains(c.isr, id) {
			continue
		}
		if b := w.broker(id); !w.holdsCommitted(b) {
			w.ghost.unclean = true
		} else {
			b.lossy, b.hit = false, false
		}
	}
	if !c.candidate(leader) && slices.ContainsFunc(w.brokers, func(b *broker) bool {
		return b.id != leader && b.live() && b.p.Role() == partition.Leader
	}) {
		w.ghost.unclean = true // the old leader may still commit alone (R6.19)
	}
	if !c.candidate(leader) || len(isr) >= c.effectiveMinISR() {
		c.elr = nil // R6.7, R6.10
	}
	c.leader, c.isr = leader, isr
	c.elr = without(c.elr, isr...)
	c.leaderEpoch++
	c.partitionEpoch++
	return nil
}
