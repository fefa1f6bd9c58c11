package cases

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// storedOffset is one partition in an answer to OffsetFetch, in words.
func storedOffset(partition int32, offset int64, epoch int32, metadata *string, errorCode int16) string {
	m := "null"
	if metadata != nil {
		m = fmt.Sprintf("%q", *metadata)
	}
	return fmt.Sprintf("%d:%d@%d %s %d ", partition, offset, epoch, m, errorCode)
}

// offsetsOf tells what OffsetFetch of a version answers for a group. Nil topics
// are all of them.
func (w *world) offsetsOf(version int16, group string, topics map[string][]int32) string {
	w.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group = version, group
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch = group, -1
	for name, partitions := range topics {
		req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: name, Partitions: partitions})
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: name, Partitions: partitions})
	}
	if version >= 8 {
		req.Groups = append(req.Groups, g)
	}
	resp := ask[*kmsg.OffsetFetchResponse](w, w.coordinator(group), req)
	out := ""
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			out += t.Topic + storedOffset(p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode)
		}
	}
	for _, g := range resp.Groups {
		code(w.t, "group", g.ErrorCode, model.None)
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				out += t.Topic + storedOffset(p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode)
			}
		}
	}
	code(w.t, "offset fetch", resp.ErrorCode, model.None)
	return out
}

// B182: every partition that is asked for is in the answer, committed or not.
func TestOffsetFetchAnswersEveryPartition(t *testing.T) {
	inGroups(t, func(w *world) {
		req := commitRequest(7, "g", "", -1, "t", 5)
		p := &req.Topics[0].Partitions[0]
		p.LeaderEpoch, p.Metadata = 7, kmsg.StringPtr("note")
		code(t, "commit", ask[*kmsg.OffsetCommitResponse](w, w.coordinator("g"), req).Topics[0].Partitions[0].ErrorCode, model.None)
		for version := int16(1); version <= 9; version++ {
			epoch := -1
			if version >= 5 {
				epoch = 7
			}
			committed := fmt.Sprintf("t0:5@%d \"note\" 0 ", epoch)
			const never = "t1:-1@-1 \"\" 0 "
			for _, c := range []struct {
				group  string
				topics map[string][]int32
				want   string
			}{
				{"g", map[string][]int32{"t": {0, 1}}, committed + never},
				{"g", map[string][]int32{"missing": {3}}, "missing3:-1@-1 \"\" 0 "},
				{"unknown", map[string][]int32{"t": {1}}, never},
				{"g", nil, committed},
				{"unknown", nil, ""},
			} {
				if c.topics == nil && version < 2 {
					continue
				}
				if got := w.offsetsOf(version, c.group, c.topics); got != c.want {
					t.Errorf("v%d: %v of %s: %q, want %q", version, c.topics, c.group, got, c.want)
				}
			}
		}
	})
}

// B182: several groups in one request have an answer each.
func TestOffsetsOfSeveralGroupsAtOnce(t *testing.T) {
	inGroups(t, func(w *world) {
		at := w.coordinator("g0")
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version = 8
		for i := range 20 {
			name := fmt.Sprint("g", i)
			w.commitAlone(name, "t", int64(i))
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group, g.MemberEpoch = name, -1
			req.Groups = append(req.Groups, g)
		}
		resp := ask[*kmsg.OffsetFetchResponse](w, at, req)
		if len(resp.Groups) != 20 {
			t.Fatalf("%d groups", len(resp.Groups))
		}
		for i, g := range resp.Groups {
			if g.Group != fmt.Sprint("g", i) {
				t.Errorf("group %d is %s", i, g.Group)
			}
			if w.coordinator(g.Group) != at {
				code(t, g.Group, g.ErrorCode, model.ErrNotCoordinator)
			} else if g.ErrorCode != 0 || len(g.Topics) != 1 || g.Topics[0].Partitions[0].Offset != int64(i) {
				t.Errorf("group %d: %+v", i, g)
			}
		}
	})
}

// B192: offsets stay while the group lives, and go some time after it became
// empty, or after the last commit of one who needs no group.
func TestOffsetsExpireAfterTheGroupIsEmpty(t *testing.T) {
	inGroups(t, func(w *world) {
		m := w.newMember("live", 5, "range")
		w.formed(m)
		code(t, "commit", w.commit(7, "live", m.id, m.last.Generation), model.None)
		w.commitAlone("alone", "t", 9)
		for range 100 { // five minutes, of which three are kept
			pass(3 * time.Second)
			code(t, "heartbeat", m.beat(), model.None)
			if m.last.Generation != 1 {
				t.Fatal("the group was rebalanced")
			}
		}
		if a, b := w.committedOffset("live", "t"), w.committedOffset("alone", "t"); a != 5 || b != -1 {
			t.Errorf("of the live group %d, of one that is not %d", a, b)
		}
		if got := w.groupsOf(); got != "[live Stable]" {
			t.Errorf("groups %s", got)
		}
		m.leave()
		pass(3*time.Minute - 5*time.Second)
		if got := w.committedOffset("live", "t"); got != 5 {
			t.Errorf("too soon, the offset is %d", got)
		}
		pass(10 * time.Second)
		if got, all := w.committedOffset("live", "t"), w.groupsOf(); got != -1 || all != "[]" {
			t.Errorf("in the end: offset %d, groups %s", got, all)
		}
	}, tidetest.Set("offsets.retention.minutes", "3"), tidetest.Set("offsets.retention.check.interval.ms", "1000"))
}

// B194: no retention of its own, as old clients say it, means the broker's.
func TestACommitWithoutARetentionStays(t *testing.T) {
	inGroups(t, func(w *world) {
		req := commitRequest(2, "g", "", -1, "t", 5)
		req.RetentionTimeMillis = -1
		code(t, "commit", ask[*kmsg.OffsetCommitResponse](w, w.coordinator("g"), req).Topics[0].Partitions[0].ErrorCode, model.None)
		for _, wait := range []time.Duration{0, 10 * time.Second, time.Hour} {
			pass(wait)
			if got := w.committedOffset("g", "t"); got != 5 {
				t.Errorf("%v later the offset is %d", wait, got)
			}
		}
	}, tidetest.Set("offsets.retention.check.interval.ms", "1000"))
}

// B197: all brokers name the same coordinator for a group, one key or several at
// once, soon after the first question.
func TestAllBrokersNameTheSameCoordinator(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		start := time.Now()
		for version := int16(0); version <= 3; version++ {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.Version, req.CoordinatorKey = version, "g"
			w.WaitFor("the group has a coordinator", func() bool {
				resp := ask[*kmsg.FindCoordinatorResponse](w, 1, req)
				code(t, fmt.Sprint("v", version), resp.ErrorCode, model.None, model.ErrCoordinatorNotAvailable)
				return resp.ErrorCode == 0 && w.Addrs()[resp.NodeID-1] == fmt.Sprintf("%s:%d", resp.Host, resp.Port)
			})
		}
		within(t, "the first coordinator", time.Since(start), 5*time.Second)
		keys := []string{"a", "b", "c", "d", "äöü"}
		for _, k := range keys {
			w.coordinator(k)
		}
		for broker := 1; broker <= 3; broker++ {
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.Version, req.CoordinatorKeys = 4, keys
			resp := ask[*kmsg.FindCoordinatorResponse](w, broker, req)
			for i, k := range keys {
				c := resp.Coordinators[i]
				want := w.Leader("__consumer_offsets", int(group.Partition(k, 8)))
				if c.Key != k || c.ErrorCode != 0 || int(c.NodeID) != want {
					t.Errorf("broker %d on %s: %+v, the partition's leader is %d", broker, k, c, want)
				}
			}
			req.CoordinatorType = 9
			for _, c := range ask[*kmsg.FindCoordinatorResponse](w, broker, req).Coordinators {
				code(t, "type 9", c.ErrorCode, model.ErrInvalidRequest)
			}
		}
	})
}

// B198: a commit of nothing writes nothing, and each member that leaves has its
// answer.
func TestACommitOfNothingWritesNothing(t *testing.T) {
	inGroups(t, func(w *world) {
		w.commitAlone("g", "t", 1)
		end := func() (leo int64) {
			for _, m := range w.Marks("__consumer_offsets", int(w.offsetsPartition("g"))) {
				leo = max(leo, m.LEO)
			}
			return leo
		}
		before := end()
		req := commitRequest(7, "g", "", -1, "t", 1)
		req.Topics = nil
		if resp := ask[*kmsg.OffsetCommitResponse](w, w.coordinator("g"), req); len(resp.Topics) != 0 {
			t.Errorf("%d topics", len(resp.Topics))
		}
		pass(time.Second)
		if after := end(); after != before || before == 0 {
			t.Errorf("the log of offsets ended at %d, now at %d", before, after)
		}
	})
}

// B198: whoever leaves is told so, alone or among others.
func TestEachMemberThatLeavesHasItsAnswer(t *testing.T) {
	inGroups(t, func(w *world) {
		for _, version := range []int16{0, 2} {
			m := w.newMember("old", 3, "range")
			m.join()
			for _, want := range []model.Error{model.None, model.ErrUnknownMemberID} {
				req := kmsg.NewPtrLeaveGroupRequest()
				req.Version, req.Group, req.MemberID = version, "old", m.id
				code(t, fmt.Sprint("v", version), askOn[*kmsg.LeaveGroupResponse](w, m.conn, req).ErrorCode, want)
			}
		}
		a, b := w.newMember("g", 5, "range"), w.newMember("g", 5, "range")
		w.formed(a, b)
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Version, req.Group = 3, "g"
		for _, id := range []string{a.id, "unknown", b.id} {
			m := kmsg.NewLeaveGroupRequestMember()
			m.MemberID = id
			req.Members = append(req.Members, m)
		}
		resp := askOn[*kmsg.LeaveGroupResponse](w, a.conn, req)
		code(t, "v3", resp.ErrorCode, model.None)
		if len(resp.Members) != 3 {
			t.Fatalf("%d members are answered", len(resp.Members))
		}
		for i, want := range []model.Error{model.None, model.ErrUnknownMemberID, model.None} {
			code(t, fmt.Sprint("member ", i), resp.Members[i].ErrorCode, want)
		}
		if s := w.state("g"); s != "Empty" {
			t.Errorf("the group is %s", s)
		}
	})
}
