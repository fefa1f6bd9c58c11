package group

import "fmt"

// ReasonCode says why a group changed.
type ReasonCode uint8

// What can happen to a group.
const (
	MemberJoined      ReasonCode = iota + 1 // a new member
	MemberRejoined                          // a member came with other metadata, or the leader asked for a rebalance
	MemberReplaced                          // a static member restarted
	MemberLeft                              // a member said goodbye, or was removed by an operator
	SessionEnded                            // no heartbeat within the session timeout
	JoinTimedOut                            // did not rejoin within the rebalance timeout
	SyncTimedOut                            // did not ask for its assignment within the rebalance timeout
	AssignmentUnsaved                       // the assignment could not be written
	TooLarge                                // loaded with more members than allowed
	NewGeneration                           // all members that count have joined
	Stabilized                              // the assignment is committed
	BecameEmpty                             // the last member is gone
	Removed                                 // nothing is left of the group
)

var reasonText = [...]string{
	MemberJoined: "a member joined", MemberRejoined: "a member rejoined", MemberReplaced: "a static member restarted",
	MemberLeft: "a member left", SessionEnded: "a member's session ended", JoinTimedOut: "a member did not rejoin in time",
	SyncTimedOut: "a member did not sync in time", AssignmentUnsaved: "the assignment could not be written",
	TooLarge: "the group is over its maximal size", NewGeneration: "a generation began", Stabilized: "the group is stable",
	BecameEmpty: "the group is empty", Removed: "the group is removed",
}

// Reason tells what happened to a group, and to which member.
type Reason struct {
	Code       ReasonCode
	Group      string
	Generation int32
	Member     string
}

// String says it in words.
func (r Reason) String() string {
	if r.Member == "" {
		return fmt.Sprintf("group %q, generation %d: %s", r.Group, r.Generation, reasonText[r.Code])
	}
	return fmt.Sprintf("group %q, generation %d: %s (%s)", r.Group, r.Generation, reasonText[r.Code], r.Member)
}

func (s *Shard) because(g *group, code ReasonCode, member string) {
	s.out.Reasons = append(s.out.Reasons, Reason{Code: code, Group: g.id, Generation: g.generation, Member: member})
}
