package history

import (
	"strings"
	"testing"
	"time"
)

// story plays a history of one partition and returns the broken promises.
type story struct {
	*History
	p    *Partition
	lane *Lane
	keys []Key
}

func newStory(acks Acks) *story {
	h := New(time.Now().Add(-time.Minute))
	p := h.Partition("t", 0, acks)
	return &story{History: h, p: p, lane: p.Lane(7)}
}

// write sends records whose acknowledgements name the offsets in turn.
func (s *story) write(offsets ...int64) {
	for _, o := range offsets {
		k := s.lane.Begin()
		s.keys = append(s.keys, k)
		s.lane.Acked(k, o)
		s.tick()
	}
}

// tick lets the next stamp be a later one.
func (s *story) tick() {
	for now := s.Now(); s.Now() == now; {
	}
}

// log reads the whole partition, all of one epoch; -1 is a record of nobody.
func (s *story) log(ns ...int) {
	r := s.p.Reader("final", 0)
	for o, n := range ns {
		value := []byte("foreign")
		if n >= 0 {
			value = keyOf(7, n).Value()
		}
		r.Saw(int64(o), 3, value)
	}
	s.p.End(int64(len(ns)))
}

func (s *story) expect(t *testing.T, want ...Property) {
	t.Helper()
	s.Check()
	_, list := s.Verdict.Violations()
	got := map[Property]bool{}
	var words []string
	for _, v := range list {
		got[v.Property] = true
		words = append(words, string(v.Property)+": "+v.Text)
	}
	for _, p := range want {
		if !got[p] {
			t.Errorf("no violation of %s was found", p)
		}
		delete(got, p)
	}
	if len(got) > 0 {
		t.Errorf("found more than %v:\n%s", want, strings.Join(words, "\n"))
	}
}

func TestALogOfEverythingOnceInOrderPasses(t *testing.T) {
	s := newStory(AcksAll)
	s.write(0, 1, 2)
	s.log(0, 1, 2)
	s.expect(t)
}

func TestALostRecordIsFound(t *testing.T) {
	s := newStory(AcksAll)
	s.write(0, 1, 2)
	s.log(0, 1)
	s.expect(t, ExactlyOnce)
}

func TestARecordWrittenTwiceIsFound(t *testing.T) {
	s := newStory(AcksAll)
	s.write(0, 1, 2)
	s.log(0, 1, 2, 1)
	s.expect(t, ExactlyOnce)
}

func TestRecordsOutOfOrderAreFound(t *testing.T) {
	s := newStory(AcksAll)
	s.write(0, 2, 1)
	s.log(0, 2, 1)
	s.expect(t, ProducerOrder, Linear)
}

func TestAnAcknowledgementOfAnotherOffsetIsFound(t *testing.T) {
	s := newStory(AcksAll)
	s.write(0, 5)
	s.log(0, 1)
	s.expect(t, ExactlyOnce)
}

func TestARefusedRecordMayBeThereOrNot(t *testing.T) {
	s := newStory(AcksAll)
	s.write(0)
	s.lane.Failed(s.lane.Begin())
	s.lane.Failed(s.lane.Begin())
	s.log(0, 2)
	s.expect(t)
}

func TestARecordThatNobodyWroteIsFound(t *testing.T) {
	s := newStory(AcksAll)
	s.write(0)
	s.log(0, -1)
	s.expect(t, Authentic, Contiguous)
	s = newStory(AcksAll)
	s.write(0)
	s.log(0, 1)
	s.expect(t, Authentic)
}

func TestAReadThatChangesIsFound(t *testing.T) {
	s := newStory(AcksNone)
	s.write(-1, -1, -1)
	s.p.Reader("early", -1).Saw(1, 3, s.keys[2].Value())
	s.log(0, 1, 2)
	s.expect(t, Repeatable)
}

func TestAReadThatTheLogHasNotIsFound(t *testing.T) {
	s := newStory(AcksNone)
	s.write(-1, -1)
	r := s.p.Reader("early", 0)
	r.Saw(0, 3, s.keys[0].Value())
	r.Saw(1, 3, s.keys[1].Value())
	s.log(0)
	s.expect(t, Committed)
}

func TestASkippedOrRepeatedOffsetIsFound(t *testing.T) {
	for _, offsets := range [][]int64{{0, 2}, {0, 1, 0}} {
		s := newStory(AcksAll)
		s.write(0, 1, 2)
		r := s.p.Reader("jumpy", 0)
		for _, o := range offsets {
			r.Saw(o, 3, s.keys[o].Value())
		}
		s.log(0, 1, 2)
		s.expect(t, Contiguous)
	}
}

func TestAWriteSentAfterAnAcknowledgedOneLiesBehindIt(t *testing.T) {
	s := newStory(AcksLeader)
	other := s.p.Lane(8)
	s.write(1)
	k := other.Begin()
	other.Acked(k, 0)
	r := s.p.Reader("final", 0)
	r.Saw(0, 3, k.Value())
	r.Saw(1, 3, s.keys[0].Value())
	s.p.End(2)
	s.expect(t, Linear)
}

func TestALossOfAcksOneNeedsAChangeOfLeader(t *testing.T) {
	s := newStory(AcksLeader)
	s.write(0, 1, 2)
	s.write(2)
	s.log(0, 1, 3)
	s.expect(t, LossExplained)

	s = newStory(AcksLeader)
	s.write(0, 1, 2)
	s.p.Led(3)
	s.p.Led(4)
	s.write(2)
	r := s.p.Reader("final", 0)
	for o, n := range []int{0, 1, 3} {
		r.Saw(int64(o), int32(3+n/3), keyOf(7, n).Value())
	}
	s.p.End(3)
	s.expect(t)
}

func TestALossOfAcksZeroIsCountedOnly(t *testing.T) {
	s := newStory(AcksNone)
	s.write(-1, -1, -1)
	s.log(0, 2, 2)
	tally := s.Check()[0]
	if tally.Lost != 1 || tally.Again != 1 || tally.Kept != 2 {
		t.Errorf("lost %d, again %d, kept %d, want 1, 1, 2", tally.Lost, tally.Again, tally.Kept)
	}
	s.expect(t)
}

func TestCommittedOffsetsNeverGoBack(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(s *story, g *Group)
		want []Property
	}{
		"forward":  {func(s *story, g *Group) { g.Resumed(s.p, s.Now(), 2); g.Fetched(s.p, s.Now(), 2, false) }, nil},
		"rewind":   {func(s *story, g *Group) { g.Resumed(s.p, s.Now(), 1) }, []Property{GroupOffsets}},
		"invented": {func(s *story, g *Group) { g.Resumed(s.p, s.Now(), 3) }, []Property{GroupOffsets}},
		"stale":    {func(s *story, g *Group) { g.Fetched(s.p, s.Now(), 1, true) }, nil},
		"forgot":   {func(s *story, g *Group) { g.Fetched(s.p, s.Now(), 1, false) }, []Property{GroupOffsets}},
		"logged":   {func(s *story, g *Group) { g.Logged(s.p, 1); g.Logged(s.p, 2) }, []Property{GroupOffsets}},
		"skipped":  {func(s *story, g *Group) { g.Commits(s.p, 3); g.Committed(s.p, 3); g.Logged(s.p, 3) }, []Property{GroupDelivers}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(AcksAll)
			s.write(0, 1, 2)
			s.log(0, 1, 2)
			g := s.Group("g")
			for o := range int64(2) {
				g.Delivered(s.p, o)
			}
			g.Commits(s.p, 2)
			g.Committed(s.p, 2)
			s.tick()
			g.Logged(s.p, 2)
			c.act(s, g)
			s.expect(t, c.want...)
		})
	}
}

func TestAValueIsReadBackOnlyWhole(t *testing.T) {
	k := keyOf(12, 345678)
	if got, ok := Parse(k.Value()); !ok || got != k {
		t.Errorf("parsed %v, %v, want %v", got, ok, k)
	}
	bad := k.Value()
	bad[len(bad)-1] ^= 1
	for _, v := range [][]byte{bad, k.Value()[:40], nil, []byte("x:y z")} {
		if _, ok := Parse(v); ok {
			t.Errorf("%q passes for a record", v)
		}
	}
}
