package workload

import "context"

// Watcher asks for the ends of partitions' logs, as lag monitors do: without
// unclean elections, the latest offset that was told once never goes back.
type Watcher struct{}

// Name is that of the workload.
func (Watcher) Name() string { return "watcher" }

// Run asks until ctx ends.
func (Watcher) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	for env.rest(ctx) {
		t := c.topic(ctx, pick(env.Rand, env.Options.Topics).Name)
		if t == nil {
			return
		}
		if env.chance(10) {
			c.refresh(ctx, t.Name)
			continue
		}
		p := newPosition(t, int32(env.Rand.IntN(len(t.Partitions))))
		which, isolation := latest, int8(env.Rand.IntN(2))
		if env.chance(4) {
			which = earliest
		}
		if _, ok := c.listOffset(ctx, p, which, isolation); !ok && !c.pause(ctx, 2) {
			return
		}
	}
}
