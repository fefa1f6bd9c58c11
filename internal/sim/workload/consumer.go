package workload

import (
	"context"
	"strings"

	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
)

// Consumer reads all partitions of one topic from the earliest offset on, and
// begins anew now and then.
type Consumer struct {
	Committed bool // read_committed
	Sessions  bool // incremental fetches
	// Followers has it read from the replica that the leader prefers for its rack,
	// or from any where the cluster has no racks (KIP-392).
	Followers bool
	// Patient has it wait for more bytes than one batch has.
	Patient bool
}

// Name is that of the workload.
func (w Consumer) Name() string {
	words := []string{"consumer"}
	if w.Committed {
		words = append(words, "committed")
	}
	if w.Sessions {
		words = append(words, "sessions")
	}
	if w.Followers {
		words = append(words, "followers")
	}
	if w.Patient {
		words = append(words, "patient")
	}
	return strings.Join(words, "-")
}

// Run reads until ctx ends.
func (w Consumer) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	for life := 1; ctx.Err() == nil; life++ {
		t := c.topic(ctx, pick(env.Rand, env.Options.Topics).Name)
		if t == nil {
			return
		}
		r := w.reader(c, t)
		env.note("reads %s, life %d", t.Name, life)
		for turns := 10 + env.Rand.IntN(60); turns > 0; turns-- {
			if !r.read(ctx) || !env.rest(ctx) || c.gone(t.Name, r.positions) {
				break
			}
			if turns%10 == 0 {
				r.grow(ctx, t.Name)
			}
		}
		c.close()
	}
}

func (w Consumer) reader(c *client, t *metadata.Topic) *reader {
	m := manner{sessions: w.Sessions, followers: w.Followers, patient: w.Patient}
	if w.Committed {
		m.isolation = 1
	}
	if racks := c.env.Options.Racks; w.Followers && len(racks) > 0 {
		m.rack = pick(c.env.Rand, racks)
	}
	r := &reader{c: c, manner: m}
	for n := range t.Partitions {
		r.positions = append(r.positions, newPosition(t, int32(n)))
	}
	return r
}

func newPosition(t *metadata.Topic, partition int32) *position {
	return &position{topic: t.Name, id: t.ID, partition: partition, offset: -1, epoch: -1, checked: -1, from: -1}
}

// gone says that the topic that is read is there no more, or another one bears
// its name.
func (c *client) gone(topic string, ps []*position) bool {
	t := c.meta.Topic(topic)
	return t == nil || len(ps) > 0 && t.ID != ps[0].id
}

// grow looks for partitions that were added.
func (r *reader) grow(ctx context.Context, topic string) {
	r.c.refresh(ctx, topic)
	t := r.c.meta.Topic(topic)
	if t == nil || len(r.positions) > 0 && t.ID != r.positions[0].id {
		return
	}
	for n := len(r.positions); n < len(t.Partitions); n++ {
		r.positions = append(r.positions, newPosition(t, int32(n)))
	}
}
