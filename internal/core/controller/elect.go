package controller

import (
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxElections bounds the elections of one periodic step, so that heartbeats are
// answered in between.
const maxElections = 1000

// The election types of ElectLeaders.
const (
	electPreferred int8 = 0
	electUnclean   int8 = 1
)

// electLeaders answers an ElectLeaders; without a list of topics it tries every
// partition and tells only of those that changed or failed. Errors, for a
// partition: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED,
// PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE. KIP-460; R6.5,
// R6.6.
func (s *State) electLeaders(c Call, r *kmsg.ElectLeadersRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrElectLeadersResponse()
	resp.Version = r.Version
	kind := r.ElectionType
	if r.Version == 0 {
		kind = electPreferred
	}
	if kind != electPreferred && kind != electUnclean {
		resp.ErrorCode = model.ErrInvalidRequest.Code()
		return d.result(resp)
	}
	if r.Topics == nil {
		resp.Topics = d.electAll(kind)
		return d.result(resp)
	}
	seen := map[model.TopicPartition]bool{}
	for _, rt := range r.Topics {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic = rt.Topic
		for _, id := range rt.Partitions {
			tp := model.TopicPartition{Topic: rt.Topic, Partition: id}
			if !seen[tp] {
				out.Partitions = append(out.Partitions, d.electOne(s.img.TopicByName(rt.Topic), tp, kind))
			}
			seen[tp] = true
		}
		resp.Topics = append(resp.Topics, out)
	}
	return d.result(resp)
}

// electAll tries every partition.
func (d *decision) electAll(kind int8) []kmsg.ElectLeadersResponseTopic {
	topics := []kmsg.ElectLeadersResponseTopic{}
	for t := range d.img.Topics() {
		out := kmsg.NewElectLeadersResponseTopic()
		out.Topic = t.Name
		for id := range t.Partitions {
			p := d.electOne(t, model.TopicPartition{Topic: t.Name, Partition: int32(id)}, kind)
			if p.ErrorCode != model.ErrElectionNotNeeded.Code() {
				out.Partitions = append(out.Partitions, p)
			}
		}
		if len(out.Partitions) > 0 {
			topics = append(topics, out)
		}
	}
	return topics
}

// electOne runs one election that was asked for.
func (d *decision) electOne(t *image.Topic, tp model.TopicPartition, kind int8) kmsg.ElectLeadersResponseTopicPartition {
	out := kmsg.NewElectLeadersResponseTopicPartition()
	out.Partition = tp.Partition
	refuse := func(code model.Error, why string) kmsg.ElectLeadersResponseTopicPartition {
		out.ErrorCode, out.ErrorMessage = code.Code(), &why
		return out
	}
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.Partitions) {
		return refuse(model.ErrUnknownTopicOrPartition, fmt.Sprintf("No such partition as %v.", tp))
	}
	p := t.Partitions[tp.Partition]
	if kind == electUnclean && p.Leader != model.NoBroker {
		return refuse(model.ErrElectionNotNeeded, "The partition has a leader.")
	}
	if kind == electPreferred && len(p.Replicas) > 0 && p.Leader == p.Replicas[0] {
		return refuse(model.ErrElectionNotNeeded, "The preferred replica leads already.")
	}
	c := d.change(t, tp.Partition)
	c.preferred, c.unclean = kind == electPreferred, kind == electUnclean
	if d.apply(c) {
		return out
	}
	if kind == electPreferred {
		return refuse(model.ErrPreferredLeaderNotAvailable, "The preferred replica is not in the ISR or not alive.")
	}
	return refuse(model.ErrEligibleLeadersNotAvailable, "No replica is alive.")
}

// rebalance moves leaderships to preferred replicas, at most limit of them, and
// reports whether it stopped there.
func (d *decision) rebalance(limit int) (more bool) {
	moved := 0
	for t := range d.img.Topics() {
		for id, p := range t.Partitions {
			if len(p.Replicas) == 0 || p.Leader == p.Replicas[0] || p.Leader == model.NoBroker ||
				!contains(p.ISR, p.Replicas[0]) {
				continue
			}
			c := d.change(t, int32(id))
			c.preferred = true
			if !d.apply(c) {
				continue
			}
			if moved++; moved == limit {
				return true
			}
		}
	}
	return false
}
