package group

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Versions of what is written to __consumer_offsets; brokers since 2.3 read
// them, and the console tools of Kafka too.
const (
	offsetKeyVersion         = 1
	groupKeyVersion          = 2
	offsetValueVersion       = 3
	offsetValueExpireVersion = 1 // the only one with a time of expiry
	groupValueVersion        = 3
)

// offset is a committed position. expires is 0 unless an old client named a
// retention of its own.
type offset struct {
	offset      model.Offset
	leaderEpoch model.Epoch
	metadata    string
	committed   model.Millis
	expires     model.Millis
}

// txnOffset is an offset inside a transaction without a marker.
type txnOffset struct {
	group string
	key   topicPartition
	value offset
}

func offsetKey(group string, tp topicPartition) []byte {
	k := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: group, Topic: tp.topic, Partition: tp.partition}
	return k.AppendTo(nil)
}

func offsetRecord(group string, tp topicPartition, o offset) Record {
	v := kmsg.OffsetCommitValue{
		Version: offsetValueVersion, Offset: int64(o.offset), LeaderEpoch: int32(o.leaderEpoch),
		Metadata: o.metadata, CommitTimestamp: int64(o.committed),
	}
	if o.expires > 0 {
		v.Version, v.ExpireTimestamp = offsetValueExpireVersion, int64(o.expires)
	}
	return Record{Key: offsetKey(group, tp), Value: v.AppendTo(nil)}
}

func groupKey(id string) []byte {
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: id}
	return k.AppendTo(nil)
}

// record is the group as it is, with the assignments given, or those that the
// members have when given is nil.
func (g *group) record(wall model.Millis, given map[string][]byte) Record {
	v := kmsg.GroupMetadataValue{
		Version: groupValueVersion, ProtocolType: g.protocolType, Generation: g.generation, CurrentStateTimestamp: int64(g.since),
	}
	if given != nil {
		v.CurrentStateTimestamp = int64(wall) // it will be stable from here on
	}
	if len(g.members) > 0 {
		v.Protocol, v.Leader = &g.protocol, &g.leader
	}
	for _, m := range g.members {
		e := kmsg.NewGroupMetadataValueMember()
		e.MemberID, e.InstanceID, e.ClientID, e.ClientHost = m.id, m.instance, m.clientID, m.host
		e.RebalanceTimeoutMillis, e.SessionTimeoutMillis = int32(m.rebalanceTimeout.Milliseconds()), int32(m.sessionTimeout.Milliseconds())
		e.Subscription, e.Assignment = m.metadata(g.protocol), m.assignment
		if given != nil {
			e.Assignment = given[m.id]
		}
		v.Members = append(v.Members, e)
	}
	return Record{Key: groupKey(g.id), Value: v.AppendTo(nil)}
}

var errUnknownKey = errors.New("a key of a kind that this broker does not know")

// Replay folds one record of the log in. id is the producer of its batch if
// that was transactional, else NoProducerID: such offsets wait for the marker
// (see EndTransaction). A record that cannot be read is reported and changes
// nothing.
func (s *Shard) Replay(rec Record, id model.ProducerID) error {
	if len(rec.Key) < 2 {
		return errUnknownKey
	}
	switch version := int16(rec.Key[0])<<8 | int16(rec.Key[1]); version {
	case 0, 1:
		var k kmsg.OffsetCommitKey
		if err := k.ReadFrom(rec.Key); err != nil {
			return fmt.Errorf("read the key of an offset: %w", err)
		}
		return s.replayOffset(k, rec.Value, id)
	case 2:
		var k kmsg.GroupMetadataKey
		if err := k.ReadFrom(rec.Key); err != nil {
			return fmt.Errorf("read the key of a group: %w", err)
		}
		return s.replayGroup(k.Group, rec.Value)
	default:
		return fmt.Errorf("key version %d: %w", version, errUnknownKey)
	}
}

func (s *Shard) replayOffset(k kmsg.OffsetCommitKey, value []byte, id model.ProducerID) error {
	tp := topicPartition{k.Topic, k.Partition}
	if value == nil {
		if g := s.groups[k.Group]; g != nil {
			delete(g.offsets, tp)
			s.dropIfHollow(g)
		}
		return nil
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(value); err != nil {
		return fmt.Errorf("read the offset of group %q for %s-%d: %w", k.Group, k.Topic, k.Partition, err)
	}
	o := offset{
		offset: model.Offset(v.Offset), leaderEpoch: model.Epoch(v.LeaderEpoch), metadata: v.Metadata,
		committed: model.Millis(v.CommitTimestamp), expires: model.Millis(max(v.ExpireTimestamp, 0)),
	}
	if v.Version < 3 {
		o.leaderEpoch = model.NoEpoch
	}
	if id != model.NoProducerID {
		s.txns[id] = append(s.txns[id], txnOffset{group: k.Group, key: tp, value: o})
		return nil
	}
	s.ensure(k.Group).offsets[tp] = o
	return nil
}

// EndTransaction folds in the marker that ends a producer's transaction.
func (s *Shard) EndTransaction(id model.ProducerID, commit bool) {
	if commit {
		for _, t := range s.txns[id] {
			s.ensure(t.group).offsets[t.key] = t.value
		}
	}
	delete(s.txns, id)
}

func (s *Shard) replayGroup(id string, value []byte) error {
	if value == nil {
		if g := s.groups[id]; g != nil {
			s.forgetMembers(g)
			g.protocolType, g.generation = "", 0
			s.dropIfHollow(g)
		}
		return nil
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return fmt.Errorf("read group %q: %w", id, err)
	}
	if twice := repeated(v.Members); twice != "" {
		return fmt.Errorf("read group %q: it names member %q twice", id, twice)
	}
	g := s.ensure(id)
	s.forgetMembers(g)
	g.generation, g.since = v.Generation, model.Millis(v.CurrentStateTimestamp)
	g.protocol, g.leader = deref(v.Protocol), ""
	for i := range v.Members {
		g.add(loadedMember(&v.Members[i], g.protocol), v.ProtocolType)
	}
	g.protocolType = v.ProtocolType
	if len(g.members) == 0 {
		g.state, g.protocol = Empty, "" // nobody speaks it
		return nil
	}
	g.state, g.leader = Stable, deref(v.Leader)
	g.subscribed = g.subscriptions()
	return nil
}

// repeated returns an id of a member, or of a static instance, that stands twice
// in the list; empty when there is none.
func repeated(members []kmsg.GroupMetadataValueMember) string {
	seen, static := map[string]bool{}, map[string]bool{}
	for _, m := range members {
		if seen[m.MemberID] || m.InstanceID != nil && static[*m.InstanceID] {
			return m.MemberID
		}
		seen[m.MemberID] = true
		if m.InstanceID != nil {
			static[*m.InstanceID] = true
		}
	}
	return ""
}

func loadedMember(v *kmsg.GroupMetadataValueMember, chosen string) *member {
	m := &member{
		id: v.MemberID, instance: v.InstanceID, clientID: v.ClientID, host: v.ClientHost,
		sessionTimeout: millis(v.SessionTimeoutMillis), rebalanceTimeout: millis(v.RebalanceTimeoutMillis),
		protocols:  []protocol{{name: chosen, metadata: append([]byte(nil), v.Subscription...)}},
		assignment: append([]byte(nil), v.Assignment...),
	}
	m.sessionTimeout = max(m.sessionTimeout, time.Millisecond)
	if m.rebalanceTimeout <= 0 {
		m.rebalanceTimeout = m.sessionTimeout
	}
	return m
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// forgetMembers empties the group during replay, when nobody waits for it.
func (s *Shard) forgetMembers(g *group) {
	g.members, g.leader, g.protocol, g.state, g.subscribed = nil, "", "", Empty, nil
	clear(g.byID)
	clear(g.static)
	clear(g.supported)
}

// dropIfHollow removes a group of which nothing is known any more.
func (s *Shard) dropIfHollow(g *group) {
	if g.state == Empty && g.protocolType == "" && g.generation == 0 &&
		len(g.offsets)+len(g.inFlight)+len(g.members)+len(g.pending) == 0 && s.groups[g.id] == g {
		s.because(g, Removed, "")
		delete(s.groups, g.id)
	}
}

// Loaded ends the replay: members get a full session from now on, and time
// begins to act.
func (s *Shard) Loaded(now model.Time, wall model.Millis) Ready {
	s.enter(now, wall)
	s.out.Reasons = nil // of groups that came and went in the log
	for _, g := range s.sorted() {
		for _, m := range g.members {
			s.expectHeartbeat(g, m, m.sessionTimeout)
		}
		if len(g.members) > s.cfg.MaxSize {
			s.rebalance(g, TooLarge, "")
		}
	}
	s.scheduleExpiry()
	return s.take()
}
