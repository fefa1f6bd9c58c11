package partition

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// check panics when a Step broke an invariant: a corrupt replica must stop. The
// numbers are those of the simulator's list. before is from before the Step.
func (p *Partition) check(before Marks, epoch model.Epoch) {
	if p.role == Stopped {
		return
	}
	m := p.Marks()
	if !(0 <= m.LogStart && m.LogStart <= m.LSO && m.LSO <= m.HW && m.HW <= m.LEO) {
		bug("I1: offsets out of order: log start %d, LSO %d, HW %d, LEO %d", m.LogStart, m.LSO, m.HW, m.LEO)
	}
	if p.next < p.leo && !p.truncating {
		bug("I1: next append at %d, LEO %d", p.next, p.leo)
	}
	if p.epoch < epoch {
		bug("I6: leader epoch went back from %d to %d", epoch, p.epoch)
	}
	if (p.role == Leader) != (p.lead.start != model.UnknownOffset) || p.lead.start > p.leo {
		bug("I6: a %s with epoch start %d, LEO %d", p.role, p.lead.start, p.leo)
	}
	if p.role == Leader {
		p.checkLeader(before, epoch)
	} else if len(p.lead.remotes) > 0 || p.lead.pending {
		bug("I7: a %s remembers followers", p.role)
	}
}

func (p *Partition) checkLeader(before Marks, epoch model.Epoch) {
	l := &p.lead
	if epoch == p.epoch && p.hw < before.HW {
		bug("I5: HW of a leader went back from %d to %d", before.HW, p.hw)
	}
	if p.follow != (followerState{}) || p.truncating {
		bug("I7: a leader fetches or cuts its log")
	}
	if !slices.Contains(l.isr, p.cfg.ID) || !subset(l.isr, l.maximal) || !subset(l.maximal, p.replicas) {
		bug("I9: ISR %v, maximal ISR %v, replicas %v of leader %d", l.isr, l.maximal, p.replicas, p.cfg.ID)
	}
	if !l.pending && len(l.maximal) != len(l.isr) {
		bug("I9: ISR %v, maximal ISR %v, nothing pending", l.isr, l.maximal)
	}
}

func bug(format string, args ...any) {
	panic("partition: " + fmt.Sprintf(format, args...))
}
