package workload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
)

// IdempotentProducer sends with a producer id and acks=all. What may have
// happened it sends again, until it is told; no value may be there twice, and
// those of a partition are in order. It is restarted now and then and takes a new
// producer id; a batch that it gave up makes it raise its epoch (KIP-360) or do
// the same.
type IdempotentProducer struct {
	// Again has it send batches anew that were acknowledged, as a network does that
	// delivers twice: the last one must be told as before, an older one may be
	// refused, and none is appended. It does not where records are deleted, for with
	// them the brokers may forget the producer.
	Again bool
}

// Name is that of the workload.
func (w IdempotentProducer) Name() string {
	if w.Again {
		return "producer-idempotent-again"
	}
	return "producer-idempotent"
}

// identity is a producer id with the next sequence of each partition.
type identity struct {
	id    int64
	epoch int16
	next  []sequence // in the order of their first use
}

type sequence struct {
	topic     model.UUID
	partition int32
	next      int32
}

// of returns the sequence of a partition.
func (i *identity) of(topic model.UUID, partition int32) *sequence {
	for n := range i.next {
		if s := &i.next[n]; s.topic == topic && s.partition == partition {
			return s
		}
	}
	i.next = append(i.next, sequence{topic: topic, partition: partition})
	return &i.next[len(i.next)-1]
}

// Run sends until its records are used up.
func (w IdempotentProducer) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	values := names{env: env}
	who := c.initProducer(ctx)
	var old repeats
	for who != nil && values.made < env.Options.Records && env.rest(ctx) {
		if env.chance(40) {
			env.note("is restarted")
			c.close()
			who = c.initProducer(ctx)
			continue
		}
		t := c.topic(ctx, pick(env.Rand, env.Options.Topics).Name)
		if t == nil {
			return
		}
		ps := c.someParcels(t, func(n int32, opts record.BatchOptions, count int) *parcel {
			opts.ProducerID, opts.ProducerEpoch = model.ProducerID(who.id), who.epoch
			opts.BaseSequence = who.of(t.ID, n).next
			return c.pack(t, n, opts, count, values.next)
		})
		c.deliver(ctx, delivery{acks: -1, byName: env.namesTopics(), resend: true, tries: 30}, ps)
		now := c.goOn(ctx, who, ps)
		if w.Again && env.Options.Kept && now != nil {
			c.inOrder(ps)
			old.add(now == who, ps)
			old.send(ctx, c)
		}
		who = now
	}
}

// goOn moves the sequences on, or takes a new epoch or id when a batch failed.
func (c *client) goOn(ctx context.Context, who *identity, ps []*parcel) *identity {
	failed := false
	for _, p := range ps {
		if p.result == outcome.Done {
			who.of(p.id, p.partition).next += int32(len(p.values))
			continue
		}
		failed = true
		c.env.note("gave up a batch: %v, %v", p.result, p.code)
	}
	switch {
	case !failed:
		return who
	case who.epoch < 100 && c.env.chance(2):
		return &identity{id: who.id, epoch: who.epoch + 1}
	}
	return c.initProducer(ctx)
}

// initProducer asks for a producer id until there is one; nil when ctx ended.
func (c *client) initProducer(ctx context.Context) *identity {
	for n := 1; ; n++ {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.ProducerID, req.ProducerEpoch = -1, -1
		answer, err := c.askAny(ctx, req, 0)
		if err == nil {
			if r := answer.(*kmsg.InitProducerIDResponse); r.ErrorCode == 0 {
				return &identity{id: r.ProducerID, epoch: r.ProducerEpoch}
			}
		}
		if !c.pause(ctx, n) {
			return nil
		}
	}
}
