package cases

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// reassignment asks for other replicas of a partition; none cancels.
func reassignment(topic string, partition int32, replicas ...int32) *kmsg.AlterPartitionAssignmentsRequest {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = 10_000
	t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	t.Topic = topic
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	p.Partition, p.Replicas = partition, replicas
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// reassigned sends a reassignment of one partition and returns its code.
func (w *world) reassigned(req *kmsg.AlterPartitionAssignmentsRequest) int16 {
	w.t.Helper()
	resp := ask[*kmsg.AlterPartitionAssignmentsResponse](w, 1, req)
	code(w.t, "reassign", resp.ErrorCode, model.None)
	return resp.Topics[0].Partitions[0].ErrorCode
}

// described is one resource in an answer to DescribeConfigs.
type described = kmsg.DescribeConfigsResponseResource

// describeConfigs asks a broker, by DescribeConfigs v4, about keys of a
// resource; none is all.
func (w *world) describeConfigs(broker int, kind kmsg.ConfigResourceType, name string, keys ...string) described {
	w.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.IncludeSynonyms, req.IncludeDocumentation = 4, true, true
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, keys
	req.Resources = append(req.Resources, r)
	return ask[*kmsg.DescribeConfigsResponse](w, broker, req).Resources[0]
}

// topicValue is the value of a topic's key as a broker tells it.
func (w *world) topicValue(broker int, topic, key string) string {
	w.t.Helper()
	r := w.describeConfigs(broker, kmsg.ConfigResourceTypeTopic, topic, key)
	if r.ErrorCode != 0 || len(r.Configs) != 1 || r.Configs[0].Value == nil {
		w.t.Fatalf("%s of %s: %v, %v", key, topic, model.Error(r.ErrorCode), r.Configs)
	}
	return *r.Configs[0].Value
}

// newTopic is one topic of a CreateTopics.
func newTopic(name string, partitions int32, replicas int16, pairs ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
	for key, value := range with(pairs...) {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = key, kmsg.StringPtr(value)
		t.Configs = append(t.Configs, c)
	}
	return t
}

// createTopics sends CreateTopics v7 to a broker.
func (w *world) createTopics(broker int, validate bool, topics ...kmsg.CreateTopicsRequestTopic) []kmsg.CreateTopicsResponseTopic {
	w.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly, req.Topics = 7, 10_000, validate, topics
	return ask[*kmsg.CreateTopicsResponse](w, broker, req).Topics
}

// deleteTopic deletes a topic by name and returns the code.
func (w *world) deleteTopic(broker int, topic string) int16 {
	w.t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis, req.TopicNames = 5, 10_000, []string{topic}
	return ask[*kmsg.DeleteTopicsResponse](w, broker, req).Topics[0].ErrorCode
}

// known asks a broker for a topic by Metadata v9; nothing is created.
func (w *world) known(broker int, topic string) kmsg.MetadataResponseTopic {
	w.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 9
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.MetadataResponse](w, broker, req).Topics[0]
}

// grow sends CreatePartitions v3 for one topic and returns the code. Each of the
// assignments is one new partition's replicas.
func (w *world) grow(topic string, count int32, validate bool, assignments ...[]int32) int16 {
	w.t.Helper()
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly = 3, 10_000, validate
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, count
	for _, replicas := range assignments {
		a := kmsg.NewCreatePartitionsRequestTopicAssignment()
		a.Replicas = replicas
		t.Assignment = append(t.Assignment, a)
	}
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.CreatePartitionsResponse](w, 1, req).Topics[0].ErrorCode
}

// soon is how long news takes to reach every broker.
const soon = time.Second
