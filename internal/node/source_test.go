package node

import (
	"testing"
	"testing/synctest"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// led is the record that gives the partition of topic 1 a leader.
func led(leader model.BrokerID) metalog.Record {
	c := metalog.NewPartitionChange(model.UUID{1}, 0)
	c.Leader = leader
	return c
}

// moved is the record that gives the partition of topic 1 other replicas.
func moved(leader model.BrokerID, replicas ...model.BrokerID) metalog.Record {
	c := metalog.NewPartitionChange(model.UUID{1}, 0)
	c.Leader, c.Replicas, c.ISR = leader, replicas, replicas
	c.Directories = make([]model.UUID, len(replicas))
	return c
}

// ask takes the next plan and keeps the session as a leader does: what is named
// first, then what is forgotten.
func (h *hosting) ask(leader model.BrokerID, session map[model.TopicIDPartition]bool) {
	s := h.sources[leader]
	h.replicas.inbox.post(wantPlan{s: s})
	p := <-s.plans
	for _, part := range p.parts {
		session[part.id] = true
	}
	for _, id := range p.forget {
		delete(session, id)
	}
}

func TestAPlanForgetsOnlyWhatIsNotFetchedAnyMore(t *testing.T) {
	paths := map[string]struct {
		changes []metalog.Record // one image each, all of them between two requests
		fetched bool             // from broker 2 in the end
	}{
		"another epoch of the leader": {[]metalog.Record{led(2)}, true},
		"another leader":              {[]metalog.Record{led(3)}, false},
		"another leader and back":     {[]metalog.Record{led(3), led(2)}, true},
		"no leader and back":          {[]metalog.Record{led(model.NoBroker), led(2)}, true},
		"leading and back":            {[]metalog.Record{led(1), led(2)}, true},
		"moved away":                  {[]metalog.Record{moved(2, 2, 3)}, false},
		"moved away and back":         {[]metalog.Record{moved(2, 2, 3), moved(2, 1, 2, 3)}, true},
		"twice away and back":         {[]metalog.Record{led(3), led(2), moved(2, 2, 3), moved(2, 1, 2, 3)}, true},
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := host(t)
				h.become(topic("orders", 1, 2, 1, 3)...)
				h.become(topic("always", 9, 2, 1, 3)...)
				session := map[model.TopicIDPartition]bool{}
				h.ask(2, session)
				id := model.TopicIDPartition{TopicID: model.UUID{1}}
				if !session[id] {
					t.Fatal("the first plan leaves the partition out")
				}
				for _, rec := range path.changes {
					h.become(rec)
				}
				if h.ask(2, session); session[id] != path.fetched {
					t.Errorf("the session holds the partition: %v, not %v", session[id], path.fetched)
				}
			})
		})
	}
}
