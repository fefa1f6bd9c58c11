package controller

import (
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// session is what the active controller knows of a broker beyond the log. It is
// lost with the controller, which costs the broker nothing but time.
type session struct {
	epoch model.BrokerEpoch
	last  model.Time // when it was last heard of, or when this controller took over
	// heard: it has sent this controller something. gone: the connection of its
	// heartbeats has ended and nothing came since (R13.6).
	heard, gone bool
	offset      model.Offset // highest metadata offset it reported, UnknownOffset if none
	// shutdown is the offset that every active broker must report before this
	// one, in controlled shutdown, may stop; UnknownOffset outside of it.
	shutdown model.Offset
}

func newSession(epoch model.BrokerEpoch, now model.Time) *session {
	return &session{epoch: epoch, last: now, offset: model.UnknownOffset, shutdown: model.UnknownOffset}
}

// touch notes a sign of life.
func (ss *session) touch(now model.Time) { ss.last, ss.heard, ss.gone = now, true, false }

// session returns the session of a registered broker.
func (s *State) session(b *image.Broker, now model.Time) *session {
	ss := s.sessions[b.ID]
	if ss == nil || ss.epoch != b.Epoch {
		ss = newSession(b.Epoch, now)
		s.sessions[b.ID] = ss
	}
	return ss
}

// LastHeard says when the registered life of a broker was last heard of, and
// whether this controller heard of it at all.
func (s *State) LastHeard(b *image.Broker) (at model.Time, heard bool) {
	if ss := s.sessions[b.ID]; ss != nil && ss.epoch == b.Epoch {
		return ss.last, ss.heard
	}
	return 0, false
}

// timed reports whether the silence of a broker counts. The broker of this very
// process is not timed: whatever stops it stops the clock that would judge it.
func (s *State) timed(b *image.Broker) bool { return !b.Fenced && b.ID != s.cfg.NodeID }

// stalest returns the broker whose session runs out first, and when; nil if no
// session is running.
func (s *State) stalest(now model.Time) (*image.Broker, model.Time) {
	var oldest *image.Broker
	var at model.Time
	for _, b := range s.img.Brokers() {
		if !s.timed(b) {
			continue
		}
		if last := s.session(b, now).last; oldest == nil || last < at {
			oldest, at = b, last
		}
	}
	return oldest, at.Add(s.cfg.SessionTimeout)
}

// Tick does what is due at c.Now: one stale broker is fenced per call, leaders
// are balanced, leaderless partitions looked at, silent brokers probed. Call it
// again, after the replay, whenever NextDeadline is not after now.
func (s *State) Tick(c Call) Result {
	d := s.decide(c)
	if b, at := s.stalest(c.Now); b != nil && at <= c.Now {
		silence := c.Now.Sub(s.sessions[b.ID].last)
		d.fence(b, Reason{Code: ReasonSilent, Broker: b.ID, Epoch: b.Epoch, Silence: silence})
		return d.result(nil)
	}
	if !s.probed && s.since.Add(s.cfg.ProbeAfter) <= c.Now {
		s.probed = true
		d.res.Probes = s.silent(c.Now)
	}
	switch {
	case s.nextRevive <= c.Now:
		if !d.revive(maxElections) {
			s.nextRevive = c.Now.Add(s.cfg.UncleanInterval)
		}
	case s.cfg.AutoRebalance && s.nextRebalance <= c.Now:
		if !d.rebalance(maxElections) {
			s.nextRebalance = c.Now.Add(s.cfg.RebalanceInterval)
		}
	}
	return d.result(nil)
}

// NextDeadline says when Tick has something to do.
func (s *State) NextDeadline() model.Time {
	next := s.nextRevive
	if s.cfg.AutoRebalance {
		next = min(next, s.nextRebalance)
	}
	if !s.probed {
		next = min(next, s.since.Add(s.cfg.ProbeAfter))
	}
	if b, at := s.stalest(s.since); b != nil {
		next = min(next, at)
	}
	return next
}

// silent lists the brokers that this controller has not heard of since it took
// over.
func (s *State) silent(now model.Time) []Probe {
	var out []Probe
	for _, b := range s.img.Brokers() {
		if s.timed(b) && !s.session(b, now).heard && !b.InControlledShutdown {
			out = append(out, probe(b))
		}
	}
	return out
}

func probe(b *image.Broker) Probe {
	return Probe{Broker: b.ID, Epoch: b.Epoch, Endpoints: b.Endpoints}
}

// Disconnected notes that the connection on which a broker sent its latest
// heartbeat has ended; the end of an older one says nothing. True: dial it as
// the probe says (R13.6).
func (s *State) Disconnected(now model.Time, broker model.BrokerID, epoch model.BrokerEpoch) (Probe, bool) {
	b := s.img.Broker(broker)
	if b == nil || b.Epoch != epoch || !s.cfg.LivenessProbe {
		return Probe{}, false
	}
	s.session(b, now).gone = true
	if b.Fenced || b.InControlledShutdown {
		return Probe{}, false
	}
	return probe(b), true
}

// ProbeRefused fences a broker whose listener refused the dial: the process is
// gone. It does nothing if the broker has registered again or has been heard of
// since the probe was asked for (R13.6).
func (s *State) ProbeRefused(c Call, broker model.BrokerID, epoch model.BrokerEpoch) Result {
	d := s.decide(c)
	b := s.img.Broker(broker)
	if b == nil || b.Epoch != epoch || b.Fenced || !s.cfg.LivenessProbe {
		return d.result(nil)
	}
	if ss := s.session(b, c.Now); ss.gone || !ss.heard {
		d.fence(b, Reason{Code: ReasonGone, Broker: broker, Epoch: epoch})
	}
	return d.result(nil)
}

// alive reports whether the session of b keeps another incarnation out (R6.14).
func (s *State) alive(b *image.Broker, now model.Time) bool {
	if b.Fenced {
		return false
	}
	ss := s.session(b, now)
	if b.ID == s.cfg.NodeID && !ss.heard {
		return false // an earlier life of this very process
	}
	return !ss.gone && now.Sub(ss.last) < s.cfg.SessionTimeout
}
