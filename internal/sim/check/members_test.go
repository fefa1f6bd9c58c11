package check

import (
	"slices"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// led is the sound cluster, in which b1 may say of b2 and b3 that they lag after
// two seconds.
func led() *state {
	s := sound()
	s.o.LagMax = 2 * time.Second
	s.m1.now.serving = true
	s.m1.now.marks.HW, s.m1.now.marks.LSO = 4, 4
	s.m1.was = s.m1.now
	return s
}

// step is one step of b1: it changes what b1 says of itself, at a time in
// milliseconds.
func (s *state) step(ms int, change func(f *facts)) {
	m := s.m1
	m.was = m.now
	m.now.remotes = slices.Clone(m.was.remotes)
	m.now.at = model.Time(0).Add(time.Duration(ms) * time.Millisecond)
	m.now.steps++
	change(&m.now)
	m.watch()
}

// fetches has b2 fetch, and b1 hear of it.
func fetches(f *facts, to model.Offset) {
	f.remotes[0].LEO, f.remotes[0].LastFetch = to, f.at
}

func without(f *facts) { f.pending, f.proposed = true, []model.BrokerID{1, 3} }

func TestWhatIsKnownOfAFollowerIsWhatItFetched(t *testing.T) {
	for why, change := range map[string]func(f *facts){
		"its end is forgotten":           func(f *facts) { f.remotes[0].LEO = model.UnknownOffset },
		"its start is forgotten":         func(f *facts) { f.remotes[0].LogStart = model.UnknownOffset },
		"its end moves by itself":        func(f *facts) { f.remotes[0].LEO = 4 },
		"its life changes by itself":     func(f *facts) { f.remotes[0].Epoch = 9 },
		"a fetch makes its end unknown":  func(f *facts) { fetches(f, model.UnknownOffset) },
		"it changes after a fetch":       func(f *facts) { fetches(f, 4); f.at++ },
		"a fetch, and another's changes": func(f *facts) { fetches(f, 4); f.remotes[1].LEO = 5 },
	} {
		s := led()
		s.step(100, func(f *facts) { fetches(f, 5) })
		if text := s.broken("KnownByFetch"); text != "" {
			t.Fatal(text)
		}
		if s.step(200, change); s.broken("KnownByFetch") == "" {
			t.Errorf("%s, and nobody minds", why)
		}
	}
	s := led()
	s.step(200, func(f *facts) { f.remotes[0].LEO, f.epoch = model.UnknownOffset, 2 })
	if text := s.broken("KnownByFetch"); text != "" {
		t.Errorf("in another epoch: %s", text)
	}
}

// joins has b1 ask for b2, which has just fetched all there is, and returns what
// is wrong with that.
func joins(change func(s *state, f *facts)) string {
	s := led()
	s.m1.now.isr, s.m1.now.maximal = []model.BrokerID{1, 3}, []model.BrokerID{1, 3}
	s.m1.now.marks.LogStart = 1
	s.step(100, func(f *facts) {
		fetches(f, 5)
		f.remotes[0].LogStart = 1
		f.remotes[0].Registered, f.remotes[0].Peer.Epoch = true, 2
		f.pending, f.proposed, f.maximal = true, three, three
		f.lives = []model.BrokerEpoch{1, 2, 1}
		change(s, f)
	})
	return s.broken("JoinedByFetch")
}

func TestWhoIsTakenInHasJustFetched(t *testing.T) {
	if text := joins(func(*state, *facts) {}); text != "" {
		t.Fatal(text)
	}
	for why, change := range map[string]func(s *state, f *facts){
		"it did not fetch":      func(_ *state, f *facts) { f.remotes[0].LastFetch-- },
		"it is below the HW":    func(_ *state, f *facts) { f.remotes[0].LEO = 3 },
		"it is below the epoch": func(_ *state, f *facts) { f.epochStart = 6 },
		"it starts below":       func(_ *state, f *facts) { f.remotes[0].LogStart = 0 },
	} {
		if joins(change) == "" {
			t.Errorf("%s, and nobody minds", why)
		}
	}
}

// The metadata may change right after b1 asked: what it was before counts too.
func TestWhoIsTakenInMayBeAMember(t *testing.T) {
	may := partition.RemoteView{Registered: true, Peer: partition.Peer{Epoch: 2}}
	unknown, fenced, leaves, old := may, may, may, may
	unknown.Registered, fenced.Peer.Fenced, leaves.Peer.ShuttingDown, old.Peer.Epoch = false, true, true, 3
	for _, c := range []struct {
		was, is partition.RemoteView
		ok      bool
	}{
		{may, may, true}, {fenced, may, true}, {may, leaves, true}, {unknown, unknown, false}, {fenced, fenced, false},
		{leaves, leaves, false}, {old, old, false}, {fenced, leaves, false},
	} {
		text := joins(func(s *state, f *facts) {
			s.m1.was.remotes[0].Registered, s.m1.was.remotes[0].Peer = c.was.Registered, c.was.Peer
			f.remotes[0].Registered, f.remotes[0].Peer = c.is.Registered, c.is.Peer
		})
		if (text == "") != c.ok {
			t.Errorf("%+v, then %+v: %q", c.was, c.is, text)
		}
	}
}

// A leader that stood still hears in one turn what the life that it knows of asked
// for, and the next life. What counts is for which one it asks.
func TestWhoIsTakenInMayHaveBegunANewLifeSince(t *testing.T) {
	for asked, ok := range map[model.BrokerEpoch]bool{2: true, 1: false, 3: false} {
		text := joins(func(s *state, f *facts) {
			s.m1.was.remotes[0].Registered, s.m1.was.remotes[0].Peer = true, f.remotes[0].Peer
			f.remotes[0].Epoch, f.lives = 3, []model.BrokerEpoch{1, asked, 1}
		})
		if (text == "") != ok {
			t.Errorf("heard in epoch 3, registered in 2, asked for in %d: %q", asked, text)
		}
	}
}

// B34: who fetches all the time, and is always one fetch behind, does not lag.
func TestOnlyWhoLagsIsTakenOut(t *testing.T) {
	for _, c := range []struct {
		why  string
		at   int
		leo  model.Offset // that b2 fetches after a second, when b1 ends at 6
		then func(f *facts)
		ok   bool
	}{
		{"it had all a second ago", 2000, 6, without, false},
		{"it had all three seconds ago", 4000, 6, func(f *facts) { f.marks.LEO = 7; without(f) }, true},
		{"it is at the end all the time", 9000, 6, without, false},
		{"it had what there was at its first fetch", 2050, 5, without, false},
		{"it had what there was at its first fetch, too long ago", 2150, 5, without, true},
		{"it had less", 1500, 4, without, false},
		{"it had less, and lacks something for two seconds", 2150, 4, without, true},
	} {
		s := led()
		s.m1.now.epoch = 0
		s.step(0, func(f *facts) { f.epoch = 1 }) // all that is known begins here
		s.step(100, func(f *facts) { fetches(f, 5) })
		s.step(500, func(f *facts) { f.marks.LEO = 6 })
		s.step(1000, func(f *facts) { fetches(f, c.leo) })
		s.step(c.at, c.then)
		if text := s.broken("LeavesByLag"); (text == "") != c.ok {
			t.Errorf("%s: %q", c.why, text)
		}
	}
}

func TestWhoIsOneFetchBehindWasCaughtUpAtTheFetchBefore(t *testing.T) {
	for ms, ok := range map[int]bool{2900: false, 3100: true} {
		s := led()
		s.step(100, func(f *facts) { fetches(f, 5) })
		s.step(500, func(f *facts) { f.marks.LEO = 6 })
		s.step(1000, func(f *facts) { fetches(f, 5) })
		s.step(1500, func(f *facts) { f.marks.LEO = 7 })
		s.step(2000, func(f *facts) { fetches(f, 6) })
		s.step(ms, without)
		if text := s.broken("LeavesByLag"); (text == "") != ok {
			t.Errorf("after %d ms: %q", ms, text)
		}
	}
}

func TestWhoAskedWhileNothingHappenedWasCaughtUpThen(t *testing.T) {
	asked := func(f *facts, ms int, quiet bool) {
		at := asks{at: model.Time(0).Add(time.Duration(ms) * time.Millisecond), quiet: quiet}
		f.asks = []asks{at, {at: partition.Never}}
	}
	for ms, ok := range map[int]bool{9900: false, 10100: true} {
		s := led()
		s.step(100, func(f *facts) { fetches(f, 5); asked(f, 100, true) })
		s.step(8500, func(f *facts) { f.marks.LEO = 6; asked(f, 8000, false) })
		s.step(ms, func(f *facts) { without(f); asked(f, 8000, false) })
		if text := s.broken("LeavesByLag"); (text == "") != ok {
			t.Errorf("after %d ms: %q", ms, text)
		}
	}
}

// Two lives of a follower are heard in one turn, the new one on an empty disk: what
// the old one had asked does not count for it.
func TestWhatAnOldLifeAskedIsNoCreditForANewDisk(t *testing.T) {
	for ms, ok := range map[int]bool{9900: false, 10100: true} {
		s := led()
		asked := func(f *facts, at int, quiet bool) {
			f.asks = []asks{{at: model.Time(0).Add(time.Duration(at) * time.Millisecond), quiet: quiet}, {at: partition.Never}}
		}
		s.step(100, func(f *facts) { fetches(f, 5); asked(f, 100, true) })
		s.step(8000, func(f *facts) { asked(f, 8000, true) })
		s.step(ms, func(f *facts) { fetches(f, 0); asked(f, ms, true) })
		s.step(ms+1, func(f *facts) { without(f); asked(f, ms+1, true) })
		if text := s.broken("LeavesByLag"); (text == "") != ok {
			t.Errorf("after %d ms: %q", ms, text)
		}
	}
}

func TestWhoLagsIsTakenOut(t *testing.T) {
	s := led()
	s.step(0, func(f *facts) { f.remotes[1].LEO = 5 })
	s.step(1000, func(f *facts) { f.marks.LEO = 6; f.remotes[1].LEO = 6 })
	lags := func(ms int, change func(f *facts)) string {
		s.step(ms, change)
		return s.broken("LaggardsLeave")
	}
	nothing := func(*facts) {}
	for _, ms := range []int{2900, 3100, 5100} {
		if text := lags(ms, nothing); text != "" {
			t.Fatalf("after %d ms: %s", ms, text)
		}
	}
	if text := lags(5250, func(f *facts) { f.pending = true }); text != "" {
		t.Fatal(text)
	}
	if text := lags(5300, func(f *facts) { f.pending = false }); text != "" {
		t.Fatal(text)
	}
	if lags(7450, nothing) == "" {
		t.Error("it stays, and nobody minds")
	}
	if text := lags(7460, func(f *facts) { fetches(f, 6) }); text != "" {
		t.Error(text)
	}
}
