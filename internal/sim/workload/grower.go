package workload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Grower adds partitions to topics, one at a time, up to three more than they
// began with.
type Grower struct{}

// Name is that of the workload.
func (Grower) Name() string { return "admin-grow" }

// Run goes on until ctx ends.
func (Grower) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	for env.restLong(ctx) {
		if !env.chance(4) {
			continue
		}
		s, ok := c.somewhere(ctx)
		if !ok {
			return
		}
		limit := 0
		for _, t := range env.Options.Topics {
			if t.Name == s.topic.Name {
				limit = int(t.Partitions) + 3
			}
		}
		if len(s.topic.Partitions) < limit {
			c.said("add a partition to", s, c.grow(ctx, s))
		}
	}
}

func (c *client) grow(ctx context.Context, s site) model.Error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = int32(adminTimeout.Milliseconds())
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = s.topic.Name, int32(len(s.topic.Partitions)+1)
	req.Topics = append(req.Topics, t)
	answer, err := c.askAny(ctx, req, adminTimeout)
	if err != nil {
		return noCode
	}
	return model.Error(answer.(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode)
}
