package controller

import (
	"math"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producerBlock is how many producer ids a broker gets at once.
const producerBlock = 1000

// allocateProducerIDs answers an AllocateProducerIDs with a block of ids that
// nobody was given before. Errors: STALE_BROKER_EPOCH, UNKNOWN_SERVER_ERROR when
// there are none left. KIP-730.
func (s *State) allocateProducerIDs(c Call, r *kmsg.AllocateProducerIDsRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrAllocateProducerIDsResponse()
	resp.Version = r.Version
	if s.checkEpoch(model.BrokerID(r.BrokerID), r.BrokerEpoch) != "" {
		resp.ErrorCode = model.ErrStaleBrokerEpoch.Code()
		return d.result(resp)
	}
	first := s.img.NextProducerID()
	if first > math.MaxInt64-producerBlock {
		resp.ErrorCode = model.ErrUnknownServerError.Code()
		return d.result(resp)
	}
	d.emit(&metalog.ProducerIDs{
		BrokerID: model.BrokerID(r.BrokerID), BrokerEpoch: model.BrokerEpoch(r.BrokerEpoch),
		NextProducerID: first + producerBlock,
	})
	resp.ProducerIDStart, resp.ProducerIDLen = int64(first), producerBlock
	return d.result(resp)
}

// assignDirs answers an AssignReplicasToDirs, by which a broker says in which of
// its directories it keeps which replica. A replica in a directory that is not
// online leaves the ISR; one whose directory is gone, by a new disk, is no last
// known leader any more. Errors: STALE_BROKER_EPOCH; for a partition
// UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER when the
// broker has no replica of it. KIP-858.
func (s *State) assignDirs(c Call, r *kmsg.AssignReplicasToDirsRequest) Result {
	d := s.decide(c)
	resp := kmsg.NewPtrAssignReplicasToDirsResponse()
	resp.Version = r.Version
	broker := model.BrokerID(r.BrokerID)
	if s.checkEpoch(broker, r.BrokerEpoch) != "" {
		resp.ErrorCode = model.ErrStaleBrokerEpoch.Code()
		return d.result(resp)
	}
	seen := map[model.TopicIDPartition]bool{}
	for _, rd := range r.Directories {
		out := kmsg.NewAssignReplicasToDirsResponseDirectory()
		out.ID = rd.ID
		for _, rt := range rd.Topics {
			ot := kmsg.NewAssignReplicasToDirsResponseDirectoryTopic()
			ot.TopicID = rt.TopicID
			for _, rp := range rt.Partitions {
				tp := model.TopicIDPartition{TopicID: rt.TopicID, Partition: rp.Partition}
				op := kmsg.NewAssignReplicasToDirsResponseDirectoryTopicPartition()
				op.Partition = rp.Partition
				if seen[tp] {
					op.ErrorCode = model.ErrInvalidRequest.Code()
				} else {
					op.ErrorCode = d.assignDir(broker, tp, rd.ID).Code()
				}
				seen[tp] = true
				ot.Partitions = append(ot.Partitions, op)
			}
			out.Topics = append(out.Topics, ot)
		}
		resp.Directories = append(resp.Directories, out)
	}
	return d.result(resp)
}

// assignDir notes the directory of one replica.
func (d *decision) assignDir(b model.BrokerID, tp model.TopicIDPartition, dir model.UUID) model.Error {
	t := d.img.TopicByID(tp.TopicID)
	if t == nil {
		return model.ErrUnknownTopicID
	}
	if tp.Partition < 0 || int(tp.Partition) >= len(t.Partitions) {
		return model.ErrUnknownTopicOrPartition
	}
	p := t.Partitions[tp.Partition]
	if !contains(p.Replicas, b) {
		return model.ErrNotLeaderOrFollower
	}
	c := d.change(t, tp.Partition)
	online := d.img.Broker(b).Directories
	was := c.directory(b)
	c.dirOf, c.dir = b, dir
	c.replaced = !reserved(was) && !slices.Contains(online, was)
	if !slices.Contains(online, dir) {
		c.isr, c.leaving = without(p.ISR, b), b
		d.cause = ReasonDirectories
	}
	c.unclean = d.uncleanAllowed(t.Name)
	d.apply(c)
	return model.None
}
