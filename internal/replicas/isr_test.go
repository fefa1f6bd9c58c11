package replicas

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/replicas/isr"
)

// proposed takes the proposals that the sender would send next.
func (c *crank) proposed() []isr.Proposal { return c.isr.Proposals.Take(nil) }

// answered answers the one open proposal: with an error, or with the ISR that it
// asks for in the next partition epoch.
func (c *crank) answered(err model.Error) {
	c.t.Helper()
	ps := c.proposed()
	if len(ps) != 1 {
		c.t.Fatalf("%d proposals", len(ps))
	}
	p := ps[0]
	in := partition.ISRAnswer{Proposal: p.Proposal, Err: err, Leader: 1, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch + 1}
	for _, m := range p.ISR {
		in.ISR = append(in.ISR, m.ID)
	}
	c.turn(isrAnswers{{Hosted: p.Hosted, ISRAnswer: in}})
}

func TestAnAcceptedISRCountsOnceTheMetadataHasIt(t *testing.T) {
	c := newCrank(t)
	r := c.led(0, 1, 2)
	c.ask(fetchOf(2, 0, 1, 0, r), fetchOf(3, 0, 1, 0, r))
	c.answered(model.None)
	if v := r.p.View(); len(v.ISR) != 2 || !v.PendingISR {
		t.Fatalf("before the metadata: ISR %v, pending %v", v.ISR, v.PendingISR)
	}
	c.assignedAt(r, 2, 1, 2, 3)
	if v := r.p.View(); len(v.ISR) != 3 || v.PendingISR || r.answer != nil {
		t.Errorf("after it: ISR %v, pending %v", v.ISR, v.PendingISR)
	}
}

func TestMetadataThatIsAheadMakesAnAnswerVoid(t *testing.T) {
	c := newCrank(t)
	r := c.led(0, 1, 2)
	c.ask(fetchOf(2, 0, 1, 0, r), fetchOf(3, 0, 1, 0, r))
	ps := c.proposed()
	c.assignedAt(r, 3, 1)
	c.turn(isrAnswers{{Hosted: r.hosted, ISRAnswer: partition.ISRAnswer{Proposal: ps[0].Proposal, Leader: 1, LeaderEpoch: 1, PartitionEpoch: 2,
		ISR: []model.BrokerID{1, 2, 3}}}})
	if v := r.p.View(); len(v.ISR) != 1 || r.answer != nil {
		t.Errorf("ISR %v", v.ISR)
	}
}
