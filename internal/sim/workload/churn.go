package workload

import (
	"context"

	"github.com/tidemark-log/tidemark/internal/record"
)

// Churn creates a topic of its own, uses it and deletes it, again and again under
// one name. Where Options.DeleteTopics allows it, it does so to those that others
// use.
type Churn struct{}

// Name is that of the workload.
func (Churn) Name() string { return "admin-churn" }

// Run goes on until ctx ends.
func (Churn) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	values := names{env: env}
	own := Topic{Name: env.name, Partitions: 1 + int32(env.Rand.IntN(3)), Replicas: env.Options.Topics[0].Replicas}
	for env.restLong(ctx) {
		t := own
		if env.Options.DeleteTopics && env.chance(3) {
			t = pick(env.Rand, env.Options.Topics)
		}
		if !c.create(ctx, t) || !c.use(ctx, t.Name, &values) {
			return
		}
		if at := c.meta.Topic(t.Name); at == nil || !c.remove(ctx, at) {
			return
		}
		env.changed()
		env.note("deleted %s", t.Name)
		if t.Name != own.Name && !c.create(ctx, t) {
			return
		}
	}
}

// use writes to a topic and reads a little of it.
func (c *client) use(ctx context.Context, topic string, values *names) bool {
	t := c.meta.Topic(topic)
	if t == nil {
		return ctx.Err() == nil
	}
	r := Consumer{}.reader(c, t)
	for range c.env.Rand.IntN(4) {
		ps := c.someParcels(t, func(n int32, opts record.BatchOptions, count int) *parcel {
			return c.pack(t, n, opts, count, values.next)
		})
		c.deliver(ctx, delivery{acks: -1, tries: 5}, ps)
		if !r.read(ctx) || c.gone(topic, r.positions) {
			break
		}
		t = c.meta.Topic(topic)
	}
	return ctx.Err() == nil
}
