package api

import "github.com/tidemark-log/tidemark/internal/core/model"

// repeated counts how often a request names each partition.
type repeated map[model.TopicPartition]int

func (r repeated) add(topic string, partition int32) {
	r[model.TopicPartition{Topic: topic, Partition: partition}]++
}

func (r repeated) twice(topic string, partition int32) bool {
	return r[model.TopicPartition{Topic: topic, Partition: partition}] > 1
}
