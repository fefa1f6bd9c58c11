package controller

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// proposal is one partition of an AlterPartition request.
type proposal struct {
	isr []model.BrokerID
	// epochs are the members' broker epochs in the order of isr;
	// UnknownBrokerEpoch where the leader does not know one (KIP-903).
	epochs     []model.BrokerEpoch
	leader     model.Epoch
	partition  model.PartitionEpoch
	recovering int8
}

// alterPartition answers an AlterPartition: the ISR that a leader proposes is
// taken or refused, partition by partition. Errors, for the whole request:
// STALE_BROKER_EPOCH; for a partition: those of checkProposal, and
// NEW_LEADER_ELECTED when the change ended a reassignment that moved the leader
// away from the sender, although it was made. KIP-497, 841, 903; R5.8, R5.9.
func (s *State) alterPartition(c Call, r *kmsg.AlterPartitionRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrAlterPartitionResponse()
	resp.Version = r.Version
	sender := model.BrokerID(r.BrokerID)
	if why := s.checkEpoch(sender, r.BrokerEpoch); why != "" {
		resp.ErrorCode = model.ErrStaleBrokerEpoch.Code()
		d.because(Reason{Code: ReasonRefused, Broker: sender, Error: model.ErrStaleBrokerEpoch, Detail: why})
		return d.result(resp)
	}
	seen := map[model.TopicIDPartition]bool{}
	for i := range r.Topics {
		t := &r.Topics[i]
		rt := kmsg.NewAlterPartitionResponseTopic()
		rt.TopidID = t.TopicID
		for j := range t.Partitions {
			tp := model.TopicIDPartition{TopicID: t.TopicID, Partition: t.Partitions[j].Partition}
			rt.Partitions = append(rt.Partitions, d.alterOne(sender, tp, &t.Partitions[j], seen[tp]))
			seen[tp] = true
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return d.result(resp)
}

// checkEpoch says why a broker epoch is not the registered one.
func (s *State) checkEpoch(id model.BrokerID, epoch int64) string {
	b := s.img.Broker(id)
	switch {
	case b == nil:
		return "the broker is not registered"
	case int64(b.Epoch) != epoch:
		return fmt.Sprintf("the request is of broker epoch %d, the broker is registered with %d", epoch, b.Epoch)
	}
	return ""
}

// alterOne decides one partition. again says that the same request names it
// before, so that its partition epoch is behind by now.
func (d *decision) alterOne(sender model.BrokerID, tp model.TopicIDPartition,
	r *kmsg.AlterPartitionRequestTopicPartition, again bool) kmsg.AlterPartitionResponseTopicPartition {
	out := kmsg.NewAlterPartitionResponseTopicPartition()
	out.Partition = tp.Partition
	pr := propose(r)
	t := d.img.TopicByID(tp.TopicID)
	code, why := d.checkProposal(sender, t, tp.Partition, pr)
	if code == model.None && again {
		code, why = model.ErrInvalidUpdateVersion, "the request names the partition twice"
	}
	if code != model.None {
		reason := Reason{Code: ReasonRefused, Broker: sender, Partition: tp.Partition, Error: code, Detail: why}
		if reason.Topic = tp.TopicID.String(); t != nil {
			reason.Topic = t.Name
		}
		d.because(reason)
		out.ErrorCode = code.Code()
		return out
	}
	c := d.change(t, tp.Partition)
	c.isr, c.recovering = pr.isr, pr.recovering == int8(metalog.Recovering)
	c.unclean = d.uncleanAllowed(t.Name)
	changed := d.apply(c)
	if changed && c.election.Leader != sender {
		out.ErrorCode = model.ErrNewLeaderElected.Code()
		return out
	}
	out.LeaderID, out.LeaderEpoch = int32(c.election.Leader), int32(c.election.LeaderEpoch)
	out.PartitionEpoch, out.ISR = int32(c.p.PartitionEpoch), toInts(c.p.ISR)
	if changed {
		out.PartitionEpoch, out.ISR = out.PartitionEpoch+1, toInts(c.isr)
	}
	if c.recovering {
		out.LeaderRecoveryState = int8(metalog.Recovering)
	}
	return out
}

// propose reads what a request says of one partition; versions before 3 name no
// broker epochs.
func propose(r *kmsg.AlterPartitionRequestTopicPartition) proposal {
	pr := proposal{
		leader: model.Epoch(r.LeaderEpoch), partition: model.PartitionEpoch(r.PartitionEpoch),
		recovering: r.LeaderRecoveryState,
	}
	for _, m := range r.NewEpochISR {
		pr.isr = append(pr.isr, model.BrokerID(m.BrokerID))
		pr.epochs = append(pr.epochs, model.BrokerEpoch(m.BrokerEpoch))
	}
	for _, b := range r.NewISR {
		pr.isr = append(pr.isr, model.BrokerID(b))
		pr.epochs = append(pr.epochs, model.UnknownBrokerEpoch)
	}
	return pr
}

// checkProposal says why a proposed ISR is refused, in the order of R5.8:
// UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_CONTROLLER (the sender knows
// more than we do, so we are a controller of the past), FENCED_LEADER_EPOCH,
// INVALID_REQUEST (not the leader), INVALID_UPDATE_VERSION, INVALID_REQUEST (an
// ISR that cannot be), INELIGIBLE_REPLICA.
func (d *decision) checkProposal(sender model.BrokerID, t *image.Topic, id int32, pr proposal) (model.Error, string) {
	if t == nil {
		return model.ErrUnknownTopicID, "the topic does not exist"
	}
	if id < 0 || int(id) >= len(t.Partitions) {
		return model.ErrUnknownTopicOrPartition, "the partition does not exist"
	}
	p := t.Partitions[id]
	switch {
	case pr.leader > p.LeaderEpoch || pr.partition > p.PartitionEpoch:
		return model.ErrNotController, fmt.Sprintf("it is at leader epoch %d, partition epoch %d; this controller at %d, %d",
			pr.leader, pr.partition, p.LeaderEpoch, p.PartitionEpoch)
	case pr.leader < p.LeaderEpoch:
		return model.ErrFencedLeaderEpoch, fmt.Sprintf("leader epoch %d is over, it is %d", pr.leader, p.LeaderEpoch)
	case sender != p.Leader:
		return model.ErrInvalidRequest, fmt.Sprintf("the leader is %s", leaderName(p.Leader))
	case pr.partition < p.PartitionEpoch:
		return model.ErrInvalidUpdateVersion, fmt.Sprintf("partition epoch %d is over, it is %d", pr.partition, p.PartitionEpoch)
	}
	if why := checkISR(p, sender, pr); why != "" {
		return model.ErrInvalidRequest, why
	}
	for i, b := range pr.isr {
		if why := d.ineligible(b, pr.epochs[i]); why != "" {
			return model.ErrIneligibleReplica, fmt.Sprintf("replica %d %s", b, why)
		}
	}
	return model.None, ""
}

// checkISR says why a proposed ISR cannot be, whoever its members are.
func checkISR(p *image.Partition, leader model.BrokerID, pr proposal) string {
	recovering := pr.recovering == int8(metalog.Recovering)
	switch {
	case len(pr.isr) > len(p.Replicas):
		return fmt.Sprintf("the ISR has %d members, the partition %d replicas", len(pr.isr), len(p.Replicas))
	case !slices.Contains(pr.isr, leader):
		return "the ISR lacks the leader"
	case pr.recovering != int8(metalog.Recovered) && !recovering:
		return fmt.Sprintf("recovery state %d is unknown", pr.recovering)
	case recovering && len(pr.isr) > 1:
		return "the ISR of a recovering leader holds only itself"
	case recovering && !p.Recovering:
		return "a recovered partition does not go back to recovering"
	}
	for i, b := range pr.isr {
		if slices.Contains(pr.isr[:i], b) {
			return fmt.Sprintf("the ISR names %d twice", b)
		}
		if !slices.Contains(p.Replicas, b) {
			return fmt.Sprintf("the ISR names %d, which is no replica", b)
		}
	}
	return ""
}

// ineligible says why a broker may not be in an ISR. An epoch that the leader
// knows must be the registered one, so that an old incarnation's fetch cannot
// vouch for the new one (KIP-903).
func (d *decision) ineligible(b model.BrokerID, epoch model.BrokerEpoch) string {
	br := d.img.Broker(b)
	switch {
	case br == nil:
		return "is not registered"
	case br.Fenced:
		return "is fenced"
	case br.InControlledShutdown:
		return "is shutting down"
	case epoch != model.UnknownBrokerEpoch && epoch != br.Epoch:
		return fmt.Sprintf("was heard of in broker epoch %d and is registered with %d", epoch, br.Epoch)
	}
	return ""
}
