package node

import (
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// logConfig is the part of a topic's configuration that storage obeys.
func logConfig(t config.Topic) storage.LogConfig {
	return storage.LogConfig{
		SegmentBytes: t.SegmentBytes, SegmentMs: millis(t.SegmentAge), SegmentJitterMs: millis(t.SegmentJitter),
		SegmentIndexBytes: t.IndexBytes, IndexIntervalBytes: t.IndexInterval,
		RetentionMs: millis(t.Retention), RetentionBytes: t.RetentionBytes, Delete: t.CleanupDelete,
		FlushMessages: t.FlushMessages, FlushMs: millis(t.FlushInterval), FileDeleteDelay: t.FileDelay,
	}
}

// millis turns a setting back into Kafka's milliseconds: negative stays "no
// limit", for ever stays the largest number.
func millis(d time.Duration) int64 {
	switch {
	case d < 0:
		return -1
	case d == config.Forever:
		return 1<<63 - 1
	}
	return d.Milliseconds()
}

// controllerConfig is what the controller core takes from a node's settings.
func controllerConfig(cfg *config.Config) controller.Config {
	features := map[string]controller.FeatureRange{}
	for _, f := range brokerFeatures {
		features[f.name] = controller.FeatureRange{Min: f.min, Max: f.max}
	}
	return controller.Config{
		NodeID: cfg.NodeID, SessionTimeout: cfg.BrokerSessionTimeout, LivenessProbe: cfg.LivenessProbe,
		RebalanceInterval: cfg.LeaderImbalanceCheck, AutoRebalance: cfg.AutoLeaderRebalance,
		NumPartitions: cfg.NumPartitions, ReplicationFactor: cfg.DefaultReplicationFactor,
		DeleteTopics: cfg.DeleteTopics, Features: features, Configs: configTable{cfg},
	}
}

// configTable is the table of configurations as the controller core asks for it.
type configTable struct{ cfg *config.Config }

// Validate says why a value may not be stored, or nil.
func (t configTable) Validate(resource controller.ResourceType, name, key, value string) error {
	switch resource {
	case controller.ResourceTopic:
		return config.ValidateTopic(key, value)
	case controller.ResourceBroker:
		return config.ValidateBroker(key, value)
	case controller.ResourceGroup:
		return config.ValidateGroup(key, value)
	}
	return nil
}

// IsList says whether a key holds a list, and what a resource without an
// override has there.
func (t configTable) IsList(resource controller.ResourceType, key string) (bool, string) {
	d, ok := config.Lookup(config.Resource(resource), key)
	if !ok || d.Type != config.List {
		return false, ""
	}
	if d.Default == nil {
		return true, ""
	}
	return true, *d.Default
}

// Topic lists the effective configurations of a topic with these overrides.
func (t configTable) Topic(overrides, node, all map[string]string) []controller.TopicConfig {
	var out []controller.TopicConfig
	for _, e := range t.cfg.DescribeTopic(config.Dynamic{Cluster: all, Broker: node}, overrides) {
		out = append(out, controller.TopicConfig{Name: e.Name, Value: e.Value, ReadOnly: e.ReadOnly,
			Source: int8(e.Source), Sensitive: e.Sensitive})
	}
	return out
}

// Static returns this node's own value of a broker-wide key.
func (t configTable) Static(key string) string {
	if v, ok := t.cfg.Static()[key]; ok {
		return v
	}
	if d, ok := config.Lookup(config.BrokerResource, key); ok && d.Default != nil {
		return *d.Default
	}
	return fmt.Sprint(t.cfg.MinISR)
}

// maxGroupBatch bounds a batch of group records: Kafka's default
// max.message.bytes, which __consumer_offsets keeps.
const maxGroupBatch = 1048588

// groupConfig is what the group coordinator takes from a node's settings.
func groupConfig(cfg *config.Config) group.Config {
	return group.Config{
		MinSession: cfg.GroupMinSession, MaxSession: cfg.GroupMaxSession, InitialDelay: cfg.GroupInitialRebalanceDelay,
		MaxSize: cfg.GroupMaxSize, MetadataMax: cfg.OffsetMetadataMaxBytes, Retention: cfg.OffsetsRetention,
		CheckInterval: cfg.OffsetsRetentionCheck, WriteTimeout: cfg.OffsetsCommitTimeout,
	}
}
