package workload

import (
	"context"
	"slices"
)

// Bouncer takes a replica of a partition away and gives it back at once, as an
// administrator who changed his mind.
type Bouncer struct{}

// Name is that of the workload.
func (Bouncer) Name() string { return "admin-bounce" }

// Run goes on until ctx ends.
func (Bouncer) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	for env.restLong(ctx) {
		s, ok := c.somewhere(ctx)
		if !ok {
			return
		}
		all := slices.Clone(s.meta.Replicas)
		who := pick(env.Rand, all)
		if len(all) < 2 || who == s.meta.Leader {
			continue
		}
		fewer := slices.DeleteFunc(slices.Clone(all), func(id int32) bool { return id == who })
		c.said("take a replica from", s, c.assign(ctx, s, fewer))
		if env.chance(3) && !env.rest(ctx) {
			return
		}
		for n := 1; ; n++ {
			e := c.assign(ctx, s, all)
			c.said("give it back to", s, e)
			if e == 0 || n > 8 || !c.pause(ctx, n) {
				break
			}
		}
	}
}
