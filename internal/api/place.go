package api

import (
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// hosted finds the replica of a partition that a request names, or says why
// there is none: UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER when
// only other brokers have one.
func (a *API) hosted(img *image.Image, topic string, partition int32) (*Hosted, model.Error) {
	if h := a.Data.Replicas.ByName(model.TopicPartition{Topic: topic, Partition: partition}); h != nil {
		return h, model.None
	}
	if t := img.TopicByName(topic); t == nil || partition < 0 || int(partition) >= len(t.Partitions) {
		return nil, model.ErrUnknownTopicOrPartition
	}
	return nil, model.ErrNotLeaderOrFollower
}

// repeated counts how often a request names each partition.
type repeated map[model.TopicPartition]int

func (r repeated) add(topic string, partition int32) {
	r[model.TopicPartition{Topic: topic, Partition: partition}]++
}

func (r repeated) twice(topic string, partition int32) bool {
	return r[model.TopicPartition{Topic: topic, Partition: partition}] > 1
}
