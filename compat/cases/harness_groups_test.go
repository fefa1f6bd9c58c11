package cases

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// coordinator is the broker that serves a group, once one does.
func (w *world) coordinator(group string) int {
	w.t.Helper()
	broker := 0
	w.WaitFor("group "+group+" has a coordinator", func() bool {
		for b := range w.Addrs() {
			if !w.Running(b + 1) {
				continue
			}
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.Version, req.CoordinatorKey = 3, group
			resp := ask[*kmsg.FindCoordinatorResponse](w, b+1, req)
			if broker = int(resp.NodeID); resp.ErrorCode == 0 && w.Running(broker) && w.coordinates(broker, group) {
				return true
			}
		}
		return false
	})
	return broker
}

// coordinates says whether a broker has loaded a group's partition: describing
// makes no group.
func (w *world) coordinates(broker int, group string) bool {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 5, []string{group}
	return ask[*kmsg.DescribeGroupsResponse](w, broker, req).Groups[0].ErrorCode == 0
}

// offsetsPartition is the partition of __consumer_offsets that holds a group of
// an ASCII name.
func (w *world) offsetsPartition(group string) int32 {
	var hash int32
	for _, c := range []byte(group) {
		hash = 31*hash + int32(c)
	}
	return max(hash, -hash) % 8
}

// commitRequest makes an OffsetCommit of one partition.
func commitRequest(version int16, group, member string, generation int32, topic string, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.MemberID, req.Generation = version, group, member, generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.LeaderEpoch, p.Metadata = offset, -1, kmsg.StringPtr("")
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// commit commits offset 5 of topic t as a member and returns the code.
func (w *world) commit(version int16, group, member string, generation int32) int16 {
	w.t.Helper()
	req := commitRequest(version, group, member, generation, "t", 5)
	return ask[*kmsg.OffsetCommitResponse](w, w.coordinator(group), req).Topics[0].Partitions[0].ErrorCode
}

// commitAlone commits an offset for a group without members.
func (w *world) commitAlone(group, topic string, offset int64) {
	w.t.Helper()
	req := commitRequest(7, group, "", -1, topic, offset)
	got := ask[*kmsg.OffsetCommitResponse](w, w.coordinator(group), req)
	code(w.t, "commit", got.Topics[0].Partitions[0].ErrorCode, model.None)
}

// committedOffset is what OffsetFetch v7 tells of partition 0, -1 for nothing.
func (w *world) committedOffset(group, topic string) int64 {
	w.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = 7, group
	t := kmsg.NewOffsetFetchRequestTopic()
	t.Topic, t.Partitions = topic, []int32{0}
	req.Topics = append(req.Topics, t)
	resp := ask[*kmsg.OffsetFetchResponse](w, w.coordinator(group), req)
	if resp.ErrorCode != 0 {
		w.t.Fatalf("fetch offsets: %v", model.Error(resp.ErrorCode))
	}
	code(w.t, "fetch offsets", resp.Topics[0].Partitions[0].ErrorCode, model.None)
	return resp.Topics[0].Partitions[0].Offset
}

// member is a client of a group with a connection of its own, on which at most
// one request waits.
type member struct {
	w        *world
	conn     *transport.Client
	group    string
	version  int16 // of JoinGroup
	instance string
	kind     string // protocol type
	names    []string
	session  time.Duration
	rejoin   time.Duration // rebalance timeout
	id       string
	last     *kmsg.JoinGroupResponse // newest answer to a join
}

// newMember connects to the coordinator of a group. Names are its protocols.
func (w *world) newMember(group string, version int16, names ...string) *member {
	w.t.Helper()
	return &member{w: w, conn: w.dial(w.coordinator(group)), group: group, version: version, kind: "consumer",
		names: names, session: 10 * time.Second, rejoin: 10 * time.Second}
}

// static gives the member an instance id.
func (m *member) static(instance string) *member {
	m.instance = instance
	return m
}

func (m *member) instanceID() *string {
	if m.instance == "" {
		return nil
	}
	return &m.instance
}

// joinOnce sends one JoinGroup and waits for its answer.
func (m *member) joinOnce() *kmsg.JoinGroupResponse {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.ProtocolType = m.version, m.group, m.id, m.kind
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), int32(m.rejoin.Milliseconds())
	if m.version >= 5 {
		req.InstanceID = m.instanceID()
	}
	for _, name := range m.names {
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = name, subscribed(name)
		req.Protocols = append(req.Protocols, p)
	}
	return askOn[*kmsg.JoinGroupResponse](m.w, m.conn, req)
}

// subscribed is a consumer's metadata: topic t, and a protocol's name as the
// user data.
func subscribed(name string) []byte {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Version, meta.Topics, meta.UserData = 1, []string{"t"}, []byte(name)
	return meta.AppendTo(nil)
}

// join joins, with the id that it is given if it must have one, and returns the
// last answer.
func (m *member) join() *kmsg.JoinGroupResponse {
	resp := m.joinOnce()
	if resp.ErrorCode == model.ErrMemberIDRequired.Code() {
		m.id = resp.MemberID
		resp = m.joinOnce()
	}
	if resp.ErrorCode == 0 {
		m.id, m.last = resp.MemberID, resp
	}
	return resp
}

// joining joins in the background.
func (m *member) joining() <-chan *kmsg.JoinGroupResponse {
	out := make(chan *kmsg.JoinGroupResponse, 1)
	go func() { out <- m.join() }()
	return out
}

// leads says whether the newest join made it the group's leader.
func (m *member) leads() bool { return m.last.LeaderID == m.id }

// sync sends SyncGroup v5; a leader gives what assignments it has.
func (m *member) sync(given map[string][]byte) *kmsg.SyncGroupResponse {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 5, m.group, m.id, m.last.Generation
	req.InstanceID, req.ProtocolType = m.instanceID(), &m.kind
	req.Protocol = m.last.Protocol
	for id, bytes := range given {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = id, bytes
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return askOn[*kmsg.SyncGroupResponse](m.w, m.conn, req)
}

// beat sends a heartbeat and returns its code.
func (m *member) beat() int16 { return m.beatAs(m.id, m.last.Generation, m.instanceID()) }

func (m *member) beatAs(id string, generation int32, instance *string) int16 {
	return m.w.beat(m.conn, m.group, id, generation, instance)
}

// beat sends Heartbeat v4 and returns its code.
func (w *world) beat(c *transport.Client, group, id string, generation int32, instance *string) int16 {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation, req.InstanceID = 4, group, id, generation, instance
	return askOn[*kmsg.HeartbeatResponse](w, c, req).ErrorCode
}

// leave leaves as this member.
func (m *member) leave() {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group, req.MemberID = 2, m.group, m.id
	code(m.w.t, "leave", askOn[*kmsg.LeaveGroupResponse](m.w, m.conn, req).ErrorCode, model.None)
}

// formed has members join together until all are in one generation, and lets
// the leader assign each its own id.
func (w *world) formed(members ...*member) {
	w.t.Helper()
	w.gathered(members...)
	given := map[string][]byte{}
	for _, m := range members {
		given[m.id] = []byte("for " + m.id)
	}
	w.synced(given, members...)
}

// gathered has members join until all are in one generation. One that was told
// of a generation while others still wait joins again, as a client does whose
// heartbeat tells of a rebalance.
func (w *world) gathered(members ...*member) {
	w.t.Helper()
	type joined struct {
		m    *member
		resp *kmsg.JoinGroupResponse
	}
	answers, told := make(chan joined, len(members)), members
	for range 10 {
		for _, m := range told {
			go func() { answers <- joined{m, m.join()} }()
		}
		told = nil
		for first := true; first || len(answers) > 0; first = false {
			a := <-answers
			code(w.t, "join", a.resp.ErrorCode, model.None)
			told = append(told, a.m)
			pass(10 * time.Millisecond)
		}
		if len(told) == len(members) && sameGeneration(members) {
			return
		}
	}
	w.t.Fatalf("members do not come together")
}

func sameGeneration(members []*member) bool {
	return !slices.ContainsFunc(members, func(m *member) bool { return m.last.Generation != members[0].last.Generation })
}

// synced has all members sync, the leader last, and checks what they get.
func (w *world) synced(given map[string][]byte, members ...*member) {
	w.t.Helper()
	type got struct {
		m    *member
		resp *kmsg.SyncGroupResponse
	}
	all := make(chan got, len(members))
	var leader *member
	for _, m := range members {
		if m.leads() {
			leader = m
			continue
		}
		go func() { all <- got{m, m.sync(nil)} }()
	}
	if leader == nil {
		w.t.Fatal("nobody leads the group")
	}
	pass(10 * time.Millisecond)
	go func() { all <- got{leader, leader.sync(given)} }()
	for range members {
		g := <-all
		code(w.t, "sync", g.resp.ErrorCode, model.None)
		if a := g.resp.MemberAssignment; string(a) != string(given[g.m.id]) {
			w.t.Errorf("a member got %d bytes, was given %d", len(a), len(given[g.m.id]))
		}
		if p := g.resp.Protocol; p == nil || *p != *leader.last.Protocol || g.resp.ProtocolType == nil || *g.resp.ProtocolType != leader.kind {
			w.t.Error("an assignment without its protocol")
		}
	}
}

// state is a group's state as DescribeGroups tells it.
func (w *world) state(group string) string {
	w.t.Helper()
	return w.describeGroup(5, group).State
}

// describeGroup describes one group in a version.
func (w *world) describeGroup(version int16, group string) kmsg.DescribeGroupsResponseGroup {
	w.t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = version, []string{group}
	return ask[*kmsg.DescribeGroupsResponse](w, w.coordinator(group), req).Groups[0]
}

// groupsOf lists all groups of the cluster that pass a filter of states.
func (w *world) groupsOf(states ...string) string {
	w.t.Helper()
	var names []string
	for b := range w.Addrs() {
		req := kmsg.NewPtrListGroupsRequest()
		req.Version, req.StatesFilter = 4, states
		var resp *kmsg.ListGroupsResponse
		w.WaitFor(fmt.Sprintf("broker %d has read its groups", b+1), func() bool {
			resp = ask[*kmsg.ListGroupsResponse](w, b+1, req)
			return resp.ErrorCode != model.ErrCoordinatorLoadInProgress.Code()
		})
		code(w.t, "list groups", resp.ErrorCode, model.None)
		for _, g := range resp.Groups {
			names = append(names, g.Group+" "+g.GroupState)
		}
	}
	return fmt.Sprint(names)
}

// deleteGroup deletes a group and returns the code.
func (w *world) deleteGroup(group string) int16 {
	w.t.Helper()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, []string{group}
	return ask[*kmsg.DeleteGroupsResponse](w, w.coordinator(group), req).Groups[0].ErrorCode
}

// deleteOffset deletes a group's offset of partition 0 and returns the code, of
// the whole or of the partition.
func (w *world) deleteOffset(group, topic string) int16 {
	w.t.Helper()
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}
	req.Topics = append(req.Topics, t)
	resp := ask[*kmsg.OffsetDeleteResponse](w, w.coordinator(group), req)
	if resp.ErrorCode != 0 {
		return resp.ErrorCode
	}
	return resp.Topics[0].Partitions[0].ErrorCode
}
