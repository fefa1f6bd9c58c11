package group

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// rebalance starts a rebalance, or sees whether the running one is complete.
func (s *Shard) rebalance(g *group, code ReasonCode, member string) {
	s.because(g, code, member)
	if g.state == Preparing {
		s.maybeCompleteJoin(g)
		return
	}
	s.prepare(g)
}

// prepare asks all members to join again. The first rebalance of an empty group
// waits a little for more members to come.
func (s *Shard) prepare(g *group) {
	if g.state == Completing {
		s.refuseSyncs(g, model.ErrRebalanceInProgress)
	}
	s.wheel.Remove(&g.syncTimer)
	g.initial, g.grew = g.state == Empty, false
	g.to(Preparing, s.wall)
	if g.initial {
		delay := s.cfg.InitialDelay
		s.delayInitial(g, delay, max(g.rebalanceTimeout()-delay, 0))
		return
	}
	if g.allJoined() {
		s.completeJoin(g)
		return
	}
	s.after(&g.joinTimer, g.rebalanceTimeout(), func() { s.completeJoin(g) })
}

// delayInitial waits for delay, again and again while members keep coming, but
// no longer than the rebalance timeout.
func (s *Shard) delayInitial(g *group, delay, remaining time.Duration) {
	s.after(&g.joinTimer, delay, func() {
		if !g.grew || remaining == 0 {
			s.completeJoin(g)
			return
		}
		g.grew = false
		s.delayInitial(g, min(s.cfg.InitialDelay, remaining), max(remaining-delay, 0))
	})
}

// maybeCompleteJoin ends the rebalance when nobody is missing any more.
func (s *Shard) maybeCompleteJoin(g *group) {
	if g.state == Preparing && !g.initial && g.allJoined() {
		s.completeJoin(g)
	}
}

// completeJoin begins the next generation with the members that are here.
// Dynamic members that did not rejoin are out; static ones keep their place.
func (s *Shard) completeJoin(g *group) {
	s.wheel.Remove(&g.joinTimer)
	for i := 0; i < len(g.members); {
		if m := g.members[i]; m.join == nil && m.instance == nil {
			s.drop(g, m)
			s.because(g, JoinTimedOut, m.id)
		} else {
			i++
		}
	}
	if len(g.members) > 0 && !g.electJoined() {
		// Only static members, and none of them here: wait until their sessions
		// end or one comes.
		s.after(&g.joinTimer, max(g.rebalanceTimeout(), time.Second), func() { s.completeJoin(g) })
		return
	}
	g.generation++
	g.initial, g.storing, g.unsynced = false, false, 0
	if len(g.members) == 0 {
		s.becomeEmpty(g)
		return
	}
	g.protocol = g.vote()
	g.subscribed = g.subscriptions()
	g.to(Completing, s.wall)
	s.because(g, NewGeneration, g.leader)
	for _, m := range g.members {
		if m.join != nil {
			s.fillJoin(g, m, m.join.resp, m.id == g.leader)
			s.sendJoin(g, m)
		}
		m.isNew, m.owesSync = false, true
		g.unsynced++
		s.expectHeartbeat(g, m, m.sessionTimeout)
	}
	generation := g.generation
	s.after(&g.syncTimer, g.rebalanceTimeout(), func() { s.syncTimedOut(g, generation) })
}

// electJoined keeps the leader if it has joined, or takes the first member that
// has. It returns false when nobody has.
func (g *group) electJoined() bool {
	if l := g.byID[g.leader]; l != nil && l.join != nil {
		return true
	}
	for _, m := range g.members {
		if m.join != nil {
			g.leader = m.id
			return true
		}
	}
	return false
}

// becomeEmpty notes in the log that nobody is left; offsets are kept for their
// retention from now on (KIP-211).
func (s *Shard) becomeEmpty(g *group) {
	g.protocol, g.leader, g.subscribed = "", "", nil
	g.to(Empty, s.wall)
	s.because(g, BecameEmpty, "")
	s.append([]Record{g.record(s.wall, nil)}, nil, nil)
}

// syncTimedOut removes the members that did not ask for their assignment.
func (s *Shard) syncTimedOut(g *group, generation int32) {
	if g.generation != generation || g.state != Completing && g.state != Stable {
		return
	}
	for i := 0; i < len(g.members); {
		if m := g.members[i]; m.owesSync {
			s.drop(g, m)
			s.because(g, SyncTimedOut, m.id)
		} else {
			i++
		}
	}
	s.prepare(g)
}

// expectHeartbeat gives the member until d from now to show up again.
func (s *Shard) expectHeartbeat(g *group, m *member, d time.Duration) {
	s.after(&m.session, d, func() { s.sessionEnded(g, m) })
}

// sessionEnded removes a member that was silent for too long. One with a parked
// request is not silent, unless it never got its id: then its first join is
// given up.
func (s *Shard) sessionEnded(g *group, m *member) {
	if !m.isNew && (m.join != nil || m.sync != nil) {
		return
	}
	s.remove(g, m, SessionEnded)
}

// remove takes a member out and rebalances the others.
func (s *Shard) remove(g *group, m *member, code ReasonCode) {
	s.drop(g, m)
	if g.state == Empty {
		return
	}
	s.rebalance(g, code, m.id)
}
