package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

const (
	describeNotFound = 6 // DescribeGroups from which on a missing group is an error (KIP-1043)
	groupType        = "classic"
	// allOperations is what everybody may do with a group where nobody is
	// restricted: read, delete, describe, describe configs, alter configs.
	allOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11
)

// describeGroups shows groups; it makes none. Metadata and assignments are
// shown when they hold. Error from v6 on: GROUP_ID_NOT_FOUND.
func (s *Shard) describeGroups(r Request, req *kmsg.DescribeGroupsRequest) {
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	for _, id := range req.Groups {
		e := s.describe(id, req.Version)
		if req.IncludeAuthorizedOperations && e.ErrorCode == 0 {
			e.AuthorizedOperations = allOperations
		}
		resp.Groups = append(resp.Groups, e)
	}
	s.reply(r.To, resp)
}

func (s *Shard) describe(id string, version int16) kmsg.DescribeGroupsResponseGroup {
	e := kmsg.NewDescribeGroupsResponseGroup()
	e.Group, e.State = id, stateDead
	g := s.groups[id]
	if g == nil {
		if version >= describeNotFound {
			message := fmt.Sprintf("Group %s not found.", id)
			e.ErrorCode, e.ErrorMessage = int16(model.ErrGroupIDNotFound), &message
		}
		return e
	}
	e.State, e.ProtocolType = g.state.String(), g.protocolType
	if g.state == Stable {
		e.Protocol = g.protocol
	}
	for _, m := range g.members {
		em := kmsg.NewDescribeGroupsResponseGroupMember()
		em.MemberID, em.InstanceID, em.ClientID, em.ClientHost = m.id, m.instance, m.clientID, m.host
		em.ProtocolMetadata, em.MemberAssignment = []byte{}, []byte{}
		if g.state == Stable {
			em.ProtocolMetadata = append(em.ProtocolMetadata, m.metadata(g.protocol)...)
			em.MemberAssignment = append(em.MemberAssignment, m.assignment...)
		}
		e.Members = append(e.Members, em)
	}
	return e
}

// listGroups lists the groups of this shard that pass the filters; an unknown
// state or type passes nothing.
func (s *Shard) listGroups(r Request, req *kmsg.ListGroupsRequest) {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	passes := func(filter []string, value string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, value) })
	}
	for _, g := range s.sorted() {
		if !passes(req.StatesFilter, g.state.String()) || !passes(req.TypesFilter, groupType) {
			continue
		}
		e := kmsg.NewListGroupsResponseGroup()
		e.Group, e.ProtocolType, e.GroupState, e.GroupType = g.id, g.protocolType, g.state.String(), groupType
		resp.Groups = append(resp.Groups, e)
	}
	s.reply(r.To, resp)
}

// deleteGroups removes empty groups with their offsets; it answers when that is
// committed. Errors per group: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP. KIP-229.
func (s *Shard) deleteGroups(r Request, req *kmsg.DeleteGroupsRequest) {
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(req.Groups))
	waiting := 1 // this very loop
	answer := func() {
		if waiting--; waiting == 0 {
			s.reply(r.To, resp)
		}
	}
	for i, id := range req.Groups {
		e := &resp.Groups[i]
		e.Default()
		e.Group = id
		switch g := s.groups[id]; {
		case g == nil:
			e.ErrorCode = int16(model.ErrGroupIDNotFound)
		case g.state != Empty:
			e.ErrorCode = int16(model.ErrNonEmptyGroup)
		default:
			held := maps.Clone(g.inFlight)
			for k := range g.offsets {
				held[k]++
			}
			waiting++
			s.bury(g, sortedKeys(held), true, func(err model.Error) {
				e.ErrorCode = int16(err)
				answer()
			})
		}
	}
	answer()
}
