package controller

import (
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// deleteTopics answers a DeleteTopics, by name or, from version 6, by name or
// id. Errors, for a topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID,
// INVALID_REQUEST (named twice, or by both or neither), TOPIC_DELETION_DISABLED
// (before version 3 INVALID_REQUEST). KIP-4, KIP-516.
func (s *State) deleteTopics(c Call, r *kmsg.DeleteTopicsRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrDeleteTopicsResponse()
	resp.Version = r.Version
	asked := r.Topics
	if r.Version < 6 {
		asked = make([]kmsg.DeleteTopicsRequestTopic, len(r.TopicNames))
		for i := range r.TopicNames {
			asked[i] = kmsg.NewDeleteTopicsRequestTopic()
			asked[i].Topic = &r.TopicNames[i]
		}
	}
	times, told := d.timesNamed(asked), map[model.UUID]bool{}
	missing := map[string]bool{}
	for i := range asked {
		t, no := d.findToDelete(&asked[i], r.Version)
		out := kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID = asked[i].Topic, asked[i].TopicID
		switch {
		case t != nil && told[t.ID] || no != nil && asked[i].Topic != nil && missing[*asked[i].Topic]:
			continue
		case t != nil && times[t.ID] > 1:
			no, told[t.ID] = refuse(model.ErrInvalidRequest, "Duplicate topic name or id."), true
		case t != nil:
			out.Topic, out.TopicID = &t.Name, t.ID
		case asked[i].Topic != nil:
			missing[*asked[i].Topic] = true
		}
		if no != nil {
			out.ErrorCode, out.ErrorMessage = no.code.Code(), &no.why
		} else {
			d.emit(&metalog.RemoveTopic{TopicID: t.ID})
			d.because(Reason{Code: ReasonTopicDeleted, Topic: t.Name})
		}
		resp.Topics = append(resp.Topics, out)
	}
	return d.result(resp)
}

// timesNamed counts how often each existing topic is asked for.
func (d *decision) timesNamed(asked []kmsg.DeleteTopicsRequestTopic) map[model.UUID]int {
	times := map[model.UUID]int{}
	for i := range asked {
		if t, _ := d.findToDelete(&asked[i], 6); t != nil {
			times[t.ID]++
		}
	}
	return times
}

// findToDelete finds the topic that one entry of a DeleteTopics means.
func (d *decision) findToDelete(a *kmsg.DeleteTopicsRequestTopic, version int16) (*image.Topic, *refusal) {
	id := model.UUID(a.TopicID)
	switch {
	case a.Topic != nil && !id.IsZero():
		return nil, refuse(model.ErrInvalidRequest, "You may not specify both topic name and topic id.")
	case a.Topic == nil && id.IsZero():
		return nil, refuse(model.ErrInvalidRequest, "Neither topic name nor id were specified.")
	case !d.s.cfg.DeleteTopics && version < 3:
		return nil, refuse(model.ErrInvalidRequest, "Topic deletion is disabled.")
	case !d.s.cfg.DeleteTopics:
		return nil, refuse(model.ErrTopicDeletionDisabled, "Topic deletion is disabled.")
	case a.Topic != nil:
		if t := d.img.TopicByName(*a.Topic); t != nil {
			return t, nil
		}
		return nil, refuse(model.ErrUnknownTopicOrPartition, "This server does not host this topic-partition.")
	}
	if t := d.img.TopicByID(id); t != nil {
		return t, nil
	}
	return nil, refuse(model.ErrUnknownTopicID, "This server does not host this topic ID.")
}

// createPartitions answers a CreatePartitions: topics grow to a count. Errors,
// for a topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS,
// INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, INVALID_REQUEST (named
// twice), POLICY_VIOLATION (too many at once). KIP-195.
func (s *State) createPartitions(c Call, r *kmsg.CreatePartitionsRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrCreatePartitionsResponse()
	resp.Version = r.Version
	times := map[string]int{}
	for i := range r.Topics {
		times[r.Topics[i].Topic]++
	}
	left := maxPartitions
	for i := range r.Topics {
		t := &r.Topics[i]
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		var no *refusal
		switch n := times[t.Topic]; {
		case n < 0:
			continue
		case n > 1:
			no, times[t.Topic] = refuse(model.ErrInvalidRequest, "Duplicate topic name."), -1
		default:
			no = d.growTopic(t, &left)
		}
		if no != nil {
			out.ErrorCode, out.ErrorMessage = no.code.Code(), &no.why
		}
		resp.Topics = append(resp.Topics, out)
	}
	if r.ValidateOnly {
		d.drop()
	}
	return d.result(resp)
}

// growTopic adds partitions to one topic.
func (d *decision) growTopic(r *kmsg.CreatePartitionsRequestTopic, left *int) *refusal {
	t := d.img.TopicByName(r.Topic)
	if t == nil {
		return refuse(model.ErrUnknownTopicOrPartition, "This server does not host this topic-partition.")
	}
	have := len(t.Partitions)
	add := int(r.Count) - have
	switch {
	case add == 0:
		return refuse(model.ErrInvalidPartitions, "Topic already has %d partition(s).", have)
	case add < 0:
		return refuse(model.ErrInvalidPartitions,
			"The topic %s currently has %d partition(s); %d would not be an increase.", t.Name, have, r.Count)
	case r.Assignment != nil && len(r.Assignment) != add:
		return refuse(model.ErrInvalidReplicaAssignment,
			"Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", add, len(r.Assignment))
	case add > *left:
		return tooMany()
	}
	*left -= add
	first := t.Partitions[0]
	size := len(without(first.Replicas, first.Removing...))
	parts, no := d.placeMore(r, add, size)
	if no != nil {
		return no
	}
	for i, replicas := range parts {
		d.emit(d.newPartition(t.ID, int32(have+i), replicas))
	}
	return nil
}

// placeMore returns the replicas of n more partitions with size replicas each.
func (d *decision) placeMore(r *kmsg.CreatePartitionsRequestTopic, n, size int) ([][]model.BrokerID, *refusal) {
	parts := make([][]model.BrokerID, n)
	if r.Assignment == nil {
		p := d.newPlacer()
		if why := p.check(size); why != "" {
			return nil, refuse(model.ErrInvalidReplicationFactor, "Unable to replicate the partition %d time(s): %s", size, why)
		}
		for i := range parts {
			parts[i] = p.place(size)
		}
		return parts, nil
	}
	for i, a := range r.Assignment {
		if why := d.checkAssignment(a.Replicas, size); why != "" {
			return nil, refuse(model.ErrInvalidReplicaAssignment, "%s", why)
		}
		parts[i] = toBrokers(a.Replicas)
		if len(d.active(parts[i])) == 0 {
			return nil, refuse(model.ErrInvalidReplicaAssignment,
				"All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", i)
		}
	}
	return parts, nil
}
