package group

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// syncProtocol is the version of SyncGroup from which on the client has to say
// which protocol it follows (KIP-559).
const syncProtocol = 5

// syncGroup hands a member its assignment. The leader brings those of all;
// everybody waits until they are committed. Errors: INVALID_GROUP_ID,
// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
// INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS. KIP-559.
func (s *Shard) syncGroup(r Request, req *kmsg.SyncGroupRequest) {
	resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
	g, m, err := s.checkSync(req)
	if err != model.None {
		resp.ErrorCode = int16(err)
		s.reply(r.To, resp)
		return
	}
	s.refuseSync(m, model.ErrRebalanceInProgress) // of a connection it gave up
	m.sync = &parkedSync{to: r.To, resp: resp}
	s.synced(g, m)
	if g.state == Stable {
		s.sendSync(g, m)
		return
	}
	if m.id == g.leader && !g.storing {
		s.storeAssignment(g, req)
	}
}

func (s *Shard) checkSync(req *kmsg.SyncGroupRequest) (*group, *member, model.Error) {
	g := s.groups[req.Group]
	switch {
	case req.Group == "":
		return nil, nil, model.ErrInvalidGroupID
	case g == nil:
		return nil, nil, model.ErrUnknownMemberID
	}
	err := g.check(req.MemberID, req.InstanceID)
	switch {
	case err != model.None:
	case req.Generation != g.generation:
		err = model.ErrIllegalGeneration
	case req.Version >= syncProtocol && (req.ProtocolType == nil || req.Protocol == nil),
		differs(req.ProtocolType, g.protocolType) || differs(req.Protocol, g.protocol):
		err = model.ErrInconsistentGroupProtocol
	case g.state == Empty:
		err = model.ErrUnknownMemberID
	case g.state == Preparing:
		err = model.ErrRebalanceInProgress
	}
	return g, g.byID[req.MemberID], err
}

// differs compares what a client says with what the group knows, if both do.
func differs(said *string, known string) bool { return said != nil && known != "" && *said != known }

// synced notes that the member asked for its assignment in time.
func (s *Shard) synced(g *group, m *member) {
	g.settleSync(m)
	if g.unsynced == 0 {
		s.wheel.Remove(&g.syncTimer)
	}
}

// storeAssignment writes what the leader decided. Members it left out get an
// empty assignment.
func (s *Shard) storeAssignment(g *group, req *kmsg.SyncGroupRequest) {
	given := make(map[string][]byte, len(req.GroupAssignment))
	for _, a := range req.GroupAssignment {
		given[a.MemberID] = bytes.Clone(a.MemberAssignment)
	}
	generation := g.generation
	g.storing = true
	s.append([]Record{g.record(s.wall, given)}, func(err model.Error) {
		if g.state != Completing || g.generation != generation {
			return // whoever waited was told when the rebalance began
		}
		g.storing = false
		if err != model.None {
			s.refuseSyncs(g, err)
			s.rebalance(g, AssignmentUnsaved, "")
			return
		}
		g.to(Stable, s.wall)
		s.because(g, Stabilized, g.leader)
		for _, m := range g.members {
			m.assignment = given[m.id]
			if m.sync != nil {
				s.sendSync(g, m)
				s.expectHeartbeat(g, m, m.sessionTimeout)
			}
		}
	}, nil)
}

// sendSync answers a parked sync with the member's assignment.
func (s *Shard) sendSync(g *group, m *member) {
	protocolType, chosen := g.protocolType, g.protocol
	resp := m.sync.resp
	resp.ProtocolType, resp.Protocol, resp.MemberAssignment = &protocolType, &chosen, m.assignment
	if resp.MemberAssignment == nil {
		resp.MemberAssignment = []byte{}
	}
	s.reply(m.sync.to, resp)
	m.sync = nil
}

// refuseSync answers a parked sync, if there is one, with an error.
func (s *Shard) refuseSync(m *member, err model.Error) {
	if m.sync == nil {
		return
	}
	m.sync.resp.ErrorCode = int16(err)
	s.reply(m.sync.to, m.sync.resp)
	m.sync = nil
}

// refuseSyncs answers all of them; the assignments of the generation are void.
func (s *Shard) refuseSyncs(g *group, err model.Error) {
	for _, m := range g.members {
		m.assignment = nil
		if m.sync != nil {
			s.refuseSync(m, err)
			s.expectHeartbeat(g, m, m.sessionTimeout)
		}
	}
}

// heartbeat keeps a member in its group and tells it of rebalances. Errors:
// INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
// REBALANCE_IN_PROGRESS.
func (s *Shard) heartbeat(r Request, req *kmsg.HeartbeatRequest) {
	resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
	resp.ErrorCode = int16(s.beat(req))
	s.reply(r.To, resp)
}

func (s *Shard) beat(req *kmsg.HeartbeatRequest) model.Error {
	g := s.groups[req.Group]
	switch {
	case req.Group == "":
		return model.ErrInvalidGroupID
	case g == nil:
		return model.ErrUnknownMemberID
	}
	if err := g.check(req.MemberID, req.InstanceID); err != model.None {
		return err
	}
	if req.Generation != g.generation {
		return model.ErrIllegalGeneration
	}
	m := g.byID[req.MemberID]
	s.expectHeartbeat(g, m, m.sessionTimeout)
	if g.state == Preparing {
		return model.ErrRebalanceInProgress
	}
	return model.None
}

// leaveGroup removes members at once, several from v3 on. Errors:
// INVALID_GROUP_ID; per member UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID. KIP-345.
func (s *Shard) leaveGroup(r Request, req *kmsg.LeaveGroupRequest) {
	resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
	members := req.Members
	if req.Version < 3 {
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = req.MemberID
		members = []kmsg.LeaveGroupRequestMember{one}
	}
	if req.Group == "" {
		resp.ErrorCode = int16(model.ErrInvalidGroupID)
		members = nil
	}
	g := s.groups[req.Group]
	before := 0
	if g != nil {
		before = len(g.members)
	}
	for _, who := range members {
		err := model.ErrUnknownMemberID
		if g != nil {
			err = s.leave(g, who)
		}
		e := kmsg.NewLeaveGroupResponseMember()
		e.MemberID, e.InstanceID, e.ErrorCode = who.MemberID, who.InstanceID, int16(err)
		resp.Members = append(resp.Members, e)
	}
	if g != nil {
		s.someLeft(g, len(g.members) < before)
	}
	if req.Version < 3 && len(resp.Members) > 0 {
		resp.ErrorCode, resp.Members = resp.Members[0].ErrorCode, nil
	}
	s.reply(r.To, resp)
}

// someLeft goes on without those who left. Giving back a mere member id disturbs
// nobody.
func (s *Shard) someLeft(g *group, members bool) {
	switch {
	case members && g.state != Empty:
		s.rebalance(g, MemberLeft, "")
	default:
		s.maybeCompleteJoin(g)
		s.dropIfHollow(g)
	}
}

// leave takes one member out without rebalancing. An operator names a static
// member by its instance alone.
func (s *Shard) leave(g *group, who kmsg.LeaveGroupRequestMember) model.Error {
	switch {
	case who.MemberID == "":
		if who.InstanceID == nil || g.static[*who.InstanceID] == nil {
			return model.ErrUnknownMemberID
		}
		s.drop(g, g.static[*who.InstanceID])
	case g.pending[who.MemberID] != nil:
		s.dropPending(g, who.MemberID)
	default:
		if err := g.check(who.MemberID, who.InstanceID); err != model.None {
			return err
		}
		s.drop(g, g.byID[who.MemberID])
	}
	return model.None
}
