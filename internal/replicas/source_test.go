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
