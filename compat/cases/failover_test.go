package cases

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// fourEpochs writes 10, 5, 0 and 7 records in four epochs, one leader each, and
// returns the epochs.
func (w *world) fourEpochs(topic string) []int32 {
	w.t.Helper()
	_, epoch := w.Leadership(topic, 0)
	var epochs []int32
	for i, n := range []int{10, 5, 0, 7} {
		if i > 0 {
			_, epoch = w.electOther(topic)
		}
		epochs = append(epochs, epoch)
		for j := range n {
			w.mustProduce(topic, fmt.Sprintf("%d-%d", i, j))
		}
	}
	w.settle(topic, 1, 2, 3)
	return epochs
}

// B99: OffsetForLeaderEpoch answers where each epoch ended, and nothing for
// epochs that are not known, to consumers and debuggers alike.
func TestTheEndOfEveryEpochIsKnown(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		e := w.fourEpochs("t")
		leader := w.Leader("t", 0)
		for _, replica := range []int32{-1, -2} {
			for _, c := range []struct {
				asked  int32
				epochs []int32
				end    int64
			}{
				{e[0], e[0:1], 10}, {e[1], e[1:2], 15}, {e[2], e[1:3], 15}, {e[3], e[3:4], 22},
				{e[3] + 1, []int32{-1}, -1}, {-1, []int32{-1}, -1},
			} {
				got := w.epochEnd(leader, "t", 0, -1, c.asked, replica)
				code(t, fmt.Sprint("epoch ", c.asked), got.ErrorCode, model.None)
				if got.EndOffset != c.end || got.LeaderEpoch != c.epochs[0] && got.LeaderEpoch != c.epochs[len(c.epochs)-1] {
					t.Errorf("epoch %d ended at (%d, %d), want one of %v at %d", c.asked, got.LeaderEpoch, got.EndOffset, c.epochs, c.end)
				}
			}
		}
	})
}

// B101: who does not lead the partition says so, whoever asks; no error comes
// with an offset.
func TestOnlyTheLeaderSaysWhereEpochsEnded(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 2, minISR(1))
		w.electOther("t")
		w.mustProduce("t", "x")
		leader, epoch := w.Leadership("t", 0)
		follower := w.followers("t")[0]
		outsider := 6 - leader - follower
		for _, c := range []struct {
			what               string
			broker             int
			topic              string
			partition, current int32
			want               model.Error
		}{
			{"a follower", follower, "t", 0, -1, model.ErrNotLeaderOrFollower},
			{"a follower, epoch known", follower, "t", 0, epoch, model.ErrNotLeaderOrFollower},
			{"a broker without the replica", outsider, "t", 0, -1, model.ErrNotLeaderOrFollower},
			{"partition 99", leader, "t", 99, -1, model.ErrUnknownTopicOrPartition},
			{"partition -1", leader, "t", -1, -1, model.ErrUnknownTopicOrPartition},
			{"no such topic", leader, "none", 0, -1, model.ErrUnknownTopicOrPartition},
			{"an old epoch", leader, "t", 0, epoch - 1, model.ErrFencedLeaderEpoch},
			{"an old epoch at a follower", follower, "t", 0, epoch - 1, model.ErrFencedLeaderEpoch},
			{"an epoch to come", leader, "t", 0, epoch + 1, model.ErrUnknownLeaderEpoch},
		} {
			got := w.epochEnd(c.broker, c.topic, c.partition, c.current, epoch, -1)
			code(t, c.what, got.ErrorCode, c.want)
			if got.EndOffset != -1 || got.LeaderEpoch != -1 {
				t.Errorf("%s: an error with epoch %d, offset %d", c.what, got.LeaderEpoch, got.EndOffset)
			}
		}
		if got := w.epochEnd(leader, "t", 0, epoch, epoch, -1); got.ErrorCode != 0 || got.EndOffset != 1 {
			t.Errorf("the leader, asked in its epoch: %v at %d", model.Error(got.ErrorCode), got.EndOffset)
		}
	})
}

// B102: a fetch that says what it read last is told at once where its log and
// ours part, without records; one that agrees gets records and no such word.
func TestAConsumerIsToldWhereItsLogDiverges(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		e := w.fourEpochs("t")
		leader := w.Leader("t", 0)
		for _, c := range []struct {
			offset    int64
			lastEpoch int32
			diverges  bool
			epoch     int32
			end       int64
		}{
			{12, e[0], true, e[0], 10}, {10, e[0], false, -1, -1}, {12, e[1], false, -1, -1},
			{20, e[1], true, e[1], 15}, {15, e[1], false, -1, -1}, {22, e[2], true, e[1], 15},
		} {
			f := at("t", c.offset)
			f.wait, f.lastEpoch = 5*time.Second, c.lastEpoch
			p, took := w.fetch(leader, f)
			what := fmt.Sprintf("fetch at %d after epoch %d", c.offset, c.lastEpoch)
			code(t, what, p.ErrorCode, model.None)
			if took > atOnce {
				t.Errorf("%s took %v", what, took)
			}
			if (len(p.RecordBatches) == 0) != c.diverges {
				t.Errorf("%s returned %d bytes", what, len(p.RecordBatches))
			}
			if p.DivergingEpoch.Epoch != c.epoch || p.DivergingEpoch.EndOffset != c.end {
				t.Errorf("%s diverges at (%d, %d), want (%d, %d)", what, p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset, c.epoch, c.end)
			}
		}
	})
}

// B104: a batch carries the epoch of the leader that appended it, on every
// replica, for ever.
func TestBatchesKeepTheEpochOfTheirLeader(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		e := w.fourEpochs("t")
		before := w.identical("t", 1, 2, 3)
		if len(before) != 22 {
			t.Fatalf("%d batches, want 22", len(before))
		}
		for i, b := range before {
			want := e[0]
			if i >= 15 {
				want = e[3]
			} else if i >= 10 {
				want = e[1]
			}
			if b.epoch != want {
				t.Errorf("the batch at %d carries epoch %d, want %d", b.base, b.epoch, want)
			}
		}
		for broker := 1; broker <= 3; broker++ {
			w.Stop(broker)
			w.Restart(broker)
			w.WaitISR("t", 0, 1, 2, 3)
		}
		w.electOther("t")
		w.settle("t", 1, 2, 3)
		if after := w.identical("t", 1, 2, 3); !reflect.DeepEqual(before, after) {
			t.Errorf("after restarts and elections the log is %+v, was %+v", after, before)
		}
	})
}

// B119: on an idle partition the last record becomes visible on followers too,
// within two of their fetches.
func TestTheLastRecordBecomesVisibleOnFollowers(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.mustProduce("t", "x")
		start := time.Now()
		answers := make(chan fetched)
		for _, f := range w.followers("t") {
			ask, own := at("t", 0), w.dial(f)
			ask.version, ask.wait = 11, 5*time.Second
			go func() {
				var p fetched
				if resp, err := own.Do(context.Background(), ask.request()); err == nil {
					p = resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
				}
				answers <- p
			}()
		}
		for range 2 {
			p := <-answers
			code(t, "fetch from a follower", p.ErrorCode, model.None)
			if got, took := w.values(p, 0), time.Since(start); len(got) != 1 || got[0] != "x" || took > time.Second {
				t.Errorf("a follower delivered %v after %v", got, took)
			}
		}
		for _, m := range w.Marks("t", 0) {
			if m.HW != 1 {
				t.Errorf("the high watermark of broker %d is %d", m.Broker, m.HW)
			}
		}
	})
}
