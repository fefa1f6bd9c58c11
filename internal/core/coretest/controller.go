package coretest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/coretest/controltest"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// controller is the controller with its metadata log and what is under way to
// it.
type controller struct {
	controltest.Controller
	history []version
	pending []*alteration
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

// publish makes the present state a version of the metadata log and lets the
// brokers hear it: those given, or all that run.
func (w *World) publish(hearers []model.BrokerID) {
	c := &w.ctl
	c.history = append(c.history, version{assign: c.State(), peers: maps.Clone(c.Registered)})
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
	if c.Leader != model.NoBroker {
		leader = "leader b" + itoa(c.Leader)
	}
	more := ""
	if len(c.ELR) > 0 {
		more = " ELR=" + set(c.ELR)
	}
	w.say("controller: %s epoch=%d ISR=%s%s", leader, c.LeaderEpoch, set(c.ISR), more)
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

// judge lets the controller decide. Who joins counts as having all committed
// records again: the checkers hold it to that.
func (w *World) judge(a *alteration) partition.ISRAnswer {
	before := w.ctl.ISR
	answer := w.ctl.Judge(a.from, a.epoch, a.proposal)
	for _, id := range answer.ISR {
		if b := w.broker(id); !slices.Contains(before, id) && !b.down {
			b.lossy, b.hit = false, false
		}
	}
	return answer
}

// register gives a broker a new incarnation.
func (w *World) register(b *broker, clean bool) {
	if b.lossy {
		w.noteLoss(b)
	}
	b.epoch = w.ctl.Register(b.id, clean)
}

// force is an election by decree. It may lose committed records by right: when
// who is let in lacks some, or when the old leader may still commit alone
// (R6.19).
func (w *World) force(leader model.BrokerID, isr []model.BrokerID) error {
	if leader != model.NoBroker && !slices.Contains(isr, leader) {
		return fmt.Errorf("leader b%d is outside the ISR %s", leader, set(isr))
	}
	for _, id := range isr {
		if id != leader && slices.Contains(w.ctl.ISR, id) {
			continue
		}
		if b := w.broker(id); !w.holdsCommitted(b) {
			w.ghost.unclean = true
		} else {
			b.lossy, b.hit = false, false
		}
	}
	if !w.ctl.Candidate(leader) && slices.ContainsFunc(w.brokers, func(b *broker) bool {
		return b.id != leader && b.live() && b.p.Role() == partition.Leader
	}) {
		w.ghost.unclean = true
	}
	w.ctl.Decree(leader, isr)
	return nil
}
