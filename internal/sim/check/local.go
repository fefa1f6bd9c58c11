package check

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// LogMarks is I1.
type LogMarks struct{}

func (LogMarks) replica(_ *Set, m *mirror) string {
	f, k := &m.now, m.now.marks
	switch {
	case !(0 <= k.LogStart && k.LogStart <= k.LSO && k.LSO <= k.HW && k.HW <= k.LEO):
		return fmt.Sprintf("b%d has log start %d, LSO %d, HW %d, LEO %d", m.id(), k.LogStart, k.LSO, k.HW, k.LEO)
	case f.recovery > m.end || f.logStart > m.end:
		return fmt.Sprintf("the log of b%d ends at %d, starts at %d, is recovered from %d", m.id(), m.end, f.logStart, f.recovery)
	case !f.inFlight && k.LEO != m.end:
		return fmt.Sprintf("b%d believes that its log ends at %d, it ends at %d", m.id(), k.LEO, m.end)
	}
	return ""
}

// KeptOnDisk is I1 across the end of a process: see Set.compared.
type KeptOnDisk struct{}

// LogOrder is I2.
type LogOrder struct{}

func (LogOrder) batch(_ *Set, a arrival) string {
	if x, y := a.prev, a.seen; y.last < y.base || x != nil && (y.base <= x.last || y.epoch < x.epoch && !y.bad && !x.bad) {
		return fmt.Sprintf("b%d holds %v before %v", a.m.id(), x, y)
	}
	return ""
}

// EpochCache is I3.
type EpochCache struct{}

func (EpochCache) replica(_ *Set, m *mirror) string {
	if m.now.inFlight {
		return ""
	}
	if m.now.cuts != m.was.cuts || m.now.epoch != m.was.epoch {
		m.epochsOK = 0
		if text := ascending(m.p.Epochs()); text != "" {
			return fmt.Sprintf("b%d: %s", m.id(), text)
		}
	}
	from := m.readable()
	m.highest = max(m.highest, from)
	for ; m.epochsOK < len(m.batches); m.epochsOK++ {
		n := m.batches[m.epochsOK]
		if n.last < from || n.bad {
			continue
		}
		// What comes back with a log start of before may be of an epoch that the
		// cache has forgotten (R8.17).
		got := m.p.EpochAt(max(n.base, from))
		if got != n.epoch && (got != model.NoEpoch || n.base >= m.highest) {
			return fmt.Sprintf("b%d holds %v, its cache says epoch %d", m.id(), n, got)
		}
	}
	return ""
}

// ascending says what is wrong with epochs that do not rise in both fields.
func ascending(entries []model.EpochStart) string {
	for i := 1; i < len(entries); i++ {
		if x, y := entries[i-1], entries[i]; x.Epoch >= y.Epoch || x.Start >= y.Start {
			return fmt.Sprintf("epoch %d starts at %d, epoch %d at %d", x.Epoch, x.Start, y.Epoch, y.Start)
		}
	}
	return ""
}

// SequenceContiguous is I4. It is judged where a batch is first seen, on the log
// of who took it from the producer.
type SequenceContiguous struct{}

func (SequenceContiguous) batch(s *Set, a arrival) string {
	x := a.seen
	if x.producer < 0 || x.control || !a.fresh || x.bad {
		return ""
	}
	was := a.m.lastOf(x.producer)
	if was == nil || was.last < a.m.start || s.forgotten(was, x) {
		return ""
	}
	want := int32((int64(was.seq) + int64(was.count)) & 0x7fffffff)
	if x.pepoch != was.pepoch {
		want = 0
	}
	if x.seq != want || x.pepoch < was.pepoch {
		return fmt.Sprintf("b%d writes sequence %d of producer %d (epoch %d) in %v, after sequence %d (epoch %d) in %v",
			a.m.id(), x.seq, x.producer, x.pepoch, x, int64(was.seq)+int64(was.count)-1, was.pepoch, was)
	}
	return ""
}

// forgotten says that a producer was idle for so long that its state may be gone.
func (s *Set) forgotten(was, is *node) bool {
	expiry := model.Millis(s.o.ProducerExpiry.Milliseconds())
	if expiry == 0 {
		expiry = 24 * 60 * 60 * 1000
	}
	return is.time-was.time >= expiry
}

// HWStep is I5 and I11.
type HWStep struct{}

func (HWStep) replica(s *Set, m *mirror) string {
	f, was := &m.now, &m.was
	if m.first {
		return ""
	}
	stays := f.role == partition.Leader && was.role == partition.Leader && f.leadership == was.leadership
	switch {
	case f.marks.HW < was.marks.HW && stays:
		return fmt.Sprintf("the HW of leader b%d goes back from %d to %d", m.id(), was.marks.HW, f.marks.HW)
	case f.marks.HW <= was.marks.HW || !stays || f.epoch != was.epoch:
		return ""
	}
	// Several inputs may lie between two looks. What was true at either end
	// may have been true at the step.
	short := func(f *facts) bool { return len(f.isr) < f.minISR }
	if short(f) && (short(was) || f.steps == was.steps+1) {
		return fmt.Sprintf("b%d raises its HW to %d with ISR %v, the minimum is %d", m.id(), f.marks.HW, f.isr, f.minISR)
	}
	for _, r := range f.remotes {
		if !slices.Contains(f.maximal, r.ID) {
			continue
		}
		q := m.part.mirror(r.ID)
		if r.LEO < f.marks.HW && f.steps == was.steps+1 {
			return fmt.Sprintf("b%d raises its HW to %d, b%d is known at %d", m.id(), f.marks.HW, r.ID, r.LEO)
		}
		if q == nil || q.unread || q.lossy || q.compare || m.stale() || m.part.unclean || q.end >= f.marks.HW {
			continue
		}
		return fmt.Sprintf("b%d raises its HW to %d, b%d is known at %d and ends at %d", m.id(), f.marks.HW, r.ID, r.LEO, q.end)
	}
	return ""
}

// RoleState is I6, I7 and I9.
type RoleState struct{}

func (RoleState) replica(_ *Set, m *mirror) string {
	f, was := &m.now, &m.was
	leads := f.role == partition.Leader
	switch {
	case !m.first && (f.epoch < was.epoch || f.pepoch < was.pepoch):
		return fmt.Sprintf("b%d goes back from leader epoch %d, partition epoch %d to %d, %d", m.id(), was.epoch, was.pepoch, f.epoch, f.pepoch)
	case leads != (f.epochStart != model.UnknownOffset) || f.epochStart > f.marks.LEO:
		return fmt.Sprintf("b%d is a %v whose epoch starts at %d, LEO %d", m.id(), f.role, f.epochStart, f.marks.LEO)
	case !leads && (len(f.remotes) > 0 || f.pending):
		return fmt.Sprintf("b%d is a %v that remembers followers", m.id(), f.role)
	case !leads:
		return ""
	case f.leader != m.id() || !slices.Contains(f.isr, m.id()) || !within(f.isr, f.maximal) || !within(f.maximal, f.all):
		return fmt.Sprintf("leader b%d: leader %d, ISR %v, maximal ISR %v, replicas %v", m.id(), f.leader, f.isr, f.maximal, f.all)
	case !f.pending && len(f.maximal) != len(f.isr):
		return fmt.Sprintf("leader b%d: ISR %v, maximal ISR %v, nothing pending", m.id(), f.isr, f.maximal)
	}
	return ""
}

// within says whether all of a is in b.
func within(a, b []model.BrokerID) bool {
	return !slices.ContainsFunc(a, func(id model.BrokerID) bool { return !slices.Contains(b, id) })
}

// DivergenceEnds is J8: a follower of one leader epoch cuts its log at most once
// for each epoch that the two may differ in.
type DivergenceEnds struct{}

func (DivergenceEnds) replica(_ *Set, m *mirror) string {
	if m.first || m.now.epoch != m.was.epoch || m.now.role != partition.Follower {
		m.rounds = 0
		return ""
	}
	if m.now.marks.LogStart > m.was.marks.LEO {
		m.rounds = 0 // the leader had deleted all that it held, which may happen again
		return ""
	}
	m.rounds += int(m.now.cuts - m.was.cuts)
	epochs := map[model.Epoch]bool{}
	if m.rounds > 2 {
		for key := range m.part.nodes {
			epochs[key.epoch] = true
		}
		if m.rounds > len(epochs)+2 {
			return fmt.Sprintf("b%d cut its log %d times in leader epoch %d, with %d epochs ever", m.id(), m.rounds, m.now.epoch, len(epochs))
		}
	}
	return ""
}

// NoLostWakeup is I32: see Broker.Overdue.
type NoLostWakeup struct{}
