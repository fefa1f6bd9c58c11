package coretest

import (
	"slices"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// healRounds bounds how long a healthy cluster may take to converge: a round per
// epoch that may diverge, some for the ISR, some for the HW.
const healRounds = 60

// cmdHeal ends all faults and demands that everything converges (J2, J3, J5,
// J8): every replica is in the ISR with the leader's LEO and HW.
func (w *World) cmdHeal(*args) error {
	w.net = nil
	for _, b := range w.brokers {
		if b.down {
			if err := w.cmdRestart(&args{list: []datadriven.CmdArg{{Key: itoa(b.id)}}}); err != nil {
				return err
			}
		}
		b.hold = false
		if b.p != nil {
			w.runJobs(b)
		}
		w.ctl.Registered[b.id] = partition.Peer{Epoch: b.epoch}
	}
	w.ctl.ElectIfNone()
	w.publish(nil)
	w.settle()
	if w.ctl.Leader == model.NoBroker {
		id := w.ctl.Replicas[0]
		if err := w.force(id, []model.BrokerID{id}); err != nil {
			return err
		}
		w.publish(nil)
		w.settle()
	}
	for range healRounds {
		if w.converged() {
			return nil
		}
		w.healRound()
	}
	w.fail("Convergence: not reached in %d rounds", healRounds)
	return w.cmdState(&args{})
}

// healRound lets every follower fetch once and the controller answer.
func (w *World) healRound() {
	for _, b := range w.brokers {
		if b.live() && b.p.Role() == partition.Follower {
			if _, ok := b.p.NextFetch(); ok {
				w.fetch(b, request{minBytes: 1, wait: w.fetchWait}, false, false)
				w.settle()
			}
		}
	}
	for len(w.ctl.pending) > 0 {
		if w.ctl.pending[0].answer != nil {
			w.deliverAnswer(0)
		} else {
			answer := w.judge(w.ctl.pending[0])
			w.ctl.pending[0].answer = &answer
			w.deliverAnswer(0)
			w.publish(nil)
		}
		w.settle()
	}
	w.now = w.now.Add(500 * time.Millisecond)
	for _, b := range w.brokers {
		if b.live() {
			w.expire(b)
			w.step(b, &partition.Tick{}, nil)
		}
	}
	w.settle()
}

func (w *World) converged() bool {
	leader := w.broker(w.ctl.Leader)
	end := leader.p.Marks().LEO
	for _, id := range w.ctl.Replicas {
		b := w.broker(id)
		if m := b.p.Marks(); m.LEO != end || m.HW != end || !slices.Contains(w.ctl.ISR, id) {
			return false
		}
	}
	return !leader.p.View().PendingISR
}
