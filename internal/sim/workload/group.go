package workload

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
)

// consumerProtocol and byRange are what every classic consumer of the group
// names.
const (
	consumerProtocol = "consumer"
	byRange          = "range"
)

// find asks for the group's coordinator unless it is known.
func (m *member) find(ctx context.Context) bool {
	if m.coordinator != "" {
		return true
	}
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKeys = []string{m.group}
	answer, err := m.c.askAny(ctx, req, 0)
	if err != nil {
		return false
	}
	for _, a := range answer.(*kmsg.FindCoordinatorResponse).Coordinators {
		if a.ErrorCode == 0 {
			m.coordinator = net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
		}
	}
	return m.coordinator != ""
}

// join enters the group's next generation and takes what it assigns.
func (m *member) join(ctx context.Context) bool {
	t := m.c.topic(ctx, m.topic)
	if t == nil || !m.find(ctx) {
		return false
	}
	answer, err := m.c.ask(ctx, m.coordinator, m.joinRequest(), rebalanceTimeout)
	if err != nil {
		m.coordinator = ""
		return false
	}
	joined := answer.(*kmsg.JoinGroupResponse)
	switch e := model.Error(joined.ErrorCode); {
	case e == model.ErrMemberIDRequired:
		m.id = joined.MemberID
		return m.join(ctx)
	case e == model.ErrUnknownMemberID:
		m.id = ""
		return false
	case outcome.Moved(e):
		m.coordinator = ""
		return false
	case e != model.None:
		return false
	}
	m.id, m.generation = joined.MemberID, joined.Generation
	m.beat = m.c.env.Runtime.Now()
	m.r = &reader{c: m.c} // of nothing, until the assignment is known
	var plan []kmsg.SyncGroupRequestGroupAssignment
	if joined.LeaderID == m.id {
		m.c.refresh(ctx, m.topic)
		plan = m.assign(joined.Members)
	}
	return m.sync(ctx, plan)
}

func (m *member) joinRequest() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = m.group, m.id, consumerProtocol
	req.SessionTimeoutMillis = int32(sessionTimeout.Milliseconds())
	req.RebalanceTimeoutMillis = int32(rebalanceTimeout.Milliseconds())
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{m.topic}
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = byRange, meta.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	return req
}

// assign gives each member a range of the topic's partitions.
func (m *member) assign(members []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	slices.SortFunc(members, func(a, b kmsg.JoinGroupResponseMember) int { return cmp.Compare(a.MemberID, b.MemberID) })
	total := 0
	if t := m.c.meta.Topic(m.topic); t != nil {
		total = len(t.Partitions)
	}
	var plan []kmsg.SyncGroupRequestGroupAssignment
	next := 0
	for i := range members {
		share := total / len(members)
		if i < total%len(members) {
			share++
		}
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic = m.topic
		for range share {
			t.Partitions = append(t.Partitions, int32(next))
			next++
		}
		what := kmsg.NewConsumerMemberAssignment()
		what.Topics = append(what.Topics, t)
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = members[i].MemberID, what.AppendTo(nil)
		plan = append(plan, a)
	}
	return plan
}

// sync hands the leader's plan in and takes the member's own share.
func (m *member) sync(ctx context.Context, plan []kmsg.SyncGroupRequestGroupAssignment) bool {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr(consumerProtocol), kmsg.StringPtr(byRange)
	req.GroupAssignment = plan
	answer, err := m.c.ask(ctx, m.coordinator, req, rebalanceTimeout)
	if err != nil {
		m.coordinator = ""
		return false
	}
	synced := answer.(*kmsg.SyncGroupResponse)
	if e := model.Error(synced.ErrorCode); e != model.None {
		m.settled(ctx, e)
		return false
	}
	var share kmsg.ConsumerMemberAssignment
	if err := share.ReadFrom(synced.MemberAssignment); err != nil {
		m.c.env.note("an assignment of %d bytes: %v", len(synced.MemberAssignment), err)
		return false
	}
	t := m.c.meta.Topic(m.topic)
	if t == nil {
		return false
	}
	for _, a := range share.Topics {
		for _, p := range a.Partitions {
			m.r.positions = append(m.r.positions, newPosition(t, p))
		}
	}
	m.c.env.note("generation %d, %d partitions", m.generation, len(m.r.positions))
	return true
}

// heartbeat tells the coordinator that the member lives.
func (m *member) heartbeat(ctx context.Context) model.Error {
	if !m.find(ctx) {
		return noCode
	}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = m.group, m.id, m.generation
	answer, err := m.c.ask(ctx, m.coordinator, req, 0)
	if err != nil {
		return noCode
	}
	return model.Error(answer.(*kmsg.HeartbeatResponse).ErrorCode)
}

// leave says good-bye, once.
func (m *member) leave(ctx context.Context) {
	if m.id == "" || ctx.Err() != nil || !m.find(ctx) {
		return
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = m.group
	own := kmsg.NewLeaveGroupRequestMember()
	own.MemberID = m.id
	req.Members = append(req.Members, own)
	_, _ = m.c.ask(ctx, m.coordinator, req, 0) // whether it arrived or not
	m.id = ""
}
