package workload

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/sim/check"
	"github.com/tidemark-log/tidemark/internal/sim/workload/conns"
	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// parcel is one batch on its way to one partition.
type parcel struct {
	topic     string
	id        model.UUID
	partition int32
	opts      record.BatchOptions
	values    []string
	batch     []byte

	call   check.Op    // in the history
	base   int64       // offset of the first value once done; -1 if that was not told
	code   model.Error // of the last answer
	result outcome.Outcome
	doubt  bool // one of the tries may have done it
}

// delivery is how a client sends its parcels.
type delivery struct {
	acks   int16
	byName bool // by a version that names the topic, not its id
	// resend says that what may have happened can be sent again, for the broker
	// drops a repeat.
	resend bool
	tries  int
}

// pack makes a batch of n new values for a partition.
func (c *client) pack(t *metadata.Topic, partition int32, opts record.BatchOptions, n int, name func() string) *parcel {
	p := &parcel{topic: t.Name, id: t.ID, partition: partition, opts: opts, result: outcome.Again, base: -1}
	b := record.NewBuilder(opts)
	now := model.Millis(c.env.Runtime.Wall().UnixMilli())
	for range n {
		v := name()
		var key []byte
		if c.env.chance(2) {
			key = []byte{'k', byte('0' + c.env.Rand.IntN(10))}
		}
		b.Add(now, key, []byte(v))
		p.values = append(p.values, v)
	}
	p.batch = slices.Clone(b.Bytes())
	return p
}

// deliver sends the parcels until what became of each is known, or no more can
// be found out, and tells the history.
func (c *client) deliver(ctx context.Context, d delivery, ps []*parcel) {
	for _, p := range ps {
		p.call = c.env.produceCalled(d, p)
	}
	open := ps
	for n := 1; len(open) > 0; n++ {
		c.produce(ctx, d, open)
		open = slices.DeleteFunc(slices.Clone(open), func(p *parcel) bool {
			return p.result != outcome.Again && (p.result != outcome.Unknown || !d.resend)
		})
		if len(open) > 0 && (n >= d.tries || !c.pause(ctx, n)) {
			break
		}
	}
	for _, p := range ps {
		if p.result != outcome.Done && p.doubt {
			p.result = outcome.Unknown
		}
		c.env.produceReturned(p)
	}
}

// produce sends each parcel once, those with one leader in one request.
func (c *client) produce(ctx context.Context, d delivery, ps []*parcel) {
	var topics []string
	refresh := false
	for _, p := range ps {
		if t := c.meta.Topic(p.topic); t != nil && t.ID != p.id { // it was deleted, and another has its name
			p.result, p.code = outcome.Refused, model.ErrUnknownTopicID
		}
	}
	ps = slices.DeleteFunc(slices.Clone(ps), func(p *parcel) bool { return p.result == outcome.Refused })
	for left := ps; len(left) > 0; {
		leader := c.leaderOf(left[0])
		var now, later []*parcel
		for _, p := range left {
			if c.leaderOf(p) == leader {
				now = append(now, p)
			} else {
				later = append(later, p)
			}
			if !slices.Contains(topics, p.topic) {
				topics = append(topics, p.topic)
			}
		}
		c.produceTo(ctx, leader, d, now)
		for _, p := range now {
			p.doubt = p.doubt || p.result == outcome.Unknown
			refresh = refresh || outcome.Stale(p.code) || p.code == noCode
		}
		left = later
	}
	if refresh {
		c.refresh(ctx, topics...)
	}
}

// noCode stands where there was no answer.
const noCode = model.ErrNetworkException

// leaderOf is the broker that leads a parcel's partition, -1 if none does.
func (c *client) leaderOf(p *parcel) int32 {
	if m := c.meta.Partition(p.topic, p.id, p.partition); m != nil {
		return m.Leader
	}
	return -1
}

func (c *client) produceTo(ctx context.Context, leader int32, d delivery, ps []*parcel) {
	limit := time.Duration(200+c.env.Rand.IntN(2000)) * time.Millisecond
	req := c.produceRequest(d, ps)
	req.TimeoutMillis = int32(limit.Milliseconds())
	if d.acks == 0 {
		c.produceBlindly(ctx, leader, req, ps)
		return
	}
	answer, err := c.askBroker(ctx, leader, req, limit)
	for _, p := range ps {
		p.code, p.result = noCode, outcome.NoAnswer(err)
	}
	if err != nil {
		return
	}
	for _, t := range answer.(*kmsg.ProduceResponse).Topics {
		for _, r := range t.Partitions {
			for _, p := range ps {
				if p.partition == r.Partition && (p.topic == t.Topic || p.id == model.UUID(t.TopicID)) {
					p.code, p.base = model.Error(r.ErrorCode), r.BaseOffset
					p.result = outcome.OfWrite(p.code)
				}
			}
		}
	}
}

// produceBlindly sends what gets no answer.
func (c *client) produceBlindly(ctx context.Context, leader int32, req *kmsg.ProduceRequest, ps []*parcel) {
	err := conns.ErrNotSent
	if addr := c.meta.Addr(leader); addr != "" {
		var t *transport.Client
		if t, err = c.conns.To(ctx, addr); err == nil {
			err = t.Send(ctx, req)
		}
	}
	for _, p := range ps {
		if p.code, p.result = model.None, outcome.Unknown; err != nil {
			p.code, p.result = noCode, outcome.Again
		}
	}
}

func (c *client) produceRequest(d delivery, ps []*parcel) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks = d.acks
	if d.byName {
		req.Version = 12
	} else {
		req.Version = 13
	}
	for _, p := range ps {
		at := slices.IndexFunc(req.Topics, func(t kmsg.ProduceRequestTopic) bool { return t.Topic == p.topic })
		if at < 0 {
			t := kmsg.NewProduceRequestTopic()
			t.Topic, t.TopicID = p.topic, p.id
			at, req.Topics = len(req.Topics), append(req.Topics, t)
		}
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p.partition, slices.Clone(p.batch)
		req.Topics[at].Partitions = append(req.Topics[at].Partitions, rp)
	}
	return req
}

// someParcels packs one to three batches for partitions of a topic.
func (c *client) someParcels(t *metadata.Topic, pack func(partition int32, opts record.BatchOptions, n int) *parcel) []*parcel {
	r := c.env.Rand
	batches := 1
	if c.env.chance(3) {
		batches = 1 + r.IntN(min(3, len(t.Partitions)))
	}
	var ps []*parcel
	for _, n := range r.Perm(len(t.Partitions))[:batches] {
		opts := record.PlainOptions()
		if c.env.chance(4) {
			opts.Codec = record.Codec(1 + r.IntN(4))
		}
		ps = append(ps, pack(int32(n), opts, 1+r.IntN(5)))
	}
	return ps
}
