package controller

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reassign answers an AlterPartitionReassignments: a target starts, or
// redirects, the reassignment of a partition; no target cancels it. Errors, for a
// partition: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT,
// INVALID_REPLICATION_FACTOR, NO_REASSIGNMENT_IN_PROGRESS. KIP-455, 860; R6.16,
// R6.17.
func (s *State) reassign(c Call, r *kmsg.AlterPartitionAssignmentsRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
	resp.Version = r.Version
	keepSize := r.Version >= 1 && !r.AllowReplicationFactorChange
	resp.AllowReplicationFactorChange = !keepSize
	seen := map[model.TopicPartition]bool{}
	for i := range r.Topics {
		t := &r.Topics[i]
		out := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			tp := model.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			no := refuse(model.ErrInvalidReplicaAssignment, "The request names the partition twice.")
			if !seen[tp] {
				no = d.reassignOne(tp, p.Replicas, keepSize)
			}
			seen[tp] = true
			op := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			op.Partition = p.Partition
			if no != nil {
				op.ErrorCode, op.ErrorMessage = no.code.Code(), &no.why
			}
			out.Partitions = append(out.Partitions, op)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return d.result(resp)
}

// reassignOne starts or cancels the reassignment of one partition.
func (d *decision) reassignOne(tp model.TopicPartition, target []int32, keepSize bool) *refusal {
	t := d.img.TopicByName(tp.Topic)
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.Partitions) {
		return refuse(model.ErrUnknownTopicOrPartition, "Unable to find the partition %v.", tp)
	}
	if target == nil {
		return d.cancel(t, tp.Partition)
	}
	if why := d.checkAssignment(target, -1); why != "" {
		return refuse(model.ErrInvalidReplicaAssignment, "%s", why)
	}
	p := t.Partitions[tp.Partition]
	if now := len(without(p.Replicas, p.Removing...)); keepSize && now != len(target) {
		return refuse(model.ErrInvalidReplicationFactor,
			"The replication factor would change from %d to %d.", now, len(target))
	}
	c := d.change(t, tp.Partition)
	goal := toBrokers(target)
	c.adding, c.removing = without(goal, p.Replicas...), without(p.Replicas, goal...)
	slices.Sort(c.adding)
	slices.Sort(c.removing)
	c.replicas = slices.Concat(goal, c.removing)
	c.unclean = d.uncleanAllowed(t.Name)
	c.done = len(c.adding)+len(c.removing) == 0 // only the order changes
	if d.apply(c) && !c.done {
		d.because(Reason{Code: ReasonReassigning, Topic: t.Name, Partition: tp.Partition, Brokers: goal})
	}
	return nil
}

// cancel takes a reassignment back: the adding replicas leave. If only they are
// in sync, the old replicas can take over cleanly from the ELR, or else only
// where unclean elections are allowed (R6.17).
func (d *decision) cancel(t *image.Topic, id int32) *refusal {
	p := t.Partitions[id]
	if len(p.Adding) == 0 && len(p.Removing) == 0 {
		return refuse(model.ErrNoReassignmentInProgress, "No reassignment is in progress.")
	}
	c := d.change(t, id)
	c.replicas, c.isr = without(p.Replicas, p.Adding...), without(p.ISR, p.Adding...)
	c.adding, c.removing = nil, nil
	c.unclean = d.uncleanAllowed(t.Name)
	rec := c.build()
	if c.election.Leader == model.NoBroker && (p.Leader != model.NoBroker || len(c.isr)+len(c.elr) == 0) {
		return refuse(model.ErrInvalidReplicaAssignment,
			"Taking the reassignment back would need an unclean leader election, which is not allowed or which nobody can win.")
	}
	d.emit(rec)
	c.explain()
	d.because(Reason{Code: ReasonCancelled, Topic: t.Name, Partition: id, Brokers: c.replicas})
	return nil
}

// checkAssignment says what is wrong with a replica list that a request gives:
// it must name registered brokers, each once, and size of them if size >= 0.
func (d *decision) checkAssignment(replicas []int32, size int) string {
	if len(replicas) == 0 {
		return "The manual partition assignment includes an empty replica list."
	}
	for i, b := range replicas {
		if d.img.Broker(model.BrokerID(b)) == nil {
			return fmt.Sprintf("The manual partition assignment includes broker %d, but no such broker is registered.", b)
		}
		if slices.Contains(replicas[:i], b) {
			return fmt.Sprintf("The manual partition assignment includes the broker %d more than once.", b)
		}
	}
	if size >= 0 && len(replicas) != size {
		return fmt.Sprintf("The manual partition assignment includes a partition with %d replica(s), "+
			"but this is not consistent with previous partitions, which have %d replica(s).", len(replicas), size)
	}
	return ""
}

// listReassignments answers a ListPartitionReassignments: all reassignments in
// progress, or those of the partitions asked for. KIP-455.
func (s *State) listReassignments(r *kmsg.ListPartitionReassignmentsRequest) Result {
	resp := kmsg.NewPtrListPartitionReassignmentsResponse()
	resp.Version = r.Version
	resp.Topics = []kmsg.ListPartitionReassignmentsResponseTopic{}
	if r.Topics == nil {
		for tp := range s.img.Reassigning() {
			listReassignment(resp, s.img.TopicByID(tp.TopicID), tp.Partition)
		}
	}
	for _, rt := range r.Topics {
		t := s.img.TopicByName(rt.Topic)
		for _, id := range rt.Partitions {
			if t != nil && id >= 0 && int(id) < len(t.Partitions) {
				listReassignment(resp, t, id)
			}
		}
	}
	return Result{Response: resp}
}

// listReassignment adds one partition to an answer, if it is being reassigned.
func listReassignment(resp *kmsg.ListPartitionReassignmentsResponse, t *image.Topic, id int32) {
	p := t.Partitions[id]
	if len(p.Adding) == 0 && len(p.Removing) == 0 {
		return
	}
	if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != t.Name {
		rt := kmsg.NewListPartitionReassignmentsResponseTopic()
		rt.Topic = t.Name
		resp.Topics = append(resp.Topics, rt)
	}
	rp := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
	rp.Partition, rp.Replicas = id, toInts(p.Replicas)
	rp.AddingReplicas, rp.RemovingReplicas = toInts(p.Adding), toInts(p.Removing)
	last := &resp.Topics[len(resp.Topics)-1]
	last.Partitions = append(last.Partitions, rp)
}
