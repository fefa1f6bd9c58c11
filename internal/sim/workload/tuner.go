package workload

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Tuner changes the settings of topics, and of brokers, of which Options rule some out,
// and takes its changes back.
type Tuner struct{}

// Name is that of the workload.
func (Tuner) Name() string { return "admin-tune" }

// Run goes on until ctx ends.
func (Tuner) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	for env.restLong(ctx) {
		s, ok := c.somewhere(ctx)
		if !ok {
			return
		}
		of, name := kmsg.ConfigResourceTypeTopic, s.topic.Name
		key, value := pick(env.Rand, settings(env))(env)
		if env.Options.Lanes && env.chance(2) {
			of, name = kmsg.ConfigResourceTypeBroker, "" // all of them
			key, value = "num.replica.fetchers", strconv.Itoa(1+env.Rand.IntN(3))
		}
		if env.chance(4) {
			value = ""
		}
		c.said("set "+key+"="+value+" of", s, c.set(ctx, of, name, key, value))
	}
}

// settings are those that may be changed, each with a way to draw a value.
func settings(env *Env) []func(env *Env) (key, value string) {
	draw := func(key string, values ...string) func(*Env) (string, string) {
		return func(env *Env) (string, string) { return key, pick(env.Rand, values) }
	}
	list := []func(*Env) (string, string){
		draw("segment.bytes", "1048576", "1100000", "2000000"),
		draw("segment.ms", "500", "3000", "60000"),
		draw("index.interval.bytes", "256", "4096"),
		draw("flush.messages", "1", "10", "9223372036854775807"),
		draw("compression.type", "producer", "uncompressed", "lz4"),
	}
	if env.Options.Retention {
		list = append(list, draw("retention.ms", "1000", "5000", "60000"), draw("retention.bytes", "1000", "20000", "-1"))
	}
	if env.Options.UncleanElections {
		list = append(list, draw("unclean.leader.election.enable", "true", "false"))
	}
	if env.Options.MinInSync {
		list = append(list, func(env *Env) (string, string) {
			return "min.insync.replicas", strconv.Itoa(1 + env.Rand.IntN(int(env.Options.Topics[0].Replicas)))
		})
	}
	return list
}

// set gives a topic or brokers a setting; without a value it takes it away.
func (c *client) set(ctx context.Context, of kmsg.ConfigResourceType, name, key, value string) model.Error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = of, name
	k := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	k.Name, k.Op, k.Value = key, kmsg.IncrementalAlterConfigOpSet, &value
	if value == "" {
		k.Op, k.Value = kmsg.IncrementalAlterConfigOpDelete, nil
	}
	r.Configs = append(r.Configs, k)
	req.Resources = append(req.Resources, r)
	answer, err := c.askAny(ctx, req, adminTimeout)
	if err != nil {
		return noCode
	}
	return model.Error(answer.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode)
}
