package workload

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
)

// adminTimeout is what administrators give the controller.
const adminTimeout = 2 * time.Second

// Setup creates the topics of env's options and waits until they have leaders.
// False: ctx ended.
func Setup(ctx context.Context, env *Env) bool {
	own := *env
	own.defaults()
	own.name, own.tell = "setup", newTeller(env)
	c := newClient(&own)
	defer c.close()
	if own.Options.NoELR && !c.withoutELR(ctx) {
		return false
	}
	for _, t := range own.Options.Topics {
		if !c.create(ctx, t) {
			return false
		}
	}
	return true
}

// withoutELR switches the feature off (KIP-584), and tries until it is. False: ctx
// ended.
func (c *client) withoutELR(ctx context.Context) bool {
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.TimeoutMillis = int32(adminTimeout.Milliseconds())
	u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	u.Feature, u.UpgradeType = "eligible.leader.replicas.version", safeDowngrade
	req.FeatureUpdates = append(req.FeatureUpdates, u)
	for n := 1; ; n++ {
		answer, err := c.askAny(ctx, req, adminTimeout)
		if err == nil && answer.(*kmsg.UpdateFeaturesResponse).ErrorCode == 0 {
			return true
		}
		if !c.pause(ctx, n) {
			return false
		}
	}
}

// safeDowngrade is an upgrade type of UpdateFeatures.
const safeDowngrade int8 = 2

// create creates a topic, tries until there is one of its name, and waits for
// its leaders. False: ctx ended.
func (c *client) create(ctx context.Context, t Topic) bool {
	for n := 1; ; n++ {
		switch c.tryCreate(ctx, t) {
		case model.None, model.ErrTopicAlreadyExists:
			return c.whole(ctx, t.Name) != nil
		}
		if !c.pause(ctx, n) {
			return false
		}
	}
}

func (c *client) tryCreate(ctx context.Context, t Topic) model.Error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(adminTimeout.Milliseconds())
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.Name, t.Partitions, t.Replicas
	for _, kv := range t.Configs {
		rc := kmsg.NewCreateTopicsRequestTopicConfig()
		rc.Name, rc.Value = kv[0], kmsg.StringPtr(kv[1])
		rt.Configs = append(rt.Configs, rc)
	}
	req.Topics = append(req.Topics, rt)
	answer, err := c.askAny(ctx, req, adminTimeout)
	if err != nil {
		return noCode
	}
	return model.Error(answer.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
}

// remove deletes the topic with this id, and tries until it is gone. False: ctx
// ended.
func (c *client) remove(ctx context.Context, t *metadata.Topic) bool {
	id, name := t.ID, t.Name
	c.env.deletes(id)
	for n := 1; ; n++ {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TimeoutMillis = int32(adminTimeout.Milliseconds())
		rt := kmsg.NewDeleteTopicsRequestTopic()
		rt.TopicID = id
		req.Topics = append(req.Topics, rt)
		answer, err := c.askAny(ctx, req, adminTimeout)
		if err == nil {
			switch model.Error(answer.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode) {
			case model.None, model.ErrUnknownTopicID:
				c.meta.Drop(name)
				return true
			}
		}
		if !c.pause(ctx, n) {
			return false
		}
	}
}

// site is a partition that an administrator has in mind.
type site struct {
	topic     *metadata.Topic
	partition int32
	meta      *metadata.Partition
}

// somewhere picks a partition of the options' topics from fresh metadata. False:
// ctx ended or there is none.
func (c *client) somewhere(ctx context.Context) (site, bool) {
	name := pick(c.env.Rand, c.env.Options.Topics).Name
	c.refresh(ctx, name)
	t := c.topic(ctx, name)
	if t == nil || len(t.Partitions) == 0 {
		return site{}, false
	}
	n := c.env.Rand.IntN(len(t.Partitions))
	return site{t, int32(n), &t.Partitions[n]}, true
}

// position is a reader's, at the site.
func (s site) position() *position { return newPosition(s.topic, s.partition) }

// said notes and counts what the controller answered.
func (c *client) said(what string, s site, e model.Error) {
	c.env.note("%s %s-%d: %v", what, s.topic.Name, s.partition, e)
	if e == model.None {
		c.env.changed()
	}
}

// restLong waits as long as administrators do, many times a quick client's pace.
func (e *Env) restLong(ctx context.Context) bool {
	pace := min(e.Options.Pace, defaultPace)
	return e.Runtime.Sleep(ctx, pace+time.Duration(e.Rand.Int64N(20*int64(pace))))
}
