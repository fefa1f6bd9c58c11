package workload

import (
	"context"

	"github.com/tidemark-log/tidemark/internal/record"
)

// Producer sends batches without a producer id. What may have happened it does
// not send again, so no value is there twice.
type Producer struct {
	Acks int16 // -1: all in-sync replicas
}

// Name is that of the workload.
func (p Producer) Name() string {
	switch p.Acks {
	case 0:
		return "producer-acks-0"
	case 1:
		return "producer-acks-1"
	}
	return "producer-acks-all"
}

// Run sends until its records are used up.
func (p Producer) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	values := names{env: env}
	for values.made < env.Options.Records && env.rest(ctx) {
		t := c.topic(ctx, pick(env.Rand, env.Options.Topics).Name)
		if t == nil {
			return
		}
		ps := c.someParcels(t, func(n int32, opts record.BatchOptions, count int) *parcel {
			return c.pack(t, n, opts, count, values.next)
		})
		c.deliver(ctx, delivery{acks: p.Acks, byName: env.namesTopics(), tries: 10}, ps)
	}
}

// namesTopics says whether a request may name a topic instead of its id, which
// tells nothing where topics come again.
func (e *Env) namesTopics() bool { return !e.Options.DeleteTopics && e.chance(3) }
