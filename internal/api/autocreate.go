package api

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// autoTopics remembers which topics are being created, so that a client that
// asks every 100 ms does not queue as many requests.
type autoTopics struct {
	mu      sync.Mutex
	pending map[string]bool
}

// autoCreateTimeout bounds one try; a client that still wants the topic asks
// again.
const autoCreateTimeout = 5 * time.Second

// maxAutoCreate bounds the topics that are being created at one time.
const maxAutoCreate = 1000

// autoCreate asks the controller for topics that a client named and that do not
// exist. It does not wait: the client asks again (case B20).
func (a *API) autoCreate(ctx context.Context, names []string) {
	if fresh := a.topics.begin(names); len(fresh) > 0 {
		a.started.Go("create topics", func() {
			defer a.topics.end(fresh)
			a.createTopics(ctx, fresh)
		})
	}
}

// begin marks the names that are not being created yet, and returns them.
func (t *autoTopics) begin(names []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending = make(map[string]bool)
	}
	var fresh []string
	for _, name := range names {
		if !t.pending[name] && len(t.pending) < maxAutoCreate {
			t.pending[name] = true
			fresh = append(fresh, name)
		}
	}
	return fresh
}

func (t *autoTopics) end(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		delete(t.pending, name)
	}
}

func (a *API) createTopics(ctx context.Context, names []string) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 7
	req.TimeoutMillis = int32(autoCreateTimeout.Milliseconds())
	for _, name := range names {
		if t, ok := a.newTopic(name); ok {
			req.Topics = append(req.Topics, t)
		}
	}
	if len(req.Topics) == 0 {
		return
	}
	ctx, cancel := a.Runtime.WithTimeout(ctx, autoCreateTimeout)
	defer cancel()
	resp, err := a.Controller.Forward(ctx, req)
	if err != nil {
		a.Log.Warn("topics were not created on demand", "topics", names, "err", err)
		return
	}
	created, ok := resp.(*kmsg.CreateTopicsResponse)
	if !ok {
		return
	}
	for i := range created.Topics {
		t := &created.Topics[i]
		if t.ErrorCode != 0 && t.ErrorMessage != nil {
			a.Log.Info("a topic was not created on demand", "topic", t.Topic, "code", t.ErrorCode, "why", *t.ErrorMessage)
		}
	}
}

// newTopic is what a topic looks like that is created on demand. Topics of
// features that we do not serve are never created.
func (a *API) newTopic(name string) (kmsg.CreateTopicsRequestTopic, bool) {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	switch name {
	case transactionsTopic, shareTopic:
		return t, false
	case offsetsTopic:
		t.NumPartitions = a.Config.OffsetsTopicPartitions
		t.ReplicationFactor = a.Config.OffsetsTopicReplicationFactor
		t.Configs = append(t.Configs,
			newTopicConfig("cleanup.policy", "compact"),
			newTopicConfig("compression.type", "producer"),
			newTopicConfig("segment.bytes", strconv.Itoa(int(a.Config.OffsetsTopicSegmentBytes))))
	}
	return t, true
}

func newTopicConfig(name, value string) kmsg.CreateTopicsRequestTopicConfig {
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = name, &value
	return c
}
