package group

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/purgatory"
)

// State is where a group stands.
//
//	Empty -> Preparing -> Completing -> Stable
//	Preparing:  members (re)join; ends when all have, or when time is up
//	Completing: members wait for the leader's assignment
//	Stable and Completing go back to Preparing when membership changes;
//	Preparing ends in Empty when nobody is left. A group without anything
//	worth keeping is dropped.
type State uint8

// The states of a classic group.
const (
	Empty State = iota
	Preparing
	Completing
	Stable
)

// String is the name that clients know.
func (s State) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

// stateDead is what a group that does not exist is said to be.
const stateDead = "Dead"

const consumerProtocol = "consumer"

// group is one classic group, or the mere holder of offsets when nobody ever
// joined it.
type group struct {
	id         string
	state      State
	initial    bool // Preparing began in Empty: the first rebalance is delayed
	grew       bool // a member was added during that delay
	since      model.Millis
	generation int32
	// protocolType is that of all members; "" when nobody ever joined.
	protocolType string
	protocol     string // chosen for this generation; "" without members
	leader       string // member id; "" without members

	members   []*member // in the order of their joining
	byID      map[string]*member
	static    map[string]*member // by instance id
	pending   map[string]*pendingMember
	supported map[string]int // members per protocol name
	joined    int            // members whose join is parked
	unsynced  int            // members that owe a sync
	storing   bool           // the assignment of this generation is being written

	// subscribed is what the members of a consumer group subscribe to; nil
	// when that cannot be told.
	subscribed map[string]bool

	offsets map[topicPartition]offset
	// inFlight counts commits of a partition that are being written.
	inFlight map[topicPartition]int

	joinTimer, syncTimer purgatory.Timer[func()]
}

type topicPartition struct {
	topic     string
	partition int32
}

func (a topicPartition) compare(b topicPartition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

// pendingMember was given a member id and has yet to join with it (KIP-394).
type pendingMember struct{ timer purgatory.Timer[func()] }

type member struct {
	id               string
	instance         *string // of a static member (KIP-345)
	clientID, host   string
	rebalanceTimeout time.Duration
	sessionTimeout   time.Duration
	protocols        []protocol
	assignment       []byte
	isNew            bool // in its first join: it cannot send heartbeats yet
	owesSync         bool
	join             *parkedJoin
	sync             *parkedSync
	session          purgatory.Timer[func()]
}

type protocol struct {
	name     string
	metadata []byte
}

type parkedJoin struct {
	to   any
	resp *kmsg.JoinGroupResponse
}

type parkedSync struct {
	to   any
	resp *kmsg.SyncGroupResponse
}

func newGroup(id string, wall model.Millis) *group {
	return &group{
		id: id, since: wall, byID: map[string]*member{}, static: map[string]*member{},
		pending: map[string]*pendingMember{}, supported: map[string]int{},
		offsets: map[topicPartition]offset{}, inFlight: map[topicPartition]int{},
	}
}

// sorted returns the groups by name.
func (s *Shard) sorted() []*group {
	return slices.SortedFunc(maps.Values(s.groups), func(a, b *group) int { return cmp.Compare(a.id, b.id) })
}

// ensure returns the group and makes it if needed.
func (s *Shard) ensure(id string) *group {
	g := s.groups[id]
	if g == nil {
		g = newGroup(id, s.wall)
		s.groups[id] = g
	}
	return g
}

func (g *group) to(st State, wall model.Millis) { g.state, g.since = st, wall }

func (g *group) add(m *member, protocolType string) {
	if len(g.members) == 0 {
		g.protocolType = protocolType
	}
	g.members = append(g.members, m)
	g.byID[m.id] = m
	if m.instance != nil {
		g.static[*m.instance] = m
	}
	g.count(m, 1)
	if m.join != nil {
		g.joined++
	}
	if g.leader == "" {
		g.leader = m.id
	}
}

// count adds the member's protocols to, or takes them from, the support.
func (g *group) count(m *member, by int) {
	for i, p := range m.protocols {
		if slices.ContainsFunc(m.protocols[:i], func(o protocol) bool { return o.name == p.name }) {
			continue // named twice
		}
		if g.supported[p.name] += by; g.supported[p.name] == 0 {
			delete(g.supported, p.name)
		}
	}
}

// drop takes a member out and answers what it has parked.
func (s *Shard) drop(g *group, m *member) {
	s.refuseJoin(g, m, model.ErrUnknownMemberID)
	s.refuseSync(m, model.ErrUnknownMemberID)
	s.wheel.Remove(&m.session)
	g.settleSync(m)
	g.count(m, -1)
	delete(g.byID, m.id)
	if m.instance != nil {
		delete(g.static, *m.instance)
	}
	g.members = slices.DeleteFunc(g.members, func(o *member) bool { return o == m })
	if g.leader == m.id {
		g.leader = ""
		if len(g.members) > 0 {
			g.leader = g.members[0].id
		}
	}
}

// settleSync notes that m owes no sync any more.
func (g *group) settleSync(m *member) {
	if m.owesSync {
		m.owesSync = false
		g.unsynced--
	}
}

// dropPending forgets a member id that was given out.
func (s *Shard) dropPending(g *group, id string) {
	if p := g.pending[id]; p != nil {
		s.wheel.Remove(&p.timer)
		delete(g.pending, id)
	}
}

// allJoined reports whether nobody is missing in the rebalance.
func (g *group) allJoined() bool { return g.joined == len(g.members) && len(g.pending) == 0 }

// supports reports whether someone with these protocols could be a member.
func (g *group) supports(protocolType string, protocols []protocol) bool {
	if protocolType == "" || len(protocols) == 0 {
		return false
	}
	if len(g.members) == 0 {
		return true
	}
	return g.protocolType == protocolType && slices.ContainsFunc(protocols, func(p protocol) bool {
		return g.supported[p.name] == len(g.members)
	})
}

// vote chooses the protocol: of those that all members support, the one that
// most members like best; the first by name among equals.
func (g *group) vote() string {
	votes, best := map[string]int{}, ""
	for _, m := range g.members {
		for _, p := range m.protocols {
			if g.supported[p.name] == len(g.members) {
				votes[p.name]++
				break
			}
		}
	}
	for name, n := range votes {
		if best == "" || n > votes[best] || n == votes[best] && name < best {
			best = name
		}
	}
	return best
}

// rebalanceTimeout is the longest of all members.
func (g *group) rebalanceTimeout() time.Duration {
	var longest time.Duration
	for _, m := range g.members {
		longest = max(longest, m.rebalanceTimeout)
	}
	return longest
}

// metadata is what the member sent for the protocol.
func (m *member) metadata(name string) []byte {
	for _, p := range m.protocols {
		if p.name == name {
			return p.metadata
		}
	}
	return nil
}

// matches reports whether the member comes with the same protocols again.
func (m *member) matches(protocols []protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b protocol) bool {
		return a.name == b.name && bytes.Equal(a.metadata, b.metadata)
	})
}

// check says whether the client is who it says: UNKNOWN_MEMBER_ID, or
// FENCED_INSTANCE_ID when another process took the instance over.
func (g *group) check(memberID string, instance *string) model.Error {
	if instance != nil {
		switch m := g.static[*instance]; {
		case m == nil:
			return model.ErrUnknownMemberID
		case m.id != memberID:
			return model.ErrFencedInstanceID
		}
	}
	if g.byID[memberID] == nil {
		return model.ErrUnknownMemberID
	}
	return model.None
}

// subscriptions reads what the members of a consumer group subscribe to; nil
// when the group is none or somebody's metadata cannot be read.
func (g *group) subscriptions() map[string]bool {
	if g.protocolType != consumerProtocol {
		return nil
	}
	topics := map[string]bool{}
	for _, m := range g.members {
		var meta kmsg.ConsumerMemberMetadata
		if meta.ReadFrom(m.metadata(g.protocol)) != nil {
			return nil
		}
		for _, t := range meta.Topics {
			topics[t] = true
		}
	}
	return topics
}

// subscribesTo reports whether offsets of the topic are in use.
func (g *group) subscribesTo(topic string) bool {
	if len(g.members) == 0 {
		return false
	}
	if g.subscribed == nil {
		return g.protocolType == consumerProtocol
	}
	return g.subscribed[topic]
}
