package replicas

import (
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/replicas/isr"
)

// propose notes what a core proposes in this turn.
func (l *Loop) propose(r *replica, a *partition.AlterISR) {
	own := *a
	own.ISR = append([]partition.ISRMember(nil), a.ISR...)
	l.proposals = append(l.proposals, isr.Proposal{Hosted: r.hosted, AlterISR: own})
}

// sendProposals hands the turn's proposals to the ISR sender.
func (l *Loop) sendProposals() {
	if len(l.proposals) > 0 {
		l.isr.Proposals.Post(l.proposals...)
		l.proposals = nil
	}
}

// isrAnswers is the event that brings the controller's answers to the loop.
type isrAnswers []isr.Answer

// turn hands the answers to the cores. A change that was accepted waits until
// the metadata brings it too: the controller made it under the configs of its
// own, and a minimum that was raised before must count here before it does.
func (as isrAnswers) turn(l *Loop) {
	for i := range as {
		a := &as[i]
		r := a.Hosted.Owner.(*replica)
		if a.Err == model.None && a.PartitionEpoch > r.epoch {
			r.answer = &a.ISRAnswer
			continue
		}
		l.step(r, &a.ISRAnswer)
	}
}
