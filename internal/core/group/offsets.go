package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Versions from which on offset requests behave differently.
const (
	commitGroupNotFound = 9  // says GROUP_ID_NOT_FOUND for a group that is none
	offsetTopicIDs      = 10 // topics are named by id
	fetchTopLevelError  = 2
	fetchManyGroups     = 8
)

// commit is an OffsetCommit on its way into the log.
type commit struct {
	g       *group
	resp    *kmsg.OffsetCommitResponse
	to      any
	written []*kmsg.OffsetCommitResponseTopicPartition
	keys    []topicPartition
	values  []offset
}

// offsetCommit stores offsets; it answers when they are committed. Errors, for
// all: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
// REBALANCE_IN_PROGRESS, GROUP_ID_NOT_FOUND; for single partitions:
// UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE,
// INVALID_COMMIT_OFFSET_SIZE. KIP-98, 211, 320.
func (s *Shard) offsetCommit(r Request, req *kmsg.OffsetCommitRequest) {
	c := &commit{to: r.To, resp: req.ResponseKind().(*kmsg.OffsetCommitResponse)}
	wanted := s.layoutCommit(c, req)
	if wanted > 0 {
		if err := s.checkCommit(req); err != model.None {
			eachCommitted(c.resp, func(p *kmsg.OffsetCommitResponseTopicPartition) {
				if p.ErrorCode == 0 {
					p.ErrorCode = int16(err)
				}
			})
		} else {
			s.collectCommit(c, req)
		}
	}
	if len(c.keys) == 0 {
		s.reply(c.to, c.resp)
		return
	}
	s.writeCommit(c, req.Group)
}

// layoutCommit fills the response with a place for each partition, with an
// error where there is no such partition, and counts the others.
func (s *Shard) layoutCommit(c *commit, req *kmsg.OffsetCommitRequest) (wanted int) {
	for i := range req.Topics {
		t := &req.Topics[i]
		e := kmsg.NewOffsetCommitResponseTopic()
		e.Topic, e.TopicID = t.Topic, t.TopicID
		name, err := t.Topic, model.None
		if req.Version >= offsetTopicIDs {
			var ok bool
			if name, ok = s.cfg.Topics.Name(t.TopicID); !ok {
				err = model.ErrUnknownTopicID
			}
		}
		count := s.cfg.Topics.Partitions(name)
		for _, p := range t.Partitions {
			ep := kmsg.NewOffsetCommitResponseTopicPartition()
			ep.Partition, ep.ErrorCode = p.Partition, int16(err)
			if err == model.None && (p.Partition < 0 || p.Partition >= count) {
				ep.ErrorCode = int16(model.ErrUnknownTopicOrPartition)
			}
			if ep.ErrorCode == 0 {
				wanted++
			}
			e.Partitions = append(e.Partitions, ep)
		}
		c.resp.Topics = append(c.resp.Topics, e)
	}
	return wanted
}

func eachCommitted(resp *kmsg.OffsetCommitResponse, fn func(*kmsg.OffsetCommitResponseTopicPartition)) {
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			fn(&resp.Topics[i].Partitions[j])
		}
	}
}

// checkCommit says whether the client may commit for the group. A client that
// does not use membership may while the group has no members. A commit of a
// member counts as its heartbeat.
func (s *Shard) checkCommit(req *kmsg.OffsetCommitRequest) model.Error {
	g := s.groups[req.Group]
	switch {
	case len(req.Group) > maxString:
		return model.ErrInvalidGroupID
	case g == nil && req.Generation < 0:
		return model.None
	case g == nil && req.Version >= commitGroupNotFound:
		return model.ErrGroupIDNotFound
	case g == nil:
		return model.ErrIllegalGeneration
	case req.Generation < 0 && g.state == Empty:
		return model.None
	case req.Generation < 0 && req.MemberID == "" && req.InstanceID == nil:
		return model.ErrUnknownMemberID
	}
	if err := g.check(req.MemberID, req.InstanceID); err != model.None {
		return err
	}
	switch {
	case req.Generation != g.generation:
		return model.ErrIllegalGeneration
	case g.state == Completing:
		return model.ErrRebalanceInProgress
	}
	m := g.byID[req.MemberID]
	s.expectHeartbeat(g, m, m.sessionTimeout)
	return model.None
}

// collectCommit takes the partitions that are in order.
func (s *Shard) collectCommit(c *commit, req *kmsg.OffsetCommitRequest) {
	for i := range req.Topics {
		name := req.Topics[i].Topic
		if req.Version >= offsetTopicIDs {
			name, _ = s.cfg.Topics.Name(req.Topics[i].TopicID)
		}
		for j, p := range req.Topics[i].Partitions {
			ep := &c.resp.Topics[i].Partitions[j]
			if ep.ErrorCode != 0 {
				continue
			}
			o := offset{
				offset: model.Offset(p.Offset), leaderEpoch: model.Epoch(p.LeaderEpoch), metadata: deref(p.Metadata), committed: s.wall,
			}
			if len(o.metadata) > min(s.cfg.MetadataMax, maxString) {
				ep.ErrorCode = int16(model.ErrOffsetMetadataTooLarge)
				continue
			}
			if req.RetentionTimeMillis > 0 {
				o.expires = s.wall + model.Millis(min(req.RetentionTimeMillis, 1<<53))
			}
			c.written = append(c.written, ep)
			c.keys = append(c.keys, topicPartition{name, p.Partition})
			c.values = append(c.values, o)
		}
	}
}

// writeCommit sends the offsets to the log; they are visible once committed.
func (s *Shard) writeCommit(c *commit, id string) {
	c.g = s.ensure(id)
	records := make([]Record, len(c.keys))
	for i, k := range c.keys {
		records[i] = offsetRecord(id, k, c.values[i])
		c.g.inFlight[k]++
	}
	s.append(records, func(err model.Error) {
		if err == model.ErrUnknownServerError {
			err = model.ErrInvalidCommitOffsetSize // the batch was too large
		}
		for _, p := range c.written {
			p.ErrorCode = int16(err)
		}
		s.reply(c.to, c.resp)
	}, func(committed bool) {
		for i, k := range c.keys {
			if c.g.inFlight[k]--; c.g.inFlight[k] == 0 {
				delete(c.g.inFlight, k)
			}
			if committed {
				c.g.offsets[k] = c.values[i]
			}
		}
		s.dropIfHollow(c.g)
	})
}

// offsetFetch tells committed offsets. A partition without one answers -1,
// whether or not group and topic exist. Errors per partition:
// UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_ID. KIP-447, 709.
func (s *Shard) offsetFetch(r Request, req *kmsg.OffsetFetchRequest) {
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	if req.Version < fetchManyGroups {
		v := s.view(req.Group, req.RequireStable)
		for _, t := range v.topics(req.Topics, req.Topics == nil && req.Version >= fetchTopLevelError) {
			e := kmsg.NewOffsetFetchResponseTopic()
			e.Topic = t.topic
			for _, p := range t.partitions {
				e.Partitions = append(e.Partitions, kmsg.OffsetFetchResponseTopicPartition(v.partition(t.topic, p)))
			}
			resp.Topics = append(resp.Topics, e)
		}
	}
	for i := range req.Groups {
		resp.Groups = append(resp.Groups, s.fetchGroup(&req.Groups[i], req))
	}
	s.reply(r.To, resp)
}

func (s *Shard) fetchGroup(g *kmsg.OffsetFetchRequestGroup, req *kmsg.OffsetFetchRequest) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = g.Group
	v := s.view(g.Group, req.RequireStable)
	byID := req.Version >= offsetTopicIDs
	if g.Topics == nil {
		for _, t := range v.topics(nil, true) {
			id, known := s.cfg.Topics.ID(t.topic)
			if byID && !known {
				continue // its topic was deleted
			}
			out.Topics = append(out.Topics, v.answer(t.topic, id, t.partitions))
		}
		return out
	}
	for _, t := range g.Topics {
		name, known := t.Topic, true
		if byID {
			name, known = s.cfg.Topics.Name(t.TopicID)
		}
		e := v.answer(name, t.TopicID, t.Partitions)
		if !known {
			for j := range e.Partitions {
				e.Partitions[j].ErrorCode = int16(model.ErrUnknownTopicID)
			}
		}
		out.Topics = append(out.Topics, e)
	}
	return out
}

// view is the offsets of one group as a fetch sees them.
type view struct {
	g *group // nil when there is none
	// unstable holds what a transaction without a marker is about to change.
	unstable map[topicPartition]bool
}

func (s *Shard) view(id string, stable bool) view {
	v := view{g: s.groups[id]}
	if !stable || len(s.txns) == 0 {
		return v
	}
	v.unstable = map[topicPartition]bool{}
	for _, offsets := range s.txns {
		for _, o := range offsets {
			if o.group == id {
				v.unstable[o.key] = true
			}
		}
	}
	return v
}

type topicPartitions struct {
	topic      string
	partitions []int32
}

// topics are those asked for, or all that have an offset, in order.
func (v view) topics(asked []kmsg.OffsetFetchRequestTopic, all bool) []topicPartitions {
	var out []topicPartitions
	if !all {
		for _, t := range asked {
			out = append(out, topicPartitions{t.Topic, t.Partitions})
		}
		return out
	}
	if v.g == nil {
		return nil
	}
	for _, k := range sortedKeys(v.g.offsets) {
		if n := len(out); n == 0 || out[n-1].topic != k.topic {
			out = append(out, topicPartitions{topic: k.topic})
		}
		t := &out[len(out)-1]
		t.partitions = append(t.partitions, k.partition)
	}
	return out
}

func sortedKeys[V any](m map[topicPartition]V) []topicPartition {
	keys := make([]topicPartition, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, topicPartition.compare)
	return keys
}

func (v view) partition(topic string, p int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	e := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	metadata := ""
	e.Partition, e.Offset, e.Metadata = p, int64(model.UnknownOffset), &metadata
	key := topicPartition{topic, p}
	if v.unstable[key] {
		e.ErrorCode = int16(model.ErrUnstableOffsetCommit)
		return e
	}
	if v.g == nil {
		return e
	}
	if o, ok := v.g.offsets[key]; ok {
		metadata = o.metadata
		e.Offset, e.LeaderEpoch = int64(o.offset), int32(o.leaderEpoch)
	}
	return e
}

func (v view) answer(topic string, id model.UUID, partitions []int32) kmsg.OffsetFetchResponseGroupTopic {
	e := kmsg.NewOffsetFetchResponseGroupTopic()
	e.Topic, e.TopicID = topic, id
	for _, p := range partitions {
		e.Partitions = append(e.Partitions, v.partition(topic, p))
	}
	return e
}

// offsetDelete drops offsets of topics that nobody in the group subscribes to.
// Errors: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP; per partition
// UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC. KIP-496.
func (s *Shard) offsetDelete(r Request, req *kmsg.OffsetDeleteRequest) {
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	g := s.groups[req.Group]
	switch {
	case req.Group == "":
		resp.ErrorCode = int16(model.ErrInvalidGroupID)
	case g == nil:
		resp.ErrorCode = int16(model.ErrGroupIDNotFound)
	case g.state != Empty && g.protocolType != consumerProtocol:
		resp.ErrorCode = int16(model.ErrNonEmptyGroup)
	}
	if resp.ErrorCode != 0 {
		s.reply(r.To, resp)
		return
	}
	gone := s.collectDelete(g, req, resp)
	s.bury(g, gone, false, func(err model.Error) {
		resp.ErrorCode = int16(err)
		if err != model.None {
			resp.Topics = nil
		}
		s.reply(r.To, resp)
	})
}

// collectDelete fills the response in and returns what there is to delete.
func (s *Shard) collectDelete(g *group, req *kmsg.OffsetDeleteRequest, resp *kmsg.OffsetDeleteResponse) (gone []topicPartition) {
	for _, t := range req.Topics {
		e := kmsg.NewOffsetDeleteResponseTopic()
		e.Topic = t.Topic
		for _, p := range t.Partitions {
			ep := kmsg.NewOffsetDeleteResponseTopicPartition()
			ep.Partition = p.Partition
			switch key := (topicPartition{t.Topic, p.Partition}); {
			case g.subscribesTo(t.Topic):
				ep.ErrorCode = int16(model.ErrGroupSubscribedToTopic)
			case g.holds(key):
				gone = append(gone, key)
			case s.cfg.Topics.Partitions(t.Topic) == 0:
				ep.ErrorCode = int16(model.ErrUnknownTopicOrPartition)
			}
			e.Partitions = append(e.Partitions, ep)
		}
		resp.Topics = append(resp.Topics, e)
	}
	return gone
}

// holds reports whether an offset is stored or on its way into the log.
func (g *group) holds(k topicPartition) bool {
	_, ok := g.offsets[k]
	return ok || g.inFlight[k] > 0
}
