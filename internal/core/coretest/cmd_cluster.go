package coretest

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// cmdConfirm lets the controller decide the oldest AlterPartition:
//
//	confirm [from=1] [lose=request|answer] [hold=answer] [error=INELIGIBLE_REPLICA] [heard-by=()]
//
// By default only the answer tells the leader, not the metadata log.
func (w *World) cmdConfirm(a *args) error {
	c := &w.ctl
	from := model.BrokerID(a.num("from", -1))
	i := slices.IndexFunc(c.pending, func(p *alteration) bool {
		return p.answer == nil && (from == model.NoBroker || p.from == from)
	})
	if i < 0 {
		return fmt.Errorf("no AlterPartition is under way")
	}
	p := c.pending[i]
	answer := w.decide(p, a)
	p.answer = &answer
	switch {
	case a.text("lose", "") == "answer":
		w.say("the answer to b%d is lost", p.from)
		answer = partition.ISRAnswer{Proposal: answer.Proposal, Err: model.ErrNetworkException}
	case a.text("hold", "") == "answer":
		w.say("the answer to b%d is held up", p.from)
		return nil
	}
	w.deliverAnswer(i)
	return nil
}

// decide is the controller's answer, or what the script wants it to be.
func (w *World) decide(p *alteration, a *args) partition.ISRAnswer {
	answer := partition.ISRAnswer{Proposal: p.proposal.Proposal, Err: model.ErrNetworkException}
	switch {
	case a.text("lose", "") == "request":
		w.say("AlterPartition of b%d is lost", p.from)
		return answer
	case a.text("error", "") != "":
		answer.Err = errorNamed(a.text("error", ""))
	default:
		answer = w.judge(p)
	}
	if answer.Err != model.None {
		w.say("controller refuses: %v", answer.Err)
		return answer
	}
	w.say("controller commits ISR %s", set(answer.ISR))
	hearers := a.ids("heard-by")
	if hearers == nil {
		hearers = []model.BrokerID{}
	}
	w.publish(hearers)
	return answer
}

func errorNamed(name string) model.Error {
	for code := range model.Error(200) {
		if code.Error() == name {
			return code
		}
	}
	return model.ErrUnknownServerError
}

// deliverAnswer hands an answer to the broker that proposed, if it still lives.
func (w *World) deliverAnswer(i int) {
	p := w.ctl.pending[i]
	w.ctl.pending = slices.Delete(w.ctl.pending, i, i+1)
	b := w.broker(p.from)
	if b.alter != p {
		return // the process that asked is gone
	}
	b.alter = nil
	if b.live() && b.p == p.by {
		w.step(b, p.answer, nil)
	}
}

// cmdAnswer delivers the oldest answer that was held up: answer
func (w *World) cmdAnswer(*args) error {
	i := slices.IndexFunc(w.ctl.pending, func(p *alteration) bool { return p.answer != nil })
	if i < 0 {
		return fmt.Errorf("no answer is held up")
	}
	w.deliverAnswer(i)
	return nil
}

// cmdHear lets a broker catch up with the metadata log, to the end or to the
// last change of a leader epoch: hear 1 [epoch=2]
func (w *World) cmdHear(a *args) error {
	b, err := w.named(a)
	if err != nil || b.down {
		return err
	}
	upTo := len(w.ctl.history)
	if epoch := model.Epoch(a.num("epoch", -1)); epoch >= 0 {
		for upTo > 0 && w.ctl.history[upTo-1].assign.LeaderEpoch > epoch {
			upTo--
		}
	}
	w.hear(b, upTo)
	return nil
}

// cmdElect makes a broker leader by decree, or nobody:
//
//	elect 2 [isr=(2)] [heard-by=(2,3)]
//	elect none
func (w *World) cmdElect(a *args) error {
	leader, isr := model.NoBroker, a.ids("isr")
	if isr == nil {
		isr = slices.Clone(w.ctl.ISR)
	}
	if !a.flag("none") {
		b, err := w.named(a)
		if err != nil {
			return err
		}
		leader = b.id
	}
	if err := w.force(leader, isr); err != nil {
		return err
	}
	w.publish(a.ids("heard-by"))
	return nil
}

// cmdAssign changes the assignment: assign replicas=(1,2,4) [isr=()] [heard-by=()]
func (w *World) cmdAssign(a *args) error {
	c := &w.ctl
	isr := a.ids("isr")
	if isr == nil {
		isr = c.ISR
	}
	c.Change(a.ids("replicas"), isr, model.NoBroker)
	w.sayController()
	w.publish(a.ids("heard-by"))
	return nil
}

// cmdFence, cmdUnfence and cmdShutdown change how the controller sees a broker:
// fence 1 [heard-by=()]
func (w *World) cmdFence(a *args) error {
	return w.leave(a, func(p *partition.Peer) { p.Fenced = true })
}

func (w *World) cmdShutdown(a *args) error {
	return w.leave(a, func(p *partition.Peer) { p.ShuttingDown = true })
}

func (w *World) leave(a *args, change func(*partition.Peer)) error {
	b, err := w.named(a)
	if err != nil {
		return err
	}
	peer := w.ctl.Registered[b.id]
	change(&peer)
	w.ctl.Leave(b.id, peer)
	w.sayController()
	w.publish(a.ids("heard-by"))
	return nil
}

func (w *World) cmdUnfence(a *args) error {
	b, err := w.named(a)
	if err != nil {
		return err
	}
	w.ctl.Unfence(b.id)
	w.sayController()
	w.publish(a.ids("heard-by"))
	return nil
}

// cmdCrash ends a process. What was not flushed may be gone: crash 1 [keep=6] [hw=2]
func (w *World) cmdCrash(a *args) error {
	b, err := w.running(a)
	if err != nil {
		return err
	}
	b.log.hw = a.offset("hw", b.p.Marks().HW)
	keep := a.offset("keep", b.log.end())
	b.down, b.alter, b.jobs, b.wake = true, nil, nil, 0
	for _, t := range b.waits {
		t.done(model.ErrNetworkException)
	}
	w.forgetParked(b)
	lost := b.log.read(keep, b.log.end(), len(b.log.batches))
	if len(lost) == 0 {
		w.say("b%d is down", b.id)
		return nil
	}
	b.log.batches = b.log.batches[:len(b.log.batches)-len(lost)]
	b.log.empty = min(b.log.empty, keep)
	if len(b.log.batches) == 0 {
		b.log.empty = max(b.log.start, min(keep, lost[0].base))
	}
	w.say("b%d is down and has lost %s", b.id, valuesOf(lost))
	w.noteLoss(b)
	return nil
}

// cmdRestart starts a process again, as a new incarnation:
//
//	restart 2 [clean] [fenced] [heard-by=()]
//
// clean says that it had stopped in order, so that it may stay eligible to lead.
func (w *World) cmdRestart(a *args) error {
	b, err := w.named(a)
	if err != nil || !b.down {
		return err
	}
	w.say("b%d is up", b.id)
	b.down, b.hold, b.heard = false, false, 0
	epoch := w.ctl.PartitionEpoch
	w.register(b, a.flag("clean"))
	if !a.flag("fenced") {
		w.ctl.Unfence(b.id)
	}
	if w.ctl.PartitionEpoch != epoch {
		w.sayController()
	}
	if b.p != nil {
		w.start(b, min(b.log.hw, b.log.end()))
	}
	w.publish(a.ids("heard-by"))
	return nil
}
