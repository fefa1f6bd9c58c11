package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// The rules here say when a leader has to move its high watermark, and when it
// may not, from what it heard of its followers and from what the metadata tells
// it of their brokers.

// lagMax is how long a follower may lag.
func (s *Set) lagMax() time.Duration {
	if s.o.LagMax == 0 {
		return 30 * time.Second
	}
	return s.o.LagMax
}

// mayMove says that a leader serves and has enough replicas in its ISR.
func (f *facts) mayMove() bool {
	return f.role == partition.Leader && f.serving && len(f.isr) >= f.minISR
}

// eligible says that the metadata allows a follower in the ISR (R5.5), but for
// the life that fetched last.
func eligible(r *partition.RemoteView) bool {
	return r.LEO >= 0 && r.Registered && !r.Peer.Fenced && !r.Peer.ShuttingDown
}

// caughtUp says that a follower had all that the leader had, at most so long ago.
func (f *facts) caughtUp(r *partition.RemoteView, ago time.Duration) bool {
	return r.LEO == f.marks.LEO || f.at.Sub(r.LastCaughtUp) <= ago
}

// candidate is the smallest end among the replicas that may count, and the lowest
// segment in which one of them stands there; -1 when one's place is not known. Who
// was about to join still counts for a period of the leader's own check after its
// grace is over (R3.12).
func (s *Set) candidate(f *facts) (to, segment model.Offset, by model.BrokerID) {
	to, segment, by = f.marks.LEO, f.marks.LEO, f.leader
	for i := range f.remotes {
		r := &f.remotes[i]
		if !slices.Contains(f.maximal, r.ID) && !(eligible(r) && f.caughtUp(r, s.lagMax()*3/2)) {
			continue
		}
		switch {
		case r.LEO < to:
			to, segment, by = r.LEO, r.Pos.Segment, r.ID
		case r.LEO == to:
			segment = min(segment, r.Pos.Segment)
		}
	}
	return to, segment, by
}

// HWTried is R3.12 and R3.22: a leader's HW stands where the slowest replica
// stands that may count.
type HWTried struct{}

func (HWTried) replica(s *Set, m *mirror) string {
	f := &m.now
	if !f.mayMove() {
		return ""
	}
	if to, _, by := s.candidate(f); to > f.marks.HW {
		return fmt.Sprintf("leader b%d leaves its HW at %d, though b%d is known at %d and nobody that counts below: ISR %v, counts with %v, LEO %d",
			m.id(), f.marks.HW, by, to, f.isr, f.maximal, f.marks.LEO)
	}
	return ""
}

// HWPlace is the other half of R3.20: once all that count are known to stand at
// the HW in a later segment, the HW lies there too.
type HWPlace struct{}

func (HWPlace) replica(s *Set, m *mirror) string {
	f := &m.now
	if !f.mayMove() {
		return ""
	}
	if to, segment, by := s.candidate(f); to == f.marks.HW && by != f.leader && segment > f.hwPos.Segment {
		return fmt.Sprintf("leader b%d has its HW %d in segment %d, b%d and all that count stand there in segment %d",
			m.id(), f.marks.HW, f.hwPos.Segment, by, segment)
	}
	return ""
}

// HWWaits is R3.21: the HW does not run away from a follower that is about to
// join, known below it before and after.
type HWWaits struct{}

func (HWWaits) replica(s *Set, m *mirror) string {
	f, was := &m.now, &m.was
	if m.first || f.role != partition.Leader || was.role != partition.Leader || f.leadership != was.leadership ||
		f.epoch != was.epoch || f.marks.HW <= was.marks.HW || f.marks.LogStart > was.marks.LogStart {
		return ""
	}
	for i := range f.remotes {
		r := &f.remotes[i]
		j := slices.IndexFunc(was.remotes, func(o partition.RemoteView) bool { return o.ID == r.ID })
		if j < 0 || slices.Contains(f.maximal, r.ID) || slices.Contains(was.maximal, r.ID) {
			continue
		}
		o := &was.remotes[j]
		if sure(r) && sure(o) && max(r.LEO, o.LEO) < f.marks.HW && f.at.Sub(o.LastCaughtUp) <= s.lagMax() {
			return fmt.Sprintf("leader b%d raises its HW to %d, away from b%d, which is known at %d and was caught up %v ago",
				m.id(), f.marks.HW, r.ID, r.LEO, f.at.Sub(r.LastCaughtUp))
		}
	}
	return ""
}

// sure is eligible with a last fetch of the present life.
func sure(r *partition.RemoteView) bool {
	return eligible(r) && (r.Epoch == model.UnknownBrokerEpoch || r.Epoch == r.Peer.Epoch)
}
