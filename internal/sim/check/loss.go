package check

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// candidate says whether a broker may be elected without loss once it runs.
func (p *part) candidate(id model.BrokerID) bool {
	return p.truth != nil && (slices.Contains(p.truth.ISR, id) || slices.Contains(p.truth.ELR, id))
}

func (p *part) mirror(id model.BrokerID) *mirror {
	for _, m := range p.mirrors {
		if m.id() == id {
			return m
		}
	}
	return nil
}

// effectiveMinISR is the smallest ISR that may commit (R1.17).
func (p *part) effectiveMinISR() int {
	if p.truth == nil {
		return p.minISR
	}
	return min(p.minISR, len(p.truth.Replicas))
}

// vacate notes that nobody hosts the replicas of a broker that does not run.
func (s *Set) vacate(t *seat) {
	for _, m := range t.mirrors {
		m.p = nil
	}
	for _, m := range t.order {
		s.touch(m.part)
	}
	t.order, t.running = nil, false
}

// ended notes how a life ended.
func (s *Set) ended(st stop) error {
	at := slices.IndexFunc(s.seats, func(t *seat) bool { return t.id == st.id })
	if at < 0 || st.life < s.seats[at].life {
		return nil
	}
	t := s.seats[at]
	// A life that was over before it registered leaves the clean end of the last one.
	t.dirty = st.how != Orderly && (t.dirty || st.life == t.life && t.epoch >= 0 && s.serves(t.id))
	for _, p := range s.list {
		m := t.mirrors[p.id]
		if m == nil {
			continue
		}
		// What an earlier life lost, which nobody has looked at, counts as well.
		m.exposed = p.candidate(t.id) || m.compare && m.exposed
		m.stopped, m.compare = worse(st.how, m), true
		m.removed = m.removed || p.truth != nil && !slices.Contains(p.truth.Replicas, t.id)
		if st.how == Wiped && len(m.batches) > 0 {
			gone := m.batches
			m.shorten(0)
			m.end, m.start = 0, 0
			s.noteLoss(m)
			if err := s.checkGone(p, m, gone); err != nil {
				return err
			}
		}
	}
	s.vacate(t)
	return nil
}

// serves says that a broker is in the midst of its life. One that leaves may have
// written down already that it ends in order.
func (s *Set) serves(id model.BrokerID) bool {
	b := s.truth.Broker(id)
	return b != nil && !b.Fenced && !b.InControlledShutdown
}

// worse is how, unless a life before, whose log was not looked at again, ended
// worse.
func worse(how How, m *mirror) How {
	if m.compare {
		return max(how, m.stopped)
	}
	return how
}

// compared judges what a new life found of the log that the last one left.
func (s *Set) compared(m *mirror, gone []*node, recovered model.Offset, cutting bool) error {
	how, removed := m.stopped, m.removed
	m.stopped, m.removed = Orderly, false
	rotten := slices.ContainsFunc(m.batches, func(n *node) bool { return n.bad })
	if len(gone) == 0 && !rotten {
		m.exposed = false
		return nil
	}
	if removed { // nothing was lost but what was to be deleted
		m.lossy, m.exposed = true, false
		return nil
	}
	text := ""
	switch {
	case cutting || m.part.deleted:
	case how <= Killed && len(gone) > 0:
		text = fmt.Sprintf("b%d lacks %v after a restart, though nothing took it", m.id(), gone[0])
	case how == PowerCut && len(gone) > 0 && gone[0].last < recovered:
		text = fmt.Sprintf("b%d lacks %v after a power cut, its recovery point was %d", m.id(), gone[0], recovered)
	}
	s.noteLoss(m)
	m.exposed = false
	if text != "" && s.rules.has(KeptOnDisk{}) {
		return s.violated(KeptOnDisk{}, m.part, text)
	}
	return nil
}

// noteLoss counts a replica that lost records. Once as many of those that might
// be elected lost some as min.insync.replicas asks for, committed records may be
// gone by right.
func (s *Set) noteLoss(m *mirror) {
	p := m.part
	m.lossy = true
	m.hit = m.hit || m.exposed || p.candidate(m.id())
	hits := 0
	for _, q := range p.mirrors {
		if q.hit {
			hits++
		}
	}
	if hits >= p.effectiveMinISR() {
		p.unclean = true
	}
}

// sweep looks for replicas that a broker hosts no more. If the metadata took
// them away, their logs are deleted.
func (s *Set) sweep(t *seat) error {
	for _, p := range s.list {
		m := t.mirrors[p.id]
		if m == nil || m.p == nil || m.round == s.round {
			continue
		}
		if m.leads() {
			// It may have committed and answered in the step that took it away.
			p.highest = max(p.highest, m.now.marks.LEO)
		}
		m.p = nil
		s.touch(p)
		if t.image == nil || hosts(t.image, p.id, t.id) {
			continue
		}
		gone := m.batches
		m.shorten(0)
		m.end, m.start = 0, 0
		m.log, m.lossy = nil, m.lossy || len(gone) > 0
		if t.image.TopicByID(p.id.TopicID) == nil {
			continue // its deletion may not have reached the controllers we know of
		}
		if err := s.checkGone(p, m, gone); err != nil {
			return err
		}
	}
	return nil
}

func hosts(i *image.Image, id model.TopicIDPartition, broker model.BrokerID) bool {
	p := i.Partition(id.TopicID, id.Partition)
	return p != nil && slices.Contains(p.Replicas, broker)
}

// noteHW extends the committed records when a leader raised its HW.
func (s *Set) noteHW(m *mirror) {
	p, hw := m.part, m.now.marks.HW
	leads := m.now.role == partition.Leader
	if !leads && m.was.role != partition.Leader {
		return // a leader may commit with its last append and follow at once
	}
	p.highest = max(p.highest, hw)
	if hw <= p.commitEnd || p.unclean || m.unread {
		return
	}
	for _, n := range m.batches[find(m.batches, p.commitEnd):] {
		if n.last >= hw {
			break
		}
		if n.base >= p.commitEnd {
			p.commits = append(p.commits, n)
			p.commitEnd = n.last + 1
		}
	}
}

// elected judges an election: of one who was no candidate and lacks what was
// committed, it may lose records by right; also when somebody else still believes
// to lead, who may commit alone (R6.19).
func (s *Set) elected(p *part, old, new *image.Partition) {
	if old != nil && new.PartitionEpoch > old.PartitionEpoch+1 && new.LeaderEpoch > old.LeaderEpoch+1 && gained(old, new) {
		p.unclean = p.unclean || len(p.commits) > 0 // elected in between, and by whom nobody saw
	}
	if old == nil || new.Leader == model.NoBroker || new.Leader == old.Leader ||
		slices.Contains(old.ISR, new.Leader) || slices.Contains(old.ELR, new.Leader) ||
		!new.Recovering && new.PartitionEpoch == old.PartitionEpoch+1 {
		return
	}
	m := p.mirror(new.Leader)
	if m == nil {
		p.unclean = p.unclean || len(p.commits) > 0
		return
	}
	if _, lacks := m.lacks(p.commitEnd); lacks || m.compare {
		p.unclean = true
	}
	for _, q := range p.mirrors {
		if q != m && q.leads() {
			p.unclean = true
		}
	}
}

// gained says that somebody may be elected who might not before.
func gained(old, new *image.Partition) bool {
	for _, id := range append(slices.Clone(new.ISR), new.ELR...) {
		if !slices.Contains(old.ISR, id) && !slices.Contains(old.ELR, id) {
			return true
		}
	}
	return false
}

// joined notes who came into the ISR: from here on it is held to what it should
// have.
func (s *Set) joined(p *part, old, new *image.Partition) {
	for _, id := range new.ISR {
		if old != nil && slices.Contains(old.ISR, id) {
			continue
		}
		if m := p.mirror(id); m != nil {
			m.lossy, m.hit = false, false
			m.exposed = m.exposed || m.compare
		}
	}
	for _, m := range p.mirrors {
		if !slices.Contains(new.Replicas, m.id()) {
			m.removed = m.removed || m.compare
		}
	}
}

// losses is how many replicas lack what they lost, whether or not they might have
// been elected.
func (p *part) losses() (n int) {
	for _, m := range p.mirrors {
		if m.lossy {
			n++
		}
	}
	return n
}

// checkGone demands that what leaves one log is on another one, if it was
// committed (I26), as long as fewer replicas lost something than
// min.insync.replicas asks for.
func (s *Set) checkGone(p *part, m *mirror, gone []*node) error {
	if len(gone) == 0 || p.losses() >= p.effectiveMinISR() || p.unclean || p.deleted || !s.rules.has(NoGlobalLoss{}) {
		return nil
	}
	for _, n := range gone {
		if n.last >= p.commitEnd || holding(p.commits, n.base) != n || n.last < m.start || n.last < p.deletes {
			continue
		}
		found := slices.ContainsFunc(p.mirrors, func(q *mirror) bool {
			return holding(q.batches, n.base) == n || q.start > n.last
		})
		if !found {
			return s.violated(NoGlobalLoss{}, p, fmt.Sprintf("the committed batch %v was on b%d last", n, m.id()))
		}
	}
	return nil
}
