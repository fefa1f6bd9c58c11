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
	a, b := c.followed(0), c.followed(1)
	c.turn(call((&Change{Lanes: 2}).turn))
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

// Whatever a lane was about when the number of lanes changed is done in the end, and
// done once.
func TestWhatALaneWasAboutIsGoneOnWith(t *testing.T) {
	records := func(c *crank, r *replica) { c.turn(answerOf(r.source, batchesFor(r, 3))) }
	about := map[string]struct {
		before func(c *crank, r *replica)
		asks   string
		offset model.Offset
	}{
		"nothing":             {func(c *crank, r *replica) {}, "", 0},
		"a request":           {func(c *crank, r *replica) { c.wish(r.source, true) }, "", 0},
		"bytes to be written": {func(c *crank, r *replica) { c.wish(r.source, true); records(c, r) }, "", 3},
		"a question":          {func(c *crank, r *replica) { outOfRange(c, r.source, r) }, "a", 0},
		"a pause": {func(c *crank, r *replica) {
			c.wish(r.source, true)
			c.turn(answerOf(r.source, errorFor(r, model.ErrNotLeaderOrFollower)))
		}, "", 0},
	}
	for name, was := range about {
		t.Run(name, func(t *testing.T) {
			c := newCrank(t)
			r := c.followed(0)
			c.turn(call((&Change{Lanes: 2}).turn))
			was.before(c, r)
			old, late := r.source, batchesFor(r, 1)
			for lanes := 3; r.source == old; lanes++ {
				c.turn(call((&Change{Lanes: lanes}).turn))
			}
			c.turn(answerOf(old, late))
			c.settle()
			p, ok := c.wish(r.source, true)
			if !ok || names(p.asks) != was.asks || was.asks == "" && (names(p.parts) != "a" || p.parts[0].pos.Offset != was.offset) {
				t.Errorf("the new lane asks for %+v and the bounds of %q, %v", p.parts, names(p.asks), ok)
			}
			if p, ok := c.wish(old, false); ok && (len(p.parts) > 0 || len(p.asks) > 0) {
				t.Errorf("the old one asks on: %+v", p)
			}
		})
	}
}
