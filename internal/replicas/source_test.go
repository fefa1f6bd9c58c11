package replicas

import (
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestAPlanForgetsOnlyWhatIsNotFetchedAnyMore(t *testing.T) {
	const away = -2 // the partition is hosted here no more
	paths := map[string]struct {
		leaders []model.BrokerID // one after the other, all of them between two requests
		fetched bool             // from broker 2 in the end
	}{
		"another epoch of the leader": {[]model.BrokerID{2}, true},
		"another leader":              {[]model.BrokerID{3}, false},
		"another leader and back":     {[]model.BrokerID{3, 2}, true},
		"no leader and back":          {[]model.BrokerID{model.NoBroker, 2}, true},
		"leading and back":            {[]model.BrokerID{1, 2}, true},
		"moved away":                  {[]model.BrokerID{away}, false},
		"moved away and back":         {[]model.BrokerID{away, 2}, true},
		"twice away and back":         {[]model.BrokerID{3, 2, away, 2}, true},
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			c := newCrank(t)
			r := c.followed(0)
			c.followed(1)
			s := c.sourceOf(2)
			p, _ := c.wish(s, true)
			if !holds(p, idOf(0), false) {
				t.Fatal("the first plan leaves the partition out")
			}
			for i, leader := range path.leaders {
				if leader == away {
					r = c.remade(r)
					continue
				}
				c.assigned(r, leader, model.Epoch(i+2))
				c.settle()
			}
			p, _ = c.wish(s, false)
			if got := holds(p, idOf(0), true); got != path.fetched {
				t.Errorf("the session holds the partition: %v, not %v", got, path.fetched)
			}
		})
	}
}

// holds reports whether a leader's session holds a partition after a request,
// as it did before or because the request names it. A leader forgets last.
func holds(p fetchPlan, id model.TopicIDPartition, before bool) bool {
	named := slices.ContainsFunc(p.parts, func(part planPart) bool { return part.id == id })
	return (before || named) && !slices.Contains(p.forget, id)
}

// remade drops partition 0 with its log and takes it in anew, without a leader.
func (c *crank) remade(r *replica) *replica {
	c.t.Helper()
	c.turn(call(func(l *Loop) { l.drop(r.hosted) }))
	c.settle()
	if err := c.dir.Delete(r.tp()); err != nil {
		c.t.Fatal(err)
	}
	return c.hosted(0)
}

func TestLanesShareWhatALeaderLeads(t *testing.T) {
	c := newCrank(t)
	c.lanes = 2
	a, b := c.followed(0), c.followed(1)
	lanes := []*source{a.source, b.source}
	if lanes[0] == lanes[1] || lanes[0].leader != 2 || lanes[1].leader != 2 {
		t.Fatalf("two neighbours are fetched over %v and %v", lanes[0].lane, lanes[1].lane)
	}
	for i, want := range []string{"a", "b"} {
		if p, ok := c.wish(lanes[i], true); !ok || names(p.parts) != want {
			t.Errorf("lane %d asks for %q, %v", i, names(p.parts), ok)
		}
	}
	c.turn(answerOf(lanes[0], batchesFor(a, 1)))
	if _, ok := c.wish(lanes[0], false); ok {
		t.Error("a lane asks on before its bytes are written")
	}
	c.turn(answerOf(lanes[1]))
	if p, ok := c.wish(lanes[1], false); !ok || len(p.parts) > 0 {
		t.Errorf("the other one waits for them, or asks for %q anew", names(p.parts))
	}
}

// laneAbout is what a lane is about, and what its replica is asked for after it.
type laneAbout struct {
	before func(c *crank, r *replica)
	stays  bool // until the answer comes
	asks   string
	offset model.Offset
}

// Whatever a lane was about when the number of lanes changed is done in the end, and
// done once. A request is answered first: its leader takes for told what it says.
func TestWhatALaneWasAboutIsGoneOnWith(t *testing.T) {
	for name, was := range map[string]laneAbout{
		"nothing":             {func(c *crank, r *replica) {}, true, "", 0},
		"waiting for work":    {func(c *crank, r *replica) { c.wish(r.source, true); c.records(r); c.settle(); r.source.wanting = true }, false, "", 3},
		"a request":           {func(c *crank, r *replica) { c.wish(r.source, true) }, true, "", 1},
		"bytes to be written": {func(c *crank, r *replica) { c.wish(r.source, true); c.records(r) }, true, "", 3},
		"a question":          {func(c *crank, r *replica) { outOfRange(c, r.source, r) }, true, "a", 0},
		"a pause": {func(c *crank, r *replica) {
			c.wish(r.source, true)
			c.turn(answerOf(r.source, errorFor(r, model.ErrNotLeaderOrFollower)))
		}, true, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrank(t)
			c.lanes = 2
			r := c.followed(0)
			was.before(c, r)
			old := r.source
			c.turn(call((&Change{Lanes: c.otherLanes(r)}).turn))
			if stays := r.source == old; stays != was.stays {
				t.Fatalf("with its lane's request under way, it stays there: %v, not %v", stays, was.stays)
			}
			if name == "a request" {
				c.turn(answerOf(old, batchesFor(r, 1)))
			}
			c.settle()
			if p, ok := c.wish(old, false); ok && (len(p.parts) > 0 || len(p.asks) > 0) {
				t.Errorf("the old lane asks on: %+v", p)
			}
			if r.source == old {
				t.Fatal("it stays on the old lane")
			}
			c.asksFor(t, r, was)
			c.ignores(t, old, r)
		})
	}
}

func (c *crank) ignores(t *testing.T, old *source, r *replica) {
	t.Helper()
	end := r.p.Marks().LEO
	c.turn(answerOf(old, batchesFor(r, 1)))
	if c.settle(); r.p.Marks().LEO != end {
		t.Error("the old lane's answer is still taken")
	}
}

// records has the leader of r answer with three of them.
func (c *crank) records(r *replica) { c.turn(answerOf(r.source, batchesFor(r, 3))) }

func (c *crank) asksFor(t *testing.T, r *replica, was laneAbout) {
	t.Helper()
	p, ok := c.wish(r.source, true)
	if !ok || names(p.asks) != was.asks || was.asks == "" && (names(p.parts) != "a" || p.parts[0].pos.Offset != was.offset) {
		t.Errorf("the new lane asks for %+v and the bounds of %q, %v", p.parts, names(p.asks), ok)
	}
}

// otherLanes is a number of lanes by which r belongs to another one.
func (c *crank) otherLanes(r *replica) int {
	was := c.lanes
	defer func() { c.lanes = was }()
	for c.lanes = was + 1; c.laneTo(r.source.leader, r) == r.source.lane; c.lanes++ {
	}
	return c.lanes
}

// Lanes that come and go between a request and its answer lose nothing that the answer
// says: the leader would not say it again.
func TestAnAnswerCountsAlthoughLanesCameAndWent(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	s := r.source
	c.wish(s, true)
	c.turn(answerOf(s, batchesFor(r, 3)))
	c.settle()
	c.wish(s, false)
	c.turn(call((&Change{Lanes: c.otherLanes(r)}).turn))
	c.turn(call((&Change{Lanes: 1}).turn))
	told := errorFor(r, model.None)
	told.resp.HW = 3
	c.turn(answerOf(s, told))
	if hw := r.p.Marks().HW; hw != 3 {
		t.Errorf("the high watermark is %d after the leader told 3", hw)
	}
}
