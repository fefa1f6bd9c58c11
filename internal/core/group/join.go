package group

import (
	"bytes"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Versions of JoinGroup from which on it behaves differently.
const (
	joinKnownMember    = 4 // a new member is given an id first (KIP-394)
	joinSkipAssignment = 9 // a leader can be told to keep the assignment (KIP-814)
)

// maxString is the longest string that records of the log can hold.
const maxString = 1<<15 - 1

// joining is a JoinGroup request being decided.
type joining struct {
	Request
	req  *kmsg.JoinGroupRequest
	resp *kmsg.JoinGroupResponse
	// protocols and timeouts as the group keeps them.
	protocols        []protocol
	rebalanceTimeout time.Duration
	sessionTimeout   time.Duration
}

// joinGroup lets a client become or stay a member. The reply is parked until
// the rebalance ends. Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT,
// UNKNOWN_MEMBER_ID, GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL,
// MEMBER_ID_REQUIRED, FENCED_INSTANCE_ID. KIP-62, 345, 394, 814.
func (s *Shard) joinGroup(r Request, req *kmsg.JoinGroupRequest) {
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.MemberID = req.MemberID
	j := &joining{Request: r, req: req, resp: resp, sessionTimeout: millis(req.SessionTimeoutMillis)}
	j.rebalanceTimeout = j.sessionTimeout
	if req.RebalanceTimeoutMillis > 0 { // v0 has none
		j.rebalanceTimeout = millis(req.RebalanceTimeoutMillis)
	}
	if err := s.checkJoin(j); err != model.None {
		s.answerJoining(j, err)
		return
	}
	for _, p := range req.Protocols {
		j.protocols = append(j.protocols, protocol{name: p.Name, metadata: bytes.Clone(p.Metadata)})
	}
	g := s.groups[req.Group]
	switch {
	case g == nil && req.MemberID != "":
		s.answerJoining(j, model.ErrUnknownMemberID)
		return
	case g == nil:
		g = newGroup(req.Group, s.wall)
	}
	switch {
	case !s.hasRoom(g, req.MemberID):
		s.turnAway(g, j)
	case !g.supports(req.ProtocolType, j.protocols):
		s.answerJoining(j, model.ErrInconsistentGroupProtocol)
	case req.MemberID == "":
		s.groups[g.id] = g
		s.joinNew(g, j)
	default:
		s.joinKnown(g, j)
	}
}

func millis(n int32) time.Duration { return time.Duration(n) * time.Millisecond }

// checkJoin judges what needs no group.
func (s *Shard) checkJoin(j *joining) model.Error {
	req := j.req
	if req.Group == "" {
		return model.ErrInvalidGroupID
	}
	if j.sessionTimeout < max(s.cfg.MinSession, time.Millisecond) || j.sessionTimeout > s.cfg.MaxSession {
		return model.ErrInvalidSessionTimeout
	}
	const idRoom = 128 // for the unique part of a member id
	long := len(req.Group) > maxString || len(req.ProtocolType) > maxString || len(j.ClientID) > maxString-idRoom || len(j.Host) > maxString ||
		req.InstanceID != nil && len(*req.InstanceID) > maxString-idRoom
	for _, p := range req.Protocols {
		long = long || len(p.Name) > maxString
	}
	if long {
		return model.ErrInvalidRequest
	}
	return model.None
}

// hasRoom says whether group.max.size admits the member. While members rejoin,
// those who came first count; later those who are in.
func (s *Shard) hasRoom(g *group, memberID string) bool {
	m := g.byID[memberID]
	switch g.state {
	case Empty:
		return true
	case Preparing:
		return m != nil && m.join != nil || g.joined < s.cfg.MaxSize
	}
	return m != nil || len(g.members) < s.cfg.MaxSize
}

// turnAway refuses a client for which there is no room. One that was a member
// before is none any more.
func (s *Shard) turnAway(g *group, j *joining) {
	id := j.req.MemberID
	j.resp.MemberID = ""
	s.answerJoining(j, model.ErrGroupMaxSizeReached)
	s.dropPending(g, id)
	if m := g.byID[id]; m != nil {
		s.drop(g, m)
	}
	s.maybeCompleteJoin(g)
}

// joinNew serves a client without a member id.
func (s *Shard) joinNew(g *group, j *joining) {
	req := j.req
	if req.InstanceID != nil {
		id := *req.InstanceID + "-" + s.cfg.NewID()
		if old := g.static[*req.InstanceID]; old != nil {
			s.replaceStatic(g, j, old, id)
			return
		}
		s.addMember(g, j, id)
		return
	}
	id := j.ClientID + "-" + s.cfg.NewID()
	if req.Version < joinKnownMember {
		s.addMember(g, j, id)
		return
	}
	p := &pendingMember{}
	g.pending[id] = p
	s.after(&p.timer, j.sessionTimeout, func() {
		s.dropPending(g, id)
		s.maybeCompleteJoin(g)
		s.dropIfHollow(g)
	})
	j.resp.MemberID = id
	s.answerJoining(j, model.ErrMemberIDRequired)
}

// joinKnown serves a client that has a member id.
func (s *Shard) joinKnown(g *group, j *joining) {
	req := j.req
	if g.pending[req.MemberID] != nil {
		s.dropPending(g, req.MemberID)
		s.addMember(g, j, req.MemberID)
		return
	}
	if err := g.check(req.MemberID, req.InstanceID); err != model.None {
		s.answerJoining(j, err)
		return
	}
	m := g.byID[req.MemberID]
	same := m.matches(j.protocols)
	switch {
	case g.state == Preparing,
		g.state == Completing && !same,
		g.state == Stable && (!same || g.leader == m.id):
		s.updateMember(g, m, j)
		s.rebalance(g, MemberRejoined, m.id)
	default:
		// Its last answer got lost, or it merely checks: the generation holds.
		s.fillJoin(g, m, j.resp, g.leader == m.id)
		s.answerJoining(j, model.None)
	}
}

// addMember makes a member of the client and parks its request.
func (s *Shard) addMember(g *group, j *joining, id string) {
	if g.state == Preparing && g.initial {
		g.grew = true
	}
	m := &member{
		id: id, instance: j.req.InstanceID, clientID: j.ClientID, host: j.Host, isNew: true,
		rebalanceTimeout: j.rebalanceTimeout, sessionTimeout: j.sessionTimeout, protocols: j.protocols,
		join: &parkedJoin{to: j.To, resp: j.resp},
	}
	g.add(m, j.req.ProtocolType)
	s.expectHeartbeat(g, m, newMemberJoin)
	s.rebalance(g, MemberJoined, m.id)
}

// updateMember takes what the member says now and parks its request.
func (s *Shard) updateMember(g *group, m *member, j *joining) {
	g.count(m, -1)
	m.protocols, m.rebalanceTimeout, m.sessionTimeout = j.protocols, j.rebalanceTimeout, j.sessionTimeout
	g.count(m, 1)
	// An older request of this member can only come from a connection that it
	// gave up.
	s.refuseJoin(g, m, model.ErrRebalanceInProgress)
	m.join = &parkedJoin{to: j.To, resp: j.resp}
	g.joined++
}

// replaceStatic lets a restarted static member take the place of its old self,
// which is fenced. In a stable group its assignment stays valid and nobody else
// notices (KIP-345).
func (s *Shard) replaceStatic(g *group, j *joining, m *member, id string) {
	leaderBefore := g.leader
	s.refuseJoin(g, m, model.ErrFencedInstanceID)
	s.refuseSync(m, model.ErrFencedInstanceID)
	delete(g.byID, m.id)
	if g.leader == m.id {
		g.leader = id
	}
	m.id, m.clientID, m.host, m.isNew = id, j.ClientID, j.Host, false
	g.byID[id] = m
	s.updateMember(g, m, j)
	s.expectHeartbeat(g, m, m.sessionTimeout)
	switch {
	case g.state == Preparing:
		s.maybeCompleteJoin(g)
	case g.state == Stable && g.vote() == g.protocol:
		s.because(g, MemberReplaced, id)
		s.storeReplaced(g, m, j, leaderBefore)
	default:
		s.rebalance(g, MemberReplaced, id)
	}
}

// storeReplaced writes the group with the new member id and then tells the
// member its generation. Before v9 a leader hears the old leader's id, lest it
// assigns anew.
func (s *Shard) storeReplaced(g *group, m *member, j *joining, leaderBefore string) {
	generation, parked := g.generation, m.join
	s.append([]Record{g.record(s.wall, nil)}, func(err model.Error) {
		switch {
		case m.join != parked:
			return // replaced once more, or answered otherwise
		case err != model.None:
			s.refuseJoin(g, m, err)
			s.expectHeartbeat(g, m, m.sessionTimeout)
			return
		case g.state != Stable || g.generation != generation:
			return // it takes part in the rebalance
		}
		isLeader, skips := g.leader == m.id, j.req.Version >= joinSkipAssignment
		s.fillJoin(g, m, j.resp, isLeader && skips)
		if skips {
			j.resp.SkipAssignment = isLeader
		} else {
			j.resp.LeaderID = leaderBefore
		}
		s.sendJoin(g, m)
		s.expectHeartbeat(g, m, m.sessionTimeout)
	}, nil)
}

// fillJoin writes the current generation into a response; only the leader sees
// the members.
func (s *Shard) fillJoin(g *group, m *member, resp *kmsg.JoinGroupResponse, withMembers bool) {
	protocolType, chosen := g.protocolType, g.protocol
	resp.ErrorCode = 0
	resp.Generation, resp.ProtocolType, resp.Protocol = g.generation, &protocolType, &chosen
	resp.LeaderID, resp.MemberID = g.leader, m.id
	if !withMembers {
		return
	}
	for _, o := range g.members {
		e := kmsg.NewJoinGroupResponseMember()
		e.MemberID, e.InstanceID, e.ProtocolMetadata = o.id, o.instance, o.metadata(g.protocol)
		resp.Members = append(resp.Members, e)
	}
}

// answerJoining answers a request that is not parked.
func (s *Shard) answerJoining(j *joining, err model.Error) {
	j.resp.ErrorCode = int16(err)
	s.reply(j.To, j.resp)
}

// sendJoin sends the parked response of m as it is.
func (s *Shard) sendJoin(g *group, m *member) {
	s.reply(m.join.to, m.join.resp)
	m.join = nil
	g.joined--
}

// refuseJoin answers a parked join, if there is one, with an error.
func (s *Shard) refuseJoin(g *group, m *member, err model.Error) {
	if m.join == nil {
		return
	}
	m.join.resp.ErrorCode = int16(err)
	m.join.resp.MemberID = ""
	if err == model.ErrFencedInstanceID {
		m.join.resp.MemberID = m.id
	}
	s.sendJoin(g, m)
}
