package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// follower is what an observer of a leader knows of one follower, in one leader
// epoch. The leader's own account of who is caught up is not asked.
type follower struct {
	id    model.BrokerID
	leo   model.Offset // that its last fetch told
	heard model.Time   // when that was
	end   model.Offset // where the leader's log ended then, at most
	// caughtUp is when it last had all that the leader had, as R3.10 counts it; it
	// is never later than that. before is what it was at the look before.
	caughtUp, before model.Time
	// level is the latest time at which the leader had no more than it.
	level model.Time
	// late is since when it is to be taken out of the ISR; Never when it is not.
	late model.Time
}

// asks is when a follower last sent a request for all that it has all of, and
// whether this replica is part of that.
type asks struct {
	at    model.Time
	quiet bool
}

// growth says when a log came to end there.
type growth struct {
	at  model.Time
	end model.Offset
}

// goesOn says that the replica leads, and led in the same epoch at the look before.
func (m *mirror) goesOn() bool {
	return !m.first && m.now.role == partition.Leader && m.was.role == partition.Leader && m.now.epoch == m.was.epoch
}

// watch takes in what a leader heard of its followers since the look before.
func (m *mirror) watch() {
	f := &m.now
	if f.role != partition.Leader {
		m.followers, m.grew = nil, nil
		return
	}
	if !m.goesOn() {
		m.followers, m.grew = nil, nil
	}
	if n := len(m.grew); n == 0 || m.grew[n-1].end < f.marks.LEO {
		m.grew = append(m.grew, growth{f.at, f.marks.LEO})
	}
	old := m.followers
	m.followers = make([]follower, 0, len(f.remotes))
	for i := range f.remotes {
		r := &f.remotes[i]
		w := follower{id: r.ID, leo: model.UnknownOffset, heard: partition.Never, caughtUp: partition.Never, level: f.at, late: partition.Never}
		if i := slices.IndexFunc(old, func(w follower) bool { return w.id == r.ID }); i >= 0 {
			w = old[i]
		} else if r.InISR {
			w.caughtUp = f.at // R4.3
		}
		m.followers = append(m.followers, m.hears(w, r))
	}
}

// hears is what is known of a follower after one more look at the leader.
func (m *mirror) hears(w follower, r *partition.RemoteView) follower {
	f := &m.now
	w.before = w.caughtUp
	if r.LastFetch != w.heard || r.LEO != w.leo {
		switch {
		case r.LEO >= f.marks.LEO:
			w.caughtUp = max(w.caughtUp, r.LastFetch)
		case r.LEO >= w.end:
			w.caughtUp = max(w.caughtUp, w.heard)
		}
		w.leo, w.heard, w.end = r.LEO, r.LastFetch, max(w.end, f.marks.LEO)
	}
	if at := m.credited(r); at != partition.Never {
		w.caughtUp, w.heard = max(w.caughtUp, at), max(w.heard, at)
		w.before = w.caughtUp
	}
	level := f.at
	if i := slices.IndexFunc(m.grew, func(g growth) bool { return g.end > r.LEO }); i >= 0 {
		level = m.grew[i].at
	}
	w.level = max(w.level, level)
	return w
}

// credited is until when a follower asked for nothing new while it was quiet and had
// all that there was; Never when it was not quiet.
func (m *mirror) credited(r *partition.RemoteView) model.Time {
	was := &m.was
	i := indexOfRemote(was.remotes, r.ID)
	if !m.goesOn() || i < 0 || i >= len(was.asks) || !was.asks[i].quiet || was.remotes[i].LEO < was.marks.LEO {
		return partition.Never
	}
	if r.LEO < was.marks.LEO {
		return was.asks[i].at // it is on a new disk, and who asked since then is not told
	}
	return m.now.asks[indexOfRemote(m.now.remotes, r.ID)].at // nothing had happened until then
}

func indexOfRemote(remotes []partition.RemoteView, id model.BrokerID) int {
	return slices.IndexFunc(remotes, func(r partition.RemoteView) bool { return r.ID == id })
}

// asks says that a leader has asked for another ISR since the look before.
func (m *mirror) asks() bool {
	f, was := &m.now, &m.was
	return m.goesOn() && f.pending && (!was.pending || f.pepoch != was.pepoch || !slices.Equal(f.proposed, was.proposed))
}

func remoteOf(list []partition.RemoteView, id model.BrokerID) *partition.RemoteView {
	if i := indexOfRemote(list, id); i >= 0 {
		return &list[i]
	}
	return nil
}

// KnownByFetch is R1.10, R3.7 and R3.8: what a leader knows of a follower changes
// only by a fetch of the follower's that it answered well.
type KnownByFetch struct{}

func (KnownByFetch) replica(_ *Set, m *mirror) string {
	if !m.goesOn() {
		return ""
	}
	for i := range m.now.remotes {
		r := &m.now.remotes[i]
		was := remoteOf(m.was.remotes, r.ID)
		if was == nil || r.LEO == was.LEO && r.LogStart == was.LogStart && r.Epoch == was.Epoch {
			continue
		}
		if r.LEO < 0 || r.LastFetch != m.now.at {
			return fmt.Sprintf("b%d knew b%d in [%d,%d) of epoch %d, and knows it in [%d,%d) of epoch %d without a fetch of it",
				m.id(), r.ID, was.LogStart, was.LEO, was.Epoch, r.LogStart, r.LEO, r.Epoch)
		}
	}
	return ""
}

// JoinedByFetch is R5.4 and R5.5: whom a leader asks to take in, it heard of just
// now, within the bounds of a member's log, and it may be one.
type JoinedByFetch struct{}

func (JoinedByFetch) replica(_ *Set, m *mirror) string {
	if !m.asks() {
		return ""
	}
	f, was := &m.now, &m.was
	for i, id := range f.proposed {
		now := remoteOf(f.remotes, id)
		if now == nil || slices.Contains(f.isr, id) {
			continue
		}
		r := *now
		r.Epoch = f.lives[i] // it may have heard of the next life since
		before := r          // the metadata may have changed since it was asked for
		if o := remoteOf(was.remotes, id); o != nil {
			before.Registered, before.Peer = o.Registered, o.Peer
		}
		switch why := barred(&r); {
		case r.LastFetch != f.at:
			return fmt.Sprintf("b%d asks for b%d, which it last heard of %v ago", m.id(), id, f.at.Sub(r.LastFetch))
		case r.LEO < was.marks.HW || r.LEO < f.epochStart:
			return fmt.Sprintf("b%d asks for b%d, which ends at %d; the HW is %d, the epoch starts at %d", m.id(), id, r.LEO, was.marks.HW, f.epochStart)
		case r.LogStart < was.marks.LogStart:
			return fmt.Sprintf("b%d asks for b%d, whose log starts at %d, its own at %d", m.id(), id, r.LogStart, was.marks.LogStart)
		case why != "" && barred(&before) != "":
			return fmt.Sprintf("b%d asks for b%d, which %s", m.id(), id, why)
		}
	}
	return ""
}

// barred says why the metadata that a leader knows forbids a follower in the ISR.
func barred(r *partition.RemoteView) string {
	switch {
	case !r.Registered:
		return "is not registered"
	case r.Peer.Fenced:
		return "is fenced"
	case r.Peer.ShuttingDown:
		return "is stopping"
	case r.Epoch != model.UnknownBrokerEpoch && r.Epoch != r.Peer.Epoch:
		return fmt.Sprintf("it heard of in the epoch %d, the registered one is %d", r.Epoch, r.Peer.Epoch)
	}
	return ""
}

// LeavesByLag is R5.2 with R3.10: whom a leader asks to take out lacks something,
// and had all that there was for the last time longer ago than it may be.
type LeavesByLag struct{}

func (LeavesByLag) replica(s *Set, m *mirror) string {
	if !m.asks() {
		return ""
	}
	f, was := &m.now, &m.was
	for _, id := range f.isr {
		r, before := remoteOf(f.remotes, id), remoteOf(was.remotes, id)
		if r == nil || before == nil || slices.Contains(f.proposed, id) {
			continue
		}
		if f.marks.LEO == was.marks.LEO && r.LEO == f.marks.LEO && before.LEO == r.LEO {
			return fmt.Sprintf("b%d asks to take b%d out, which is at its end %d", m.id(), id, r.LEO)
		}
		i := slices.IndexFunc(m.followers, func(w follower) bool { return w.id == id })
		if lag := f.at.Sub(m.followers[i].before); lag <= s.lagMax() {
			return fmt.Sprintf("b%d asks to take b%d out, which was caught up %v ago", m.id(), id, lag)
		}
	}
	return ""
}

// LaggardsLeave is R5.1 and R5.2: a leader asks to take out who lags for longer
// than it may, by the second look at the latest that it takes at its ISR then.
type LaggardsLeave struct{}

func (LaggardsLeave) replica(s *Set, m *mirror) string {
	f := &m.now
	for i := range m.followers {
		w := &m.followers[i]
		lags := f.serving && !f.pending && slices.Contains(f.isr, w.id) && w.leo != f.marks.LEO && f.at.Sub(w.level) > s.lagMax()
		switch {
		case !lags:
			w.late = partition.Never
		case w.late == partition.Never:
			w.late = f.at
		case f.at.Sub(w.late) > s.lagMax()+slack:
			return fmt.Sprintf("b%d stays in the ISR %v of b%d at %d of %d, %v after the leader had no more", w.id, f.isr, m.id(),
				w.leo, f.marks.LEO, f.at.Sub(w.level))
		}
	}
	return ""
}

// slack is what a leader may take longer for one round of its replicas.
const slack = 100 * time.Millisecond
