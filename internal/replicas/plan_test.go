package replicas

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage"
)

func TestAPlanNamesOnlyWhatChanged(t *testing.T) {
	c := newCrank(t)
	a, b := c.followed(0), c.followed(1)
	s := c.sourceOf(2)
	p, ok := c.wish(s, true)
	if !ok || !p.full || names(p.parts) != "ab" {
		t.Fatalf("the first plan: %+v, %v", p, ok)
	}
	fetched := answerOf(s, batchesFor(b, 3))
	c.turn(fetched)
	c.settle()
	if p, ok = c.wish(s, false); !ok || p.full || names(p.parts) != "b" || p.parts[0].pos.Offset != 3 {
		t.Fatalf("after records for b: %+v, %v", p, ok)
	}
	c.turn(answerOf(s))
	c.assigned(a, 3, 2)
	if p, ok = c.wish(s, false); !ok || len(p.parts) > 0 || len(p.forget) != 1 || p.forget[0] != a.hosted.ID {
		t.Fatalf("after a left: %+v, %v", p, ok)
	}
	c.turn(answerOf(s))
	late := c.followed(2)
	if p, ok = c.wish(s, false); !ok || names(p.parts) != "c" || len(p.forget) > 0 {
		t.Fatalf("after c came: %+v, %v", p, ok)
	}
	c.turn(answerOf(s))
	if p, ok = c.wish(s, true); !ok || !p.full || names(p.parts) != "bc" || len(p.forget) > 0 {
		t.Fatalf("after the session was lost: %+v, %v", p, ok)
	}
	if !late.inSet || a.inSet || s.inSet != 2 {
		t.Errorf("the session holds %d partitions", s.inSet)
	}
}

func TestTheNextRequestWaitsForTheBytesOfTheLast(t *testing.T) {
	c := newCrank(t)
	a, b := c.followed(0), c.followed(1)
	s := c.sourceOf(2)
	c.wish(s, true)
	f := answerOf(s, batchesFor(a, 1), batchesFor(b, 1))
	c.turn(f)
	if _, ok := c.wish(s, false); ok || f.freed != 0 {
		t.Fatalf("a plan before the bytes are written: %v; given back %d times", ok, f.freed)
	}
	c.settle()
	if p, ok := c.planned(s); !ok || len(p.parts) != 2 || f.freed != 1 {
		t.Fatalf("afterwards: %+v, %v; given back %d times", p, ok, f.freed)
	}
}

func TestAReplicaThatLeavesDoesNotHoldUpTheOthers(t *testing.T) {
	c := newCrank(t)
	gone, stays := c.followed(0), c.followed(1)
	s := c.sourceOf(2)
	c.wish(s, true)
	f := answerOf(s, batchesFor(gone, 1), batchesFor(stays, 1))
	c.turn(f)
	c.turn(call(func(l *Loop) { l.drop(gone.hosted) }))
	if f.freed != 0 {
		t.Fatal("the log writer still needs the bytes of an answer that were given back")
	}
	c.settle()
	if p, ok := c.wish(s, false); !ok || names(p.parts) != "b" || len(p.forget) != 1 {
		t.Fatalf("the plan afterwards: %+v, %v", p, ok)
	}
	if f.freed != 1 {
		t.Errorf("the bytes of the answer were given back %d times", f.freed)
	}
}

func TestALateAnswerIsNotForAReplicaThatLeft(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	s := c.sourceOf(2)
	c.wish(s, true)
	f := answerOf(s, batchesFor(r, 1))
	c.assigned(r, 3, 2)
	c.assigned(r, 2, 3)
	c.turn(f)
	c.settle()
	if r.p.Marks().LEO != 0 || f.freed != 1 {
		t.Errorf("the log ends at %d; given back %d times", r.p.Marks().LEO, f.freed)
	}
}

func TestPausesGrowUntilTheLeaderAnswers(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	s := c.sourceOf(2)
	c.wish(s, true)
	for _, pause := range []time.Duration{20, 40, 80, 160, 320, 640, 1000, 1000} {
		c.turn(answerOf(s, errorFor(r, model.ErrUnknownLeaderEpoch)))
		if p, ok := c.wish(s, false); !ok || len(p.forget) != 1 {
			t.Fatalf("before a pause of %d ms: %+v, %v", pause, p, ok)
		}
		c.turn(answerOf(s))
		c.turn(wantPlan{s: s})
		c.wait(pause*time.Millisecond - 1)
		if p, ok := c.planned(s); ok {
			t.Fatalf("within a pause of %d ms: %+v", pause, p)
		}
		c.wait(1)
		if p, ok := c.planned(s); !ok || names(p.parts) != "a" {
			t.Fatalf("after a pause of %d ms: %+v, %v", pause, p, ok)
		}
	}
	c.turn(answerOf(s, fetchedPart{id: r.hosted.ID, resp: partition.FetchResponse{Diverging: model.UndefinedEpochEnd}}))
	if r.pause != 0 {
		t.Errorf("an answer leaves a pause of %v", r.pause)
	}
}

func TestANewLeaderEndsThePauseOfTheLast(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	s := c.sourceOf(2)
	c.wish(s, true)
	c.turn(answerOf(s, errorFor(r, model.ErrNotLeaderOrFollower)))
	c.assigned(r, 3, 2)
	if p, ok := c.wish(c.sourceOf(3), true); !ok || names(p.parts) != "a" {
		t.Fatalf("the first plan for the new leader: %+v, %v", p, ok)
	}
	c.turn(answerOf(c.sourceOf(3), errorFor(r, model.ErrNotLeaderOrFollower)))
	c.wait(firstRedial - 1)
	if !r.delayed {
		t.Error("the end of an old pause ends a new one")
	}
}

// outOfRange has r's leader call its offset out of range, so that a question
// for the bounds of the leader's log is due.
func outOfRange(c *crank, s *source, r *replica) {
	c.t.Helper()
	c.wish(s, true)
	c.turn(answerOf(s, errorFor(r, model.ErrOffsetOutOfRange)))
	if p, ok := c.wish(s, false); !ok || names(p.asks) != "a" || len(p.parts) > 0 {
		c.t.Fatalf("the plan of a question: %+v, %v", p, ok)
	}
}

func TestAQuestionThatIsLostWithTheConnectionIsAskedAgain(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	s := c.sourceOf(2)
	outOfRange(c, s, r)
	p, ok := c.wish(s, true) // no answer: the connection is lost
	if !ok || names(p.asks) != "a" {
		t.Fatalf("the plan for a new connection: %+v, %v", p, ok)
	}
	a := answerOf(s)
	a.asked = []fetchedBounds{{id: r.hosted.ID, resp: partition.LeaderOffsets{LeaderEpoch: 1, LogStart: 50, LEO: 80}}}
	c.turn(a)
	c.settle()
	if p, ok = c.wish(s, false); !ok || names(p.parts) != "a" || p.parts[0].pos.Offset != 50 || len(p.asks) > 0 {
		t.Fatalf("after the answer: %+v, %v", p, ok)
	}
}

func TestAQuestionThatIsRefusedIsAskedAgainAfterAPause(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	s := c.sourceOf(2)
	outOfRange(c, s, r)
	a := answerOf(s)
	a.asked = []fetchedBounds{{id: r.hosted.ID, resp: partition.LeaderOffsets{LeaderEpoch: 1, Err: model.ErrNotLeaderOrFollower}}}
	c.turn(a)
	c.turn(wantPlan{s: s})
	c.wait(firstRedial)
	if p, ok := c.planned(s); !ok || names(p.parts) != "a" || len(p.asks) > 0 {
		t.Fatalf("after the pause the fetch tells whether to ask: %+v, %v", p, ok)
	}
}

func TestAnAnswerOfAnEarlierEpochIsNoAnswerToAQuestion(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	s := c.sourceOf(2)
	outOfRange(c, s, r)
	c.assigned(r, 2, 2)
	a := answerOf(s)
	a.asked = []fetchedBounds{{id: r.hosted.ID, resp: partition.LeaderOffsets{LeaderEpoch: 1, LogStart: 50, LEO: 80}}}
	c.turn(a)
	c.settle()
	if p, ok := c.wish(s, false); !ok || names(p.parts) != "a" || p.parts[0].pos.Offset != 0 {
		t.Fatalf("the plan of the new epoch: %+v, %v", p, ok)
	}
}

func TestRetentionKeepsItsPlaceAmongTruncations(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	cfg := storage.DefaultLogConfig()
	cfg.RetentionMs = 1000
	c.turn(call((&Change{Configured: []Configured{{Hosted: r.hosted, MinISR: 1, Log: cfg}}}).turn))
	s := c.sourceOf(2)
	c.wish(s, true)
	part := batchesFor(r, 3)
	part.resp.HW = 3
	c.turn(answerOf(s, part))
	c.settle()
	c.wish(s, false)
	c.turn(call((*Loop).retain))
	c.turn(answerOf(s, fetchedPart{id: r.hosted.ID, resp: partition.FetchResponse{Diverging: model.EpochEnd{Epoch: 0, End: 0}}}))
	c.write()
	if start, leo := r.log.Start(), r.log.LEO(); start != 0 || leo != 0 {
		t.Fatalf("the log is [%d, %d) after both", start, leo)
	}
	c.tell()
	if m := r.p.Marks(); m.LogStart != 0 || m.LEO != 0 {
		t.Errorf("marks %+v", m)
	}
	c.settle()
	c.wish(s, false)
	part = batchesFor(r, 3)
	part.resp.HW = 3
	c.turn(answerOf(s, part))
	c.settle()
	c.turn(call((*Loop).retain))
	c.settle()
	if m := r.p.Marks(); m.LogStart != 3 || r.log.Start() != 3 {
		t.Errorf("after retention: marks %+v, the log starts at %d", m, r.log.Start())
	}
}
