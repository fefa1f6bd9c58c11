package check

import (
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// attended is a sound state whose leader b1 knows both followers as alive.
func attended() *state {
	s := sound()
	s.m1.now.remotes = []partition.RemoteView{
		{ID: 2, LEO: 5, Epoch: 2, Registered: true, InISR: true, LogStart: 1},
		{ID: 3, LEO: 4, Epoch: 3, Registered: true, InISR: true, LogStart: 2},
	}
	return s
}

// knows has b1 know one of its followers otherwise.
func (s *state) knows(i int, change func(r *partition.RemoteView)) {
	s.m1.now.remotes = slices.Clone(s.m1.now.remotes)
	change(&s.m1.now.remotes[i])
	DeletedEverywhere{}.replica(s.Set, s.m1)
}

// hears has the clients' events checked.
func (s *state) hears(t *testing.T) string {
	t.Helper()
	v, _ := s.hear().(*Violation)
	if v == nil {
		return ""
	}
	return v.Invariant
}

// starts has the logs of some replicas start at o.
func starts(o model.Offset, ms ...*mirror) {
	for _, m := range ms {
		m.now.marks.LogStart = o
	}
}

func TestADeletionIsOfAllThatAreAlive(t *testing.T) {
	for _, c := range []struct {
		what   string
		rule   string
		out    Outcome
		change func(s *state)
	}{
		{"nobody else deletes", "DeletedEverywhere", OK, func(*state) {}},
		{"one of two does not", "DeletedEverywhere", OK, func(s *state) { starts(3, s.m2) }},
		{"all do", "", OK, func(s *state) { starts(3, s.m2, s.m3) }},
		{"it fails", "", Failed, func(*state) {}},
		{"nobody knows", "", Unknown, func(*state) {}},
		{"one is fenced for a moment", "", OK, func(s *state) {
			starts(3, s.m2)
			s.knows(1, func(r *partition.RemoteView) { r.Peer.Fenced = true })
			s.knows(1, func(r *partition.RemoteView) { r.Peer.Fenced = false })
		}},
		{"one is taken away and given back", "", OK, func(s *state) { starts(3, s.m2); s.m3.p = core(3) }},
		{"one is restarted", "", OK, func(s *state) { starts(3, s.m2); s.seats[2].life++ }},
		{"one is cut", "", OK, func(s *state) { starts(3, s.m2); s.m3.now.cuts++ }},
		{"another leadership", "", OK, func(s *state) { s.m1.now.leadership++ }},
	} {
		s := attended()
		op := s.h.DeletedRecords("admin", tpid, 3)
		if got := s.hears(t); got != "" {
			t.Fatalf("%s breaks as it begins", got)
		}
		c.change(s)
		s.h.DeleteReturned(op, c.out)
		if got := s.hears(t); got != c.rule {
			t.Errorf("%s: found %q, not %q", c.what, got, c.rule)
		}
		if len(s.clients.deletions)+len(s.m1.deletions) > 0 {
			t.Errorf("%s: the deletion is kept", c.what)
		}
	}
}

// A replica that was given back holds nothing yet, whatever its leader remembers.
func TestADeletionIsNotOfWhoHoldsNothing(t *testing.T) {
	s := attended()
	starts(3, s.m2)
	s.m3.now.marks = partition.Marks{}
	op := s.h.DeletedRecords("admin", tpid, 3)
	s.hears(t)
	s.h.DeleteReturned(op, OK)
	if got := s.hears(t); got != "" {
		t.Errorf("found %q", got)
	}
}

func TestAHintNamesWhoHoldsTheOffset(t *testing.T) {
	for _, c := range []struct {
		what   string
		rule   string
		offset model.Offset
		near   model.BrokerID
		change func(s *state)
	}{
		{"who holds it", "", 3, 3, func(*state) {}},
		{"the log starts above", "HintFits", 1, 3, func(*state) {}},
		{"it starts above by now", "", 1, 2, func(s *state) { s.knows(0, func(r *partition.RemoteView) { r.LogStart = 2 }) }},
		{"the log ends below", "HintFits", 5, 3, func(*state) {}},
		{"it reached so far meanwhile", "", 5, 3, func(s *state) { s.knows(1, func(r *partition.RemoteView) { r.LEO = 5 }) }},
		{"no replica at all", "HintFits", 3, 4, func(*state) {}},
		{"it left the ISR meanwhile", "", 3, 3, func(s *state) {
			s.m1.now.pepoch++
			s.knows(1, func(r *partition.RemoteView) { r.InISR = false })
		}},
		{"another life", "", 1, 3, func(s *state) { s.knows(1, func(r *partition.RemoteView) { r.Epoch++ }) }},
		{"another leadership", "", 1, 3, func(s *state) { s.m1.now.leadership++ }},
	} {
		s := attended()
		s.h.FetchAsked("reader", tpid, c.offset)
		if got := s.hears(t); got != "" {
			t.Fatalf("%s breaks as it begins", got)
		}
		c.change(s)
		s.h.Hinted("reader", tpid, c.offset, 1, c.near)
		if got := s.hears(t); got != c.rule {
			t.Errorf("%s: found %q, not %q", c.what, got, c.rule)
		}
	}
	s := attended()
	s.knows(1, func(r *partition.RemoteView) { r.InISR = false })
	s.h.FetchAsked("reader", tpid, 3)
	s.h.Hinted("reader", tpid, 3, 1, 3)
	if got := s.hears(t); got != "HintFits" {
		t.Errorf("a hint to who is not in the ISR: found %q", got)
	}
}
