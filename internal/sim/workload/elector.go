package workload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Elector has preferred leaders elected and, where the options allow it, unclean
// ones.
type Elector struct{}

// Name is that of the workload.
func (Elector) Name() string { return "admin-elect" }

const (
	preferred int8 = 0
	unclean   int8 = 1
)

// Run goes on until ctx ends.
func (Elector) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	for env.restLong(ctx) {
		s, ok := c.somewhere(ctx)
		if !ok {
			return
		}
		if env.Options.UncleanElections && env.chance(3) {
			c.said("elect anybody of", s, c.elect(ctx, s, unclean))
			continue
		}
		// First another one becomes the preferred leader, as often as not.
		if order := c.target(s); len(order) > 0 && env.chance(2) && sameSet(order, s.meta.Replicas) {
			c.said("prefer another leader of", s, c.assign(ctx, s, order))
		}
		c.said("elect the preferred of", s, c.elect(ctx, s, preferred))
	}
}

func sameSet(a, b []int32) bool {
	for _, x := range a {
		found := false
		for _, y := range b {
			found = found || x == y
		}
		if !found {
			return false
		}
	}
	return len(a) == len(b)
}

// elect asks for an election of one partition; that none was needed is no error.
func (c *client) elect(ctx context.Context, s site, how int8) model.Error {
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType, req.TimeoutMillis = how, int32(adminTimeout.Milliseconds())
	t := kmsg.NewElectLeadersRequestTopic()
	t.Topic, t.Partitions = s.topic.Name, []int32{s.partition}
	req.Topics = append(req.Topics, t)
	answer, err := c.askAny(ctx, req, adminTimeout)
	if err != nil {
		return noCode
	}
	resp := answer.(*kmsg.ElectLeadersResponse)
	if resp.ErrorCode != 0 {
		return model.Error(resp.ErrorCode)
	}
	if e := model.Error(resp.Topics[0].Partitions[0].ErrorCode); e != model.ErrElectionNotNeeded {
		return e
	}
	return model.None
}
