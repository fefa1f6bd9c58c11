package workload

import (
	"context"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
)

// repeats are batches of an idempotent producer that were acknowledged.
type repeats []repeat

// repeat is one of them. Brokers must know the last batch of a producer in a
// partition; those before they may forget.
type repeat struct {
	*parcel
	last bool
}

// kept is how many batches are kept: more than brokers remember.
const kept = 8

// add keeps what was acknowledged. sound says that nothing was given up.
func (r *repeats) add(sound bool, ps []*parcel) {
	for _, p := range ps {
		if p.result != outcome.Done {
			continue
		}
		for i := range *r {
			if q := &(*r)[i]; q.id == p.id && q.partition == p.partition {
				q.last = false
			}
		}
		*r = append(*r, repeat{p, true})
	}
	for i := range *r {
		(*r)[i].last = (*r)[i].last && sound
	}
	*r = (*r)[max(0, len(*r)-kept):]
}

// send sends one of them again, once, and tells the history of the answer.
func (r repeats) send(ctx context.Context, c *client) {
	if len(r) == 0 || !c.env.chance(3) {
		return
	}
	old := pick(c.env.Rand, r)
	p := *old.parcel
	p.result, p.doubt = outcome.Again, false
	c.produce(ctx, delivery{acks: -1}, []*parcel{&p})
	c.env.note("sent the batch at %d again: %v, %v, %d", old.base, p.result, p.code, p.base)
	switch {
	case p.result == outcome.Done && old.base >= 0 && p.base >= 0 && p.base != old.base:
		c.env.forgotten(&p, "was acknowledged at %d, and at %d when it was sent again", old.base, p.base)
	case p.code == model.ErrOutOfOrderSequenceNumber && old.last:
		c.env.forgotten(&p, "was acknowledged at %d, and refused when it was sent again", old.base)
	}
}

// inOrder tells the history of a batch that was refused as out of order although
// all before it were acknowledged.
func (c *client) inOrder(ps []*parcel) {
	for _, p := range ps {
		if p.code == model.ErrOutOfOrderSequenceNumber {
			c.env.forgotten(p, "was refused as out of order, and all before it were acknowledged")
		}
	}
}
