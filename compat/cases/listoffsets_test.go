package cases

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// Times of ListOffsets that are none.
const (
	latest        = -1
	earliest      = -2
	maxTime       = -3
	earliestLocal = -4
	latestTiered  = -5
	earliestQueue = -6 // the earliest that waits for upload
)

// listed is what one partition answered to a ListOffsets.
type listed = kmsg.ListOffsetsResponseTopicPartition

// offsetRequest asks for one offset of partition 0.
func offsetRequest(version int16, topic string, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = version, -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.CurrentLeaderEpoch, p.Timestamp = -1, timestamp
	rt.Partitions = append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	return req
}

// found checks one look-up at the leader.
func (w *world) found(version int16, topic string, timestamp, offset, at int64) listed {
	w.t.Helper()
	p := ask[*kmsg.ListOffsetsResponse](w, w.Leader(topic, 0), offsetRequest(version, topic, timestamp)).Topics[0].Partitions[0]
	what := fmt.Sprintf("v%d of time %d", version, timestamp)
	code(w.t, what, p.ErrorCode, model.None)
	if p.Offset != offset || p.Timestamp != at {
		w.t.Errorf("%s: offset %d at time %d, want %d at %d", what, p.Offset, p.Timestamp, offset, at)
	}
	return p
}

// B165: an empty log has an earliest and a latest offset, and no times.
func TestAnEmptyLogHasOffsetsAndNoTimes(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		empty := func(offset int64) {
			t.Helper()
			for _, version := range []int16{1, 5, 7, 11} {
				w.found(version, "t", earliest, offset, -1)
				w.found(version, "t", latest, offset, -1)
				w.found(version, "t", time.Now().UnixMilli(), -1, -1)
				w.found(version, "t", 0, -1, -1)
				if version >= 7 {
					w.found(version, "t", maxTime, -1, -1)
				}
			}
		}
		empty(0)
		for range 100 {
			w.accepted("a record", "t", timed(record.PlainOptions(), 5), w.end("t"))
		}
		w.WaitHW("t", 0, 100)
		w.deleteRecords(1, "t", 100)
		empty(100)
	})
}

// B166: a time finds the first record at it or after it, with that record's own
// time.
func TestATimeFindsTheFirstRecordAtItOrAfterIt(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("batches", 1, 1, nil)
		for i, at := range []int64{2, 4, 6, 8} {
			w.accepted("a batch", "batches", timed(record.PlainOptions(), at), int64(i))
		}
		w.WaitHW("batches", 0, 4)
		topics := []string{"batches"}
		for _, c := range codecs {
			topic := "one-" + c.String()
			topics = append(topics, topic)
			w.CreateTopic(topic, 1, 1, nil)
			w.accepted("one batch", topic, timed(packed(c), 2, 4, 6, 8), 0)
			w.WaitHW(topic, 0, 4)
		}
		for _, topic := range topics {
			for _, version := range []int16{1, 5, 11} {
				for _, q := range [][3]int64{{0, 0, 2}, {2, 0, 2}, {3, 1, 4}, {4, 1, 4}, {5, 2, 6}, {8, 3, 8}, {9, -1, -1}, {1<<63 - 1, -1, -1}} {
					w.found(version, topic, q[0], q[1], q[2])
				}
			}
		}
	})
}

// B168: the largest time finds the first record that has it, and nothing that is
// deleted.
func TestTheLargestTimeFindsItsFirstRecord(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		for _, c := range codecs {
			topic := c.String()
			w.CreateTopic(topic, 1, 1, nil)
			w.accepted("a batch", topic, timed(packed(c), 100, 300, 200), 0)
			w.accepted("another", topic, timed(packed(c), 300, 50), 3)
			w.WaitHW(topic, 0, 5)
			w.found(7, topic, maxTime, 1, 300)
			w.deleteRecords(1, topic, 2)
			w.found(7, topic, maxTime, 3, 300)
			w.deleteRecords(1, topic, 4)
			w.found(7, topic, maxTime, 4, 50)
			w.found(7, topic, 40, 4, 50)
			w.deleteRecords(1, topic, 5)
			w.found(7, topic, maxTime, -1, -1)
			w.accepted("an old record", topic, timed(packed(c), 7), 5)
			w.WaitHW(topic, 0, 6)
			w.found(7, topic, maxTime, 5, 7)
		}
	})
}

// B170: a special time that a version does not have, a partition named twice and
// one that is not there have errors of their own.
func TestWhatCannotBeListedHasAnError(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		w.mustProduce("t", "x")
		w.WaitHW("t", 0, 1)
		bad := func(what string, req *kmsg.ListOffsetsRequest, want model.Error) {
			t.Helper()
			for _, rt := range ask[*kmsg.ListOffsetsResponse](w, 1, req).Topics {
				for _, p := range rt.Partitions {
					if code(t, what, p.ErrorCode, want); p.Offset != -1 || p.Timestamp != -1 || p.LeaderEpoch != -1 {
						t.Errorf("%s: offset %d, time %d, epoch %d with an error", what, p.Offset, p.Timestamp, p.LeaderEpoch)
					}
				}
			}
		}
		for timestamp, since := range map[int64]int16{maxTime: 7, earliestLocal: 8, latestTiered: 9, earliestQueue: 11, -7: 12, -99: 12, -1 << 63: 12} {
			for version := int16(1); version <= min(since-1, 11); version++ {
				bad(fmt.Sprintf("v%d of time %d", version, timestamp), offsetRequest(version, "t", timestamp), model.ErrUnsupportedVersion)
			}
		}
		w.found(11, "t", earliestQueue, -1, -1)
		twice := offsetRequest(7, "t", latest)
		twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, twice.Topics[0].Partitions[0])
		bad("a partition twice", twice, model.ErrInvalidRequest)
		twice = offsetRequest(7, "t", latest)
		twice.Topics = append(twice.Topics, offsetRequest(7, "t", earliest).Topics...)
		bad("a partition in two elements", twice, model.ErrInvalidRequest)
		bad("an unknown topic", offsetRequest(7, "u", latest), model.ErrUnknownTopicOrPartition)
		for _, partition := range []int32{99, 1, -1} {
			req := offsetRequest(7, "t", latest)
			req.Topics[0].Partitions[0].Partition = partition
			bad(fmt.Sprint("partition ", partition), req, model.ErrUnknownTopicOrPartition)
		}
	})
}

// B171: without tiers the earliest local offset is the earliest, and nothing is
// tiered.
func TestWithoutTiersTheEarliestIsLocal(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		for range 50 {
			w.mustProduce("t", "x")
		}
		w.WaitHW("t", 0, 50)
		w.deleteRecords(1, "t", 40)
		for version := int16(8); version <= 11; version++ {
			w.found(version, "t", earliestLocal, 40, -1)
			w.found(version, "t", earliest, 40, -1)
			if version >= 9 {
				w.found(version, "t", latestTiered, -1, -1)
			}
		}
	})
}

// B173: the leader epoch of an answer is that of the record that is meant.
func TestAnAnswerHasTheLeaderEpochOfItsRecord(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		write := func(epoch, from, to int64) {
			for e := int32(-1); e < int32(epoch); {
				if _, e = w.serving("t"); e < int32(epoch) {
					w.Elect("t", 0, w.followers("t")[0])
				}
			}
			for at := from; at < to; at++ {
				w.accepted("a record", "t", timed(record.PlainOptions(), at), at)
			}
			w.WaitHW("t", 0, to)
		}
		write(0, 0, 10)
		write(2, 10, 15)
		write(5, 15, 15)
		for version := int16(4); version <= 11; version++ {
			for _, q := range []struct {
				timestamp, offset, at int64
				epoch                 int32
			}{{earliest, 0, -1, 0}, {latest, 15, -1, 5}, {0, 0, 0, 0}, {5, 5, 5, 0}, {9, 9, 9, 0}, {10, 10, 10, 2}, {14, 14, 14, 2},
				{15, -1, -1, -1}, {maxTime, 14, 14, 2}} {
				if q.timestamp == maxTime && version < 7 {
					continue
				}
				if p := w.found(version, "t", q.timestamp, q.offset, q.at); p.LeaderEpoch != q.epoch {
					t.Errorf("v%d of time %d: epoch %d, want %d", version, q.timestamp, p.LeaderEpoch, q.epoch)
				}
			}
		}
	})
}

// B174: a follower sends consumers away, and tells those who debug what it has.
func TestAFollowerListsNothingForConsumers(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.accepted("a record", "t", timed(record.PlainOptions(), 7), 0)
		follower := w.followers("t")[0]
		w.WaitFor("the follower knows what is committed", func() bool { _, hw := w.mark(follower, "t"); return hw == 1 })
		for _, timestamp := range []int64{latest, earliest, 7, maxTime} {
			req := offsetRequest(7, "t", timestamp)
			p := ask[*kmsg.ListOffsetsResponse](w, follower, req).Topics[0].Partitions[0]
			if code(t, fmt.Sprint("time ", timestamp), p.ErrorCode, model.ErrNotLeaderOrFollower); p.Offset != -1 || p.Timestamp != -1 {
				t.Errorf("time %d: offset %d at %d with an error", timestamp, p.Offset, p.Timestamp)
			}
			req.ReplicaID = -2
			p = ask[*kmsg.ListOffsetsResponse](w, follower, req).Topics[0].Partitions[0]
			code(t, fmt.Sprint("debugging, time ", timestamp), p.ErrorCode, model.None, model.ErrNotLeaderOrFollower)
		}
	})
}
