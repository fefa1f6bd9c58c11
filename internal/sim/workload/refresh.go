package workload

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
)

// refresh asks any broker for these topics. False: none answered.
func (c *client) refresh(ctx context.Context, topics ...string) bool {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	answer, err := c.askAny(ctx, req, 0)
	if err != nil {
		return false
	}
	c.meta.Learn(answer.(*kmsg.MetadataResponse))
	return true
}

// whole refreshes until every partition of the topic has a leader that is alive,
// and returns the topic; nil when ctx ended.
func (c *client) whole(ctx context.Context, topic string) *metadata.Topic {
	for n := 1; ; n++ {
		if c.refresh(ctx, topic) {
			if t := c.meta.Topic(topic); t != nil && len(t.Partitions) > 0 &&
				!slices.ContainsFunc(t.Partitions, func(p metadata.Partition) bool { return c.meta.Addr(p.Leader) == "" }) {
				return t
			}
		}
		if !c.pause(ctx, n) {
			return nil
		}
	}
}

// topic returns what is known of a topic, and asks until something is; nil when
// ctx ended.
func (c *client) topic(ctx context.Context, name string) *metadata.Topic {
	for n := 1; ; n++ {
		if t := c.meta.Topic(name); t != nil {
			return t
		}
		if c.refresh(ctx, name); c.meta.Topic(name) == nil && !c.pause(ctx, n) {
			return nil
		}
	}
}
