package check

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// at is a position.
func at(segment model.Offset, byte int64) model.Position {
	return model.Position{Segment: segment, Byte: byte}
}

// from is what a consumer asks for.
func from(o model.Offset, pos model.Position) partition.FetchRequest {
	return partition.FetchRequest{Replica: model.NoBroker, Offset: o, Pos: pos, MaxBytes: 1000}
}

// committed is from for read_committed.
func committed(o model.Offset) partition.FetchRequest {
	in := from(o, model.UnknownPosition)
	in.Committed = true
	return in
}

// parked are fetches that wait at b1, which has the HW 4 and the end 5, and who
// minds.
var parked = []struct {
	rule, what string
	in         partition.FetchRequest
	minBytes   int64
	change     func(s *state)
}{
	{"", "at the HW", from(4, at(2, 70)), 1, nil},
	{"PastEndAnswered", "beyond the HW", from(5, at(2, 90)), 1, nil},
	{"", "a new leader's epoch is not safe", from(5, at(2, 90)), 1, func(s *state) { s.m1.now.serving = false }},
	{"", "at the LSO", committed(3), 1, func(s *state) { s.m1.now.marks.LSO = 3 }},
	{"PastEndAnswered", "beyond the LSO", committed(3), 1, func(s *state) { s.m1.now.marks.LSO = 2 }},
	{"BytesAnswered", "below the HW", from(3, model.UnknownPosition), 1, nil},
	{"", "below it, for more", from(3, model.UnknownPosition), 2, nil},
	{"", "in its segment, for more", from(2, at(2, 0)), 71, nil},
	{"BytesAnswered", "in its segment, for what is there", from(2, at(2, 0)), 70, nil},
	{"BytesAnswered", "in an older segment, for more", from(1, at(0, 30)), 1000, nil},
	{"", "a follower at the end", partition.FetchRequest{Replica: 2, Offset: 5}, 1, nil},
	{"BytesAnswered", "a follower below the end", partition.FetchRequest{Replica: 2, Offset: 4}, 1, nil},
	{"NewsAnswered", "a follower that knows less", partition.FetchRequest{Replica: 3, Offset: 5}, 1, nil},
	{"", "a follower that is told soon", partition.FetchRequest{Replica: 4, Offset: 5}, 1, nil},
	{"", "a follower that cannot use it", partition.FetchRequest{Replica: 3, Offset: 3}, 3, func(s *state) { s.m1.now.marks.LEO = 3 }},
}

func TestAFetchWaitsForWhatIsNotThere(t *testing.T) {
	for _, c := range parked {
		s := sound()
		s.m1.now.serving, s.m1.now.hwPos = true, at(2, 70)
		s.m1.now.remotes = []partition.RemoteView{{ID: 2, LEO: 5, ToldHW: 4}, {ID: 3, LEO: 4, ToldHW: 3}, {ID: 4, LEO: 5, ToldHW: 3}}
		if c.change != nil {
			c.change(s)
		}
		b := &Broker{ID: 1, Parked: func(visit func(Parked)) {
			visit(Parked{By: c.in.Replica, MinBytes: c.minBytes, Asks: []Ask{{tpid, c.in, c.in.Replica == 4}}})
		}}
		v, _ := s.waits(b, s.seats[0]).(*Violation)
		if got := v; (got == nil) != (c.rule == "") || got != nil && got.Invariant != c.rule {
			t.Errorf("%s: found %v, not %q", c.what, got, c.rule)
		}
	}
}
