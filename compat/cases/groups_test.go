package cases

import (
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// inGroups runs f on three brokers that allow sessions of a second.
func inGroups(t *testing.T, f func(w *world), opts ...tidetest.Option) {
	t.Helper()
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 2, 3, nil)
		f(w)
	}, append([]tidetest.Option{tidetest.Set("group.min.session.timeout.ms", "1000")}, opts...)...)
}

// B176: a new member is given an id before it counts, and one that never comes
// back holds nothing up.
func TestANewMemberIsGivenAnID(t *testing.T) {
	for _, version := range []int16{4, 9} {
		inGroups(t, func(w *world) {
			ghost := w.newMember("g", version, "range")
			resp := ghost.joinOnce()
			code(t, "without an id", resp.ErrorCode, model.ErrMemberIDRequired)
			if resp.MemberID == "" || resp.Generation != -1 {
				t.Errorf("id %q, generation %d", resp.MemberID, resp.Generation)
			}
			made := w.newMember("g", version, "range")
			made.id = "made-up"
			code(t, "a made-up id", made.joinOnce().ErrorCode, model.ErrUnknownMemberID)
			m := w.newMember("g", version, "range")
			start := time.Now()
			resp = m.join()
			code(t, "with its id", resp.ErrorCode, model.None)
			within(t, "the first rebalance", time.Since(start), ghost.session+time.Second)
			if resp.Generation != 1 || len(resp.Members) != 1 {
				t.Errorf("generation %d with %d members", resp.Generation, len(resp.Members))
			}
			w.synced(map[string][]byte{m.id: nil}, m)
			for range 4 {
				pass(3 * time.Second)
				code(t, "heartbeat", m.beat(), model.None)
			}
			ghost.id = resp.MemberID
			if n := len(w.describeGroup(5, "g").Members); n != 1 {
				t.Errorf("%d members", n)
			}
		})
	}
	inGroups(t, func(w *world) {
		resp := w.newMember("old", 3, "range").joinOnce()
		code(t, "version 3", resp.ErrorCode, model.None)
		if resp.Generation != 1 || resp.MemberID == "" {
			t.Errorf("version 3: generation %d, id %q", resp.Generation, resp.MemberID)
		}
	})
}

// B177: members get the very bytes that the leader gave them.
func TestAssignmentsArePassedThroughUnchanged(t *testing.T) {
	inGroups(t, func(w *world) {
		members := []*member{w.newMember("g", 7, "range"), w.newMember("g", 5, "range"), w.newMember("g", 9, "range")}
		w.gathered(members...)
		given := map[string][]byte{}
		omitted := false
		for _, m := range members {
			if m.leads() != (len(m.last.Members) == 3) {
				t.Errorf("leader: %v, but told of %d members", m.leads(), len(m.last.Members))
			}
			if m.version >= 7 && (m.last.ProtocolType == nil || *m.last.ProtocolType != "consumer") {
				t.Error("a join without its protocol type")
			}
			if !m.leads() && !omitted {
				omitted = true
				continue
			}
			given[m.id] = make([]byte, 10<<10)
			rand.Read(given[m.id])
		}
		w.synced(given, members...)
		for _, m := range members { // once more, after the leader
			resp := m.sync(nil)
			code(t, "sync again", resp.ErrorCode, model.None)
			if !slices.Equal(resp.MemberAssignment, given[m.id]) {
				t.Error("another assignment the second time")
			}
		}
	})
}

// B179: a heartbeat tells in each state what the member shall do.
func TestHeartbeatsTellWhatToDo(t *testing.T) {
	inGroups(t, func(w *world) {
		m := w.newMember("g", 5, "range")
		code(t, "an unknown group", m.beatAs("x", 1, nil), model.ErrUnknownMemberID)
		code(t, "an empty group id", w.beat(m.conn, "", "x", 1, nil), model.ErrInvalidGroupID)
		m.join()
		code(t, "while the leader assigns", m.beat(), model.None)
		w.synced(map[string][]byte{m.id: []byte("all")}, m)
		code(t, "stable", m.beat(), model.None)
		code(t, "another generation", m.beatAs(m.id, 7, nil), model.ErrIllegalGeneration)
		code(t, "another member", m.beatAs("x", 1, nil), model.ErrUnknownMemberID)
		other := w.newMember("g", 5, "range")
		waiting := other.joining()
		pass(100 * time.Millisecond)
		code(t, "in a rebalance", m.beat(), model.ErrRebalanceInProgress)
		mine := m.joining()
		<-mine
		<-waiting
		m.leave()
		other.leave()
		if s := w.state("g"); s != "Empty" {
			t.Errorf("the group is %s", s)
		}
		code(t, "an empty group", m.beat(), model.ErrUnknownMemberID)
	})
}

// B180: offsets are taken from members of the generation, and from those who
// need no group.
func TestWhoMayCommitOffsets(t *testing.T) {
	inGroups(t, func(w *world) {
		code(t, "without a group", w.commit(7, "alone", "", -1), model.None)
		code(t, "a generation without a group, v8", w.commit(8, "none", "", 5), model.ErrIllegalGeneration)
		code(t, "a generation without a group, v9", w.commit(9, "none", "", 5), model.ErrGroupIDNotFound)
		m := w.newMember("g", 5, "range")
		m.join()
		code(t, "before the assignment", w.commit(7, "g", m.id, 1), model.ErrRebalanceInProgress)
		w.synced(map[string][]byte{m.id: []byte("all")}, m)
		code(t, "a member", w.commit(7, "g", m.id, 1), model.None)
		code(t, "another generation", w.commit(7, "g", m.id, 3), model.ErrIllegalGeneration)
		code(t, "another member", w.commit(7, "g", "x", 1), model.ErrUnknownMemberID)
		code(t, "nobody", w.commit(7, "g", "", -1), model.ErrUnknownMemberID)
		m.last = m.joinOnce() // a leader that joins again begins a new generation
		w.synced(nil, m)
		code(t, "of the generation before", w.commit(7, "g", m.id, 1), model.ErrIllegalGeneration)

		req := commitRequest(7, "g", m.id, m.last.Generation, "t", 6)
		long := req.Topics[0].Partitions[0]
		long.Partition, long.Metadata = 1, kmsg.StringPtr(fmt.Sprintf("%5000d", 0))
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, long)
		req.Topics = append(req.Topics, commitRequest(7, "g", "", 0, "missing", 1).Topics[0])
		resp := ask[*kmsg.OffsetCommitResponse](w, w.coordinator("g"), req)
		code(t, "a good partition", resp.Topics[0].Partitions[0].ErrorCode, model.None)
		code(t, "too much metadata", resp.Topics[0].Partitions[1].ErrorCode, model.ErrOffsetMetadataTooLarge)
		code(t, "a topic that is not there", resp.Topics[1].Partitions[0].ErrorCode, model.ErrUnknownTopicOrPartition)
		if got := w.committedOffset("g", "t"); got != 6 {
			t.Errorf("the committed offset is %d", got)
		}
	})
}

// B191: what a member must bring along to join.
func TestJoiningIsRefusedInItsOwnWords(t *testing.T) {
	inGroups(t, func(w *world) {
		refused := func(what string, want model.Error, change func(m *member)) {
			t.Helper()
			m := w.newMember("new", 3, "range")
			change(m)
			code(t, what, m.joinOnce().ErrorCode, want)
		}
		refused("a session too short", model.ErrInvalidSessionTimeout, func(m *member) { m.session = 999 * time.Millisecond })
		refused("a session too long", model.ErrInvalidSessionTimeout, func(m *member) { m.session = 1_800_001 * time.Millisecond })
		refused("no protocols", model.ErrInconsistentGroupProtocol, func(m *member) { m.names = nil })
		refused("no protocol type", model.ErrInconsistentGroupProtocol, func(m *member) { m.kind = "" })
		refused("no group id", model.ErrInvalidGroupID, func(m *member) { m.group = "" })
		if got := w.groupsOf(); got != "[]" {
			t.Errorf("there are groups %s", got)
		}
		a, b := w.newMember("g", 5, "range"), w.newMember("g", 5, "range")
		w.formed(a)
		refused("another protocol type", model.ErrInconsistentGroupProtocol, func(m *member) { m.conn, m.group, m.kind = a.conn, "g", "connect" })
		refused("no common protocol", model.ErrInconsistentGroupProtocol, func(m *member) { m.conn, m.group, m.names = a.conn, "g", []string{"sticky"} })
		w.formed(a, b)
		refused("a third of two", model.ErrGroupMaxSizeReached, func(m *member) { m.conn, m.group = a.conn, "g" })
		for _, odd := range []string{".", "with space", "é/ü"} {
			refused(odd, model.None, func(m *member) { m.conn, m.group = w.dial(w.coordinator(odd)), odd })
		}
		code(t, "a member", a.beat(), model.None)
	}, tidetest.Set("group.max.size", "2"))
}

// B195: groups and offsets in use are not deleted.
func TestWhatIsInUseIsNotDeleted(t *testing.T) {
	inGroups(t, func(w *world) {
		w.CreateTopic("u", 1, 3, nil)
		m := w.newMember("g", 5, "range")
		w.formed(m)
		code(t, "commit", w.commit(7, "g", m.id, m.last.Generation), model.None)
		other := commitRequest(7, "g", m.id, m.last.Generation, "u", 9)
		code(t, "commit", ask[*kmsg.OffsetCommitResponse](w, w.coordinator("g"), other).Topics[0].Partitions[0].ErrorCode, model.None)
		code(t, "delete a stable group", w.deleteGroup("g"), model.ErrNonEmptyGroup)
		code(t, "delete no group", w.deleteGroup("missing"), model.ErrGroupIDNotFound)
		code(t, "delete an empty id", w.deleteGroup(""), model.ErrGroupIDNotFound)
		code(t, "offsets of a subscribed topic", w.deleteOffset("g", "t"), model.ErrGroupSubscribedToTopic)
		code(t, "offsets of another topic", w.deleteOffset("g", "u"), model.None)
		if a, b := w.committedOffset("g", "t"), w.committedOffset("g", "u"); a != 5 || b != -1 {
			t.Errorf("committed: %d and %d", a, b)
		}
		code(t, "offsets that never were", w.deleteOffset("g", "u"), model.None, model.ErrUnknownTopicOrPartition)
		code(t, "offsets of no group", w.deleteOffset("missing", "t"), model.ErrGroupIDNotFound)
		connect := w.newMember("c", 5, "range")
		connect.kind = "connect"
		w.formed(connect)
		code(t, "offsets of another kind of group", w.deleteOffset("c", "t"), model.ErrNonEmptyGroup)
		m.leave()
		code(t, "offsets of an empty group", w.deleteOffset("g", "t"), model.None)
		if got := w.committedOffset("g", "t"); got != -1 {
			t.Errorf("a deleted offset is %d", got)
		}
		w.commitAlone("g", "t", 3)
		code(t, "delete an empty group", w.deleteGroup("g"), model.None)
		if got, all := w.committedOffset("g", "t"), w.groupsOf(); got != -1 || all != "[c Stable]" {
			t.Errorf("after the group: offset %d, groups %s", got, all)
		}
	})
}

// B196: describing and listing tell of groups and make none.
func TestDescribingMakesNoGroup(t *testing.T) {
	inGroups(t, func(w *world) {
		d := w.describeGroup(5, "missing")
		if d.State != "Dead" || d.ErrorCode != 0 {
			t.Errorf("v5: %s, %v", d.State, model.Error(d.ErrorCode))
		}
		d = w.describeGroup(6, "missing")
		if code(t, "v6", d.ErrorCode, model.ErrGroupIDNotFound); d.State != "Dead" || d.ErrorMessage == nil {
			t.Errorf("v6: %s, %v", d.State, d.ErrorMessage)
		}
		m := w.newMember("stable", 5, "range")
		w.formed(m)
		w.commitAlone("empty", "t", 1)
		d = w.describeGroup(6, "stable")
		if d.State != "Stable" || d.ProtocolType != "consumer" || d.Protocol != "range" || len(d.Members) != 1 ||
			string(d.Members[0].MemberAssignment) != "for "+m.id || string(d.Members[0].ProtocolMetadata) != string(subscribed("range")) {
			t.Errorf("stable: %+v", d)
		}
		if s := w.state("empty"); s != "Empty" {
			t.Errorf("empty: %s", s)
		}
		for filter, want := range map[string]string{"Stable": "[stable Stable]", "Empty": "[empty Empty]", "Nonsense": "[]"} {
			if got := w.groupsOf(filter); got != want {
				t.Errorf("listed as %s: %s", filter, got)
			}
		}
	})
}

// B199: the protocol is one that all members know, by their votes.
func TestTheProtocolIsCommonToAllMembers(t *testing.T) {
	inGroups(t, func(w *world) {
		a, b, c := w.newMember("g", 5, "range", "sticky"), w.newMember("g", 5, "sticky", "range"), w.newMember("g", 5, "sticky")
		w.gathered(a, b, c)
		for _, m := range []*member{a, b, c} {
			if *m.last.Protocol != "sticky" {
				t.Errorf("the protocol is %s", *m.last.Protocol)
			}
			for _, o := range m.last.Members {
				if string(o.ProtocolMetadata) != string(subscribed("sticky")) {
					t.Errorf("the leader has %q of %s", o.ProtocolMetadata, o.MemberID)
				}
			}
		}
		w.synced(nil, a, b, c)
		c.leave()
		w.gathered(a, b)
		if p := *a.last.Protocol; p != "range" && p != "sticky" {
			t.Errorf("after one left the protocol is %s", p)
		}
		w.synced(nil, a, b)
		if s := w.state("g"); s != "Stable" {
			t.Errorf("the group is %s", s)
		}
	})
}
