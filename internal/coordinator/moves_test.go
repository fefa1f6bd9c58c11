package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

var partitionOfG = group.Partition("g", partitions)

func beat(c *cluster, broker int, id string, generation int32) model.Error {
	c.t.Helper()
	return model.Error(ask[*kmsg.HeartbeatResponse](c, broker, heartbeat(id, generation)).ErrorCode)
}

func TestAGroupGoesOnAtItsNextCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		id := formed(c)
		member := commit("g", 42, "")
		member.MemberID, member.Generation = id, 1
		expect(t, "commit", committed(ask[*kmsg.OffsetCommitResponse](c, 0, member)), model.None)
		expect(t, "before the move", beat(c, 1, id, 1), model.ErrNotCoordinator)
		none := kmsg.NewPtrHeartbeatRequest()
		expect(t, "no group, wherever its coordinator were", model.Error(ask[*kmsg.HeartbeatResponse](c, 1, none).ErrorCode), model.ErrInvalidGroupID)

		gate := make(chan struct{})
		c.set(func() { c.gate = gate })
		c.move(partitionOfG, 1)
		expect(t, "the old coordinator", beat(c, 0, id, 1), model.ErrNotCoordinator)
		expect(t, "the new one while it loads", beat(c, 1, id, 1), model.ErrCoordinatorLoadInProgress)
		list := ask[*kmsg.ListGroupsResponse](c, 1, kmsg.NewPtrListGroupsRequest())
		expect(t, "a list while it loads", model.Error(list.ErrorCode), model.ErrCoordinatorLoadInProgress)

		close(gate)
		synctest.Wait()
		expect(t, "the new one", beat(c, 1, id, 1), model.None)
		expect(t, "offsets", offsets(ask[*kmsg.OffsetFetchResponse](c, 1, fetch("g"))), "g:42")
		s := ask[*kmsg.SyncGroupResponse](c, 1, syncGroup(id, 1))
		expect(t, "the assignment", string(s.MemberAssignment), "all")
		d := kmsg.NewPtrDescribeGroupsRequest()
		d.Groups = []string{"g"}
		found := ask[*kmsg.DescribeGroupsResponse](c, 1, d).Groups[0]
		expect(t, "state and host", found.State+found.Members[0].ClientHost, "Stable/10.0.0.1")
	})
}

func TestLossOfLeadershipAnswersWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		formed(c)
		parked := c.post(0, join(""))
		c.set(func() { c.stuck = true })
		unsaved := c.post(0, commit("h", 1, ""))
		select {
		case <-parked:
			t.Fatal("a join was answered in the middle of a rebalance")
		case <-unsaved:
			t.Fatal("an offset was acknowledged before the high watermark passed it")
		default:
		}
		c.move(partitionOfG, model.NoBroker)
		expect(t, "join", model.Error(answered[*kmsg.JoinGroupResponse](c, parked).ErrorCode), model.ErrNotCoordinator)
		c.move(group.Partition("h", partitions), 1)
		expect(t, "commit", committed(answered[*kmsg.OffsetCommitResponse](c, unsaved)), model.ErrNotCoordinator)
		// It reached the log after all: that is for the next coordinator to say.
		c.unstick()
		expect(t, "offset", offsets(ask[*kmsg.OffsetFetchResponse](c, 1, fetch("h"))), "h:1")
		if len(unsaved) > 0 {
			t.Error("the commit was answered twice")
		}
	})
}

func TestANewEpochReadsTheLogAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		id := formed(c)
		parked := c.post(0, join(""))
		c.move(partitionOfG, 0)
		expect(t, "join", model.Error(answered[*kmsg.JoinGroupResponse](c, parked).ErrorCode), model.ErrNotCoordinator)
		expect(t, "heartbeat", beat(c, 0, id, 1), model.None)
	})
}

func TestAcknowledgedMeansCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.set(func() { c.stuck = true })
		first, second := c.post(0, commit("g", 1, "")), c.post(0, commit("g", 2, ""))
		expect(t, "meanwhile", offsets(ask[*kmsg.OffsetFetchResponse](c, 0, fetch("g"))), "g:none")
		c.unstick()
		for _, got := range []chan kmsg.Response{first, second} {
			expect(t, "commit", committed(answered[*kmsg.OffsetCommitResponse](c, got)), model.None)
		}
		expect(t, "then", offsets(ask[*kmsg.OffsetFetchResponse](c, 0, fetch("g"))), "g:2")

		c.set(func() { c.stuck = true })
		late := c.post(0, commit("g", 3, ""))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		expect(t, "too late", committed(answered[*kmsg.OffsetCommitResponse](c, late)), model.ErrCoordinatorNotAvailable)
	})
}

func TestWritesOfOneTurnShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		got := make(chan kmsg.Response, 100)
		k := c.brokers[0]
		var events []event
		post := func(offset int64, metadata string) {
			events = append(events, &request{req: commit("g", offset, metadata), reply: func(r kmsg.Response) { got <- r }})
		}
		for i := range 50 {
			post(int64(i), "")
		}
		post(50, strings.Repeat("x", 7000))
		post(51, strings.Repeat("x", 7000)) // does not fit any more
		for i := range 10 {
			post(int64(52+i), "")
		}
		// All of them reach the loop in one turn.
		k.inbox.Post(events...)
		synctest.Wait()
		expect(t, "answers", len(got), len(events))
		for range len(got) {
			expect(t, "commit", committed((<-got).(*kmsg.OffsetCommitResponse)), model.None)
		}
		expect(t, "batches", c.batches, 2)
		expect(t, "offset", offsets(ask[*kmsg.OffsetFetchResponse](c, 0, fetch("g"))), "g:61")
	})
}

func TestRefusedWritesSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		huge := commit("g", 1, strings.Repeat("x", 6000))
		huge.Topics = append(huge.Topics, huge.Topics...)
		expect(t, "too large a batch", committed(ask[*kmsg.OffsetCommitResponse](c, 0, huge)), model.ErrInvalidCommitOffsetSize)
		expect(t, "after it", committed(ask[*kmsg.OffsetCommitResponse](c, 0, commit("g", 2, ""))), model.None)
		for refused, want := range map[model.Error]model.Error{
			model.ErrNotLeaderOrFollower: model.ErrNotCoordinator, model.ErrKafkaStorageError: model.ErrNotCoordinator,
			model.ErrNotEnoughReplicas: model.ErrCoordinatorNotAvailable,
		} {
			c.set(func() { c.refuse = refused })
			expect(t, refused.Error(), committed(ask[*kmsg.OffsetCommitResponse](c, 0, commit("g", 3, ""))), want)
		}
		expect(t, "offset", offsets(ask[*kmsg.OffsetFetchResponse](c, 0, fetch("g"))), "g:2")
	})
}

// One request about groups of several partitions is answered in its own order,
// each group by its own shard.
func TestRequestsAboutManyGroupsAreSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprint("group", i))
			expect(t, names[i], committed(ask[*kmsg.OffsetCommitResponse](c, 0, commit(names[i], int64(i), ""))), model.None)
		}
		moved := group.Partition("group3", partitions)
		c.move(moved, 1)
		var want []string
		elsewhere := map[string]bool{}
		for i, name := range names {
			if elsewhere[name] = group.Partition(name, partitions) == moved; elsewhere[name] {
				want = append(want, name+":NOT_COORDINATOR")
			} else {
				want = append(want, fmt.Sprintf("%s:%d", name, i))
			}
		}
		expect(t, "fetch", offsets(ask[*kmsg.OffsetFetchResponse](c, 0, fetch(names...))), strings.Join(want, " "))

		expect(t, "listed", listed(c), strings.Count(strings.Join(want, " "), ":")-strings.Count(strings.Join(want, " "), "NOT"))

		d := kmsg.NewPtrDescribeGroupsRequest()
		d.Version, d.Groups = 5, names
		x := kmsg.NewPtrDeleteGroupsRequest()
		x.Version, x.Groups = 2, append(names[:len(names):len(names)], "missing")
		described, deleted := ask[*kmsg.DescribeGroupsResponse](c, 0, d), ask[*kmsg.DeleteGroupsResponse](c, 0, x)
		for i, name := range names {
			code := model.None
			if elsewhere[name] {
				code = model.ErrNotCoordinator
			}
			expect(t, "describe "+name, described.Groups[i].Group+model.Error(described.Groups[i].ErrorCode).Error(), name+code.Error())
			expect(t, "delete "+name, deleted.Groups[i].Group+model.Error(deleted.Groups[i].ErrorCode).Error(), name+code.Error())
		}
		expect(t, "left", listed(c), 0)
	})
}

// listed is how many groups broker 0 lists.
func listed(c *cluster) int {
	c.t.Helper()
	return len(ask[*kmsg.ListGroupsResponse](c, 0, kmsg.NewPtrListGroupsRequest()).Groups)
}

func TestTimeActsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		id := formed(c)
		time.Sleep(9 * time.Second)
		expect(t, "in time", beat(c, 0, id, 1), model.None)
		time.Sleep(10*time.Second + time.Millisecond)
		expect(t, "too late", beat(c, 0, id, 1), model.ErrUnknownMemberID)
	})
}

func TestOffsetsGoWithTheirTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ask[*kmsg.OffsetCommitResponse](c, 0, commit("g", 5, ""))
		c.apply(&metalog.RemoveTopic{TopicID: model.UUID{1}})
		expect(t, "offset", offsets(ask[*kmsg.OffsetFetchResponse](c, 0, fetch("g"))), "g:none")
		expect(t, "commit", committed(ask[*kmsg.OffsetCommitResponse](c, 0, commit("g", 6, ""))), model.ErrUnknownTopicOrPartition)
	})
}

func TestWithoutTheTopicNobodyIsCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.apply(&metalog.RemoveTopic{TopicID: offsetsID})
		expect(t, "heartbeat", beat(c, 0, "x", 1), model.ErrNotCoordinator)
	})
}

func TestALogThatCannotBeReadMakesNoCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ask[*kmsg.OffsetCommitResponse](c, 0, commit("g", 5, ""))
		// A bit of the commit timestamp flips: only the checksum can tell.
		c.set(func() { c.logs[partitionOfG][len(c.logs[partitionOfG])-3] ^= 1 })
		c.move(partitionOfG, 1)
		expect(t, "heartbeat", beat(c, 1, "x", 1), model.ErrNotCoordinator)
	})
}

func TestCloseAnswersEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		formed(c)
		parked := c.post(0, join(""))
		c.set(func() { c.gate = make(chan struct{}) })
		c.move(0, 1) // broker 1 is closed while it loads
		c.brokers[0].Close()
		c.brokers[1].Close()
		expect(t, "join", model.Error(answered[*kmsg.JoinGroupResponse](c, parked).ErrorCode), model.ErrNotCoordinator)
		expect(t, "afterwards", beat(c, 0, "x", 1), model.ErrCoordinatorNotAvailable)
	})
}
