package check

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// about runs one rule over the leader of a sound state that was changed.
func about(r replicaRule, change func(s *state)) string {
	s := sound()
	s.m1.now.serving = true
	s.m1.now.remotes = slices.Clone(s.m1.now.remotes)
	for i := range s.m1.now.remotes {
		r := &s.m1.now.remotes[i]
		r.Registered, r.Peer.Epoch, r.Pos = true, r.Epoch, model.Position{Segment: 0, Byte: 9}
	}
	s.m1.was.remotes = slices.Clone(s.m1.now.remotes)
	change(s)
	return r.replica(s.Set, s.m1)
}

// demand says whether a rule minds.
func demand(t *testing.T, name, what, text string, minds bool) {
	t.Helper()
	if (text != "") != minds {
		t.Errorf("%s: %s: %q", name, what, text)
	}
}

// Somebody outside the ISR holds the HW while it is about to join, and no longer.
func TestTheHWIsTriedWhenItIsFree(t *testing.T) {
	leaves := func(s *state) { s.m1.now.isr, s.m1.now.maximal = three[:2], three[:2] }
	at := func(ago time.Duration) func(s *state) {
		return func(s *state) { leaves(s); s.m1.now.at = model.Time(ago) }
	}
	for _, c := range []struct {
		what   string
		minds  bool
		change func(s *state)
	}{
		{"a member holds it", false, func(*state) {}},
		{"who was about to join holds it", false, leaves},
		{"its grace is over, the next check is to come", false, at(45 * time.Second)},
		{"that is over, too", true, at(46 * time.Second)},
		{"it is fenced", true, func(s *state) { leaves(s); s.m1.now.remotes[1].Peer.Fenced = true }},
		{"it is stopping", true, func(s *state) { leaves(s); s.m1.now.remotes[1].Peer.ShuttingDown = true }},
		{"a new leader is not safe yet", false, func(s *state) { at(time.Hour)(s); s.m1.now.serving = false }},
		{"too few are in the ISR", false, func(s *state) { at(time.Hour)(s); s.m1.now.minISR = 3 }},
	} {
		demand(t, "HWTried", c.what, about(HWTried{}, c.change), c.minds)
	}
}

func TestTheHWHasAPlace(t *testing.T) {
	all := func(segment model.Offset) func(s *state) {
		return func(s *state) {
			for i := range s.m1.now.remotes {
				s.m1.now.remotes[i].LEO, s.m1.now.remotes[i].Pos.Segment = 4, segment
			}
			s.m1.now.hwPos = model.Position{Segment: 0, Byte: 99}
		}
	}
	demand(t, "HWPlace", "the segment of all", about(HWPlace{}, all(0)), false)
	demand(t, "HWPlace", "all stand in a later segment", about(HWPlace{}, all(4)), true)
	demand(t, "HWPlace", "one is not known to", about(HWPlace{}, func(s *state) {
		all(4)(s)
		s.m1.now.remotes[0].Pos = model.UnknownPosition
	}), false)
}

func TestTheHWDoesNotRunAway(t *testing.T) {
	runs := func(s *state) {
		s.m1.now.isr, s.m1.now.maximal, s.m1.now.marks.HW = three[:2], three[:2], 5
		s.m1.was.isr, s.m1.was.maximal, s.m1.was.role = three[:2], three[:2], partition.Leader
	}
	for _, c := range []struct {
		what   string
		minds  bool
		change func(s *state)
	}{
		{"the HW stays", false, func(s *state) { s.m1.now.marks.HW = s.m1.was.marks.HW }},
		{"it runs away from b3", true, func(*state) {}},
		{"b3 lags", false, func(s *state) { s.m1.now.at = model.Time(31 * time.Second) }},
		{"b3 is known there by now", false, func(s *state) { s.m1.now.remotes[1].LEO = 5 }},
		{"b3 was fenced just before", false, func(s *state) { s.m1.was.remotes[1].Peer.Fenced = true }},
		{"b3 is another life", false, func(s *state) { s.m1.now.remotes[1].Peer.Epoch++ }},
		{"b3 was never heard of", false, func(s *state) { s.m1.now.remotes[1].LEO = model.UnknownOffset }},
		{"b3 was a member", false, func(s *state) { s.m1.was.maximal = three }},
	} {
		demand(t, "HWWaits", c.what, about(HWWaits{}, func(s *state) { runs(s); c.change(s) }), c.minds)
	}
}

func TestAcksAllNeedsTheMinimum(t *testing.T) {
	for _, c := range []struct {
		what      string
		acks      int8
		isr, was  []model.BrokerID
		partition model.PartitionEpoch
		minds     bool
	}{
		{"too few for acks=all", -1, three[:1], three[:1], 5, true},
		{"too few for acks=1", 1, three[:1], three[:1], 5, false},
		{"enough by now", -1, three[:2], three[:1], 5, false},
		{"enough before", -1, three[:1], three[:2], 5, false},
		{"who knows what was between", -1, three[:1], three[:1], 4, false},
	} {
		text := about(EnoughToWrite{}, func(s *state) {
			s.h.ProduceCalled(Produce{Client: "p", TP: tpid, Acks: c.acks, Values: []string{"e"}})
			s.m1.was.role, s.m1.was.minISR, s.m1.was.pepoch = partition.Leader, 2, c.partition
			s.m1.now.isr, s.m1.was.isr, s.m1.was.next, s.m1.now.next = c.isr, c.was, 4, 5
		})
		demand(t, "EnoughToWrite", c.what, text, c.minds)
	}
}
