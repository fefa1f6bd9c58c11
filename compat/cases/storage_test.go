package cases

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// B138: retention by time may take every record; offsets go on all the same,
// over a restart too.
func TestOffsetsGoOnWhenRetentionHasTakenEveryRecord(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, with("retention.ms", "1000"))
		w.hundreds("t", 1)
		pass(3 * time.Second)
		empty := func() {
			for _, timestamp := range []int64{-2, -1} {
				if l := w.list(1, "t", timestamp); l.ErrorCode != 0 || l.Offset != 100 {
					t.Errorf("offset of time %d: %v, %d", timestamp, model.Error(l.ErrorCode), l.Offset)
				}
			}
			for _, offset := range []int64{0, 50} {
				p, _ := w.fetch(1, at("t", offset))
				code(t, fmt.Sprint("fetch at ", offset), p.ErrorCode, model.ErrOffsetOutOfRange)
			}
			p, _ := w.fetch(1, at("t", 100))
			code(t, "fetch at the end", p.ErrorCode, model.None)
			if len(p.RecordBatches) != 0 || p.HighWatermark != 100 || p.LogStartOffset != 100 {
				t.Errorf("at the end: %d bytes, HW %d, log start %d", len(p.RecordBatches), p.HighWatermark, p.LogStartOffset)
			}
		}
		empty()
		for _, end := range []func(int){w.Stop, w.Kill} {
			end(1)
			w.Restart(1)
			w.WaitLeader("t", 0)
			w.WaitHW("t", 0, 100)
			empty()
		}
		if o := w.mustProduce("t", "next"); o != 100 {
			t.Errorf("the next record got offset %d", o)
		}
	}, checks())
}

// B140: retention never takes what is not replicated yet, by time or by size.
func TestRetentionNeverPassesTheHighWatermark(t *testing.T) {
	for _, rule := range [][2]string{{"retention.ms", "500"}, {"retention.bytes", "1000"}} {
		inBubble(t, 3, func(w *world) {
			w.CreateTopic("t", 1, 3, smallSegments("min.insync.replicas", "1", rule[0], rule[1]))
			leader, followers := w.Leader("t", 0), w.followers("t")
			for _, f := range followers {
				w.Pause(f)
			}
			w.fill("t", 1, 40)
			if n := len(w.files(leader, "t", ".log")); n < 10 {
				t.Fatalf("%d segments", n)
			}
			w.holdsFor(5*time.Second, "the log begins at the high watermark at most", func() bool {
				for _, m := range w.Marks("t", 0) {
					if m.LogStart > m.HW {
						return false
					}
				}
				return w.earliest(leader, "t") == 0
			})
			for _, f := range followers {
				w.Resume(f)
			}
			w.settle("t", 1, 2, 3)
			w.WaitFor("the log begins later", func() bool {
				start := w.earliest(leader, "t")
				return rule[0] == "retention.ms" && start == 40 || rule[0] == "retention.bytes" && start > 30
			})
		}, append(steady(), checks())...)
	}
}

// B141: each way to ask for a DeleteRecords has its answer, and a good answer
// comes when all replicas begin there.
func TestDeleteRecordsTellsWhereTheLogBegins(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.hundreds("t", 1)
		w.settle("t", 1, 2, 3)
		leader := w.Leader("t", 0)
		for _, c := range []struct{ ask, low int64 }{{50, 50}, {30, 50}, {0, 50}, {60, 60}} {
			p := w.tryDelete(leader, "t", 0, c.ask, 10*time.Second)
			code(t, fmt.Sprint("below ", c.ask), p.ErrorCode, model.None)
			if p.LowWatermark != c.low {
				t.Errorf("below %d: low watermark %d, want %d", c.ask, p.LowWatermark, c.low)
			}
			for _, m := range w.Marks("t", 0) {
				if m.LogStart != c.low {
					t.Errorf("below %d: broker %d begins at %d", c.ask, m.Broker, m.LogStart)
				}
			}
		}
		p := w.tryDelete(leader, "t", 0, -1, 10*time.Second)
		if code(t, "all", p.ErrorCode, model.None); p.LowWatermark != 100 || w.earliest(leader, "t") != 100 {
			t.Errorf("all: low watermark %d, earliest %d", p.LowWatermark, w.earliest(leader, "t"))
		}
	})
}

// B141: what cannot be deleted is refused.
func TestDeleteRecordsRefusesWhatItCannot(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.CreateTopic("compact", 1, 3, with("cleanup.policy", "compact"))
		w.CreateTopic("both", 1, 3, with("cleanup.policy", "compact,delete"))
		w.hundreds("t", 1)
		leader := w.Leader("t", 0)
		refused := func(what string, p lowered, want model.Error) {
			t.Helper()
			code(t, what, p.ErrorCode, want)
			if p.LowWatermark != -1 {
				t.Errorf("%s: low watermark %d", what, p.LowWatermark)
			}
		}
		refused("beyond the high watermark", w.tryDelete(leader, "t", 0, 101, time.Second), model.ErrOffsetOutOfRange)
		refused("below -1", w.tryDelete(leader, "t", 0, -2, time.Second), model.ErrOffsetOutOfRange)
		refused("an unknown partition", w.tryDelete(leader, "t", 7, 1, time.Second), model.ErrUnknownTopicOrPartition)
		refused("an unknown topic", w.tryDelete(leader, "u", 0, 1, time.Second), model.ErrUnknownTopicOrPartition)
		refused("a follower", w.tryDelete(w.followers("t")[0], "t", 0, 70, time.Second), model.ErrNotLeaderOrFollower)
		refused("a compacted topic", w.tryDelete(w.Leader("compact", 0), "compact", 0, 0, time.Second), model.ErrPolicyViolation)
		code(t, "a topic with both policies", w.tryDelete(w.Leader("both", 0), "both", 0, 0, time.Second).ErrorCode, model.None)
		w.commitAlone("g", "t", 7)
		c := w.coordinator("g")
		refused("an internal topic", w.tryDelete(c, "__consumer_offsets", w.offsetsPartition("g"), 0, time.Second), model.ErrInvalidTopicException)
	})
}

// B143: DeleteRecords waits for replicas that live, as long as it may, and for
// no dead one.
func TestDeleteRecordsWaitsForReplicasThatLive(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(1))
		w.hundreds("t", 1)
		w.settle("t", 1, 2, 3)
		leader := w.Leader("t", 0)
		_, slow := w.apart("t")
		w.Pause(slow)
		start := time.Now()
		p := w.tryDelete(leader, "t", 0, 50, 1500*time.Millisecond)
		code(t, "with a frozen replica", p.ErrorCode, model.ErrRequestTimedOut)
		about(t, "the answer", time.Since(start), 1500*time.Millisecond, 50*time.Millisecond)
		if e := w.earliest(leader, "t"); e != 50 || p.LowWatermark != -1 {
			t.Errorf("earliest %d, low watermark %d", e, p.LowWatermark)
		}
		w.Kill(slow)
		w.Resume(slow)
		w.WaitFor("the dead replica is fenced", func() bool { return len(w.ISR("t", 0)) == 2 })
		start = time.Now()
		p = w.tryDelete(leader, "t", 0, 60, 10*time.Second)
		code(t, "with a dead replica", p.ErrorCode, model.None)
		within(t, "the answer", time.Since(start), time.Second)
		if p.LowWatermark != 60 {
			t.Errorf("low watermark %d", p.LowWatermark)
		}
		w.Restart(slow)
		w.settle("t", 1, 2, 3)
		w.starts("t", 60)
	}, steady()...)
}

// B144: a consumer at the end where segments vanish reads records, or hears that
// its offset is gone, and nothing else.
func TestReadsWhileSegmentsVanish(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, smallSegments("retention.bytes", "20000"))
		stop := make(chan struct{})
		var readers sync.WaitGroup
		for range 20 {
			r := &oldest{w: w, ask: w.dial(1)}
			readers.Go(func() { r.follow("t", stop) })
		}
		for range loops(150) * 10 {
			w.fill("t", -1, 20)
			code(t, "delete", w.tryDelete(1, "t", 0, w.list(1, "t", -1).Offset-5, time.Second).ErrorCode, model.None)
			pass(20 * time.Millisecond)
		}
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.TimeoutMillis, req.TopicNames = 5, 10_000, []string{"t"}
		code(t, "delete the topic", ask[*kmsg.DeleteTopicsResponse](w, 1, req).Topics[0].ErrorCode, model.None)
		pass(time.Second)
		close(stop)
		readers.Wait()
		w.WaitFor("no deleted file is open", func() bool { return w.openDeleted() == 0 })
	}, checks())
}

// B151: what a topic's cleanup policy says holds soon after it was changed.
// (Nothing is compacted here.)
func TestTheCleanupPolicyMayChange(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, smallSegments("cleanup.policy", "compact", "retention.ms", "1000"))
		for _, c := range []struct {
			policy  string
			deletes bool
		}{{"compact", false}, {"delete", true}, {"compact,delete", true}, {"compact", false}, {"delete", true}} {
			w.alter("t", "cleanup.policy", c.policy)
			before := w.list(1, "t", -1).Offset
			for range 20 {
				set := record.NewBuilder(record.PlainOptions())
				set.Add(model.Millis(time.Now().UnixMilli()), []byte("k"), []byte(strings.Repeat("f", 300)))
				code(t, "produce", w.produce(1, "t", -1, time.Second, set.Bytes()).ErrorCode, model.None)
			}
			pass(4 * time.Second)
			want, refusal := before, model.ErrPolicyViolation
			if c.deletes {
				want, refusal = before+20, model.None
			}
			if got := w.earliest(1, "t"); got != want {
				t.Errorf("%s: the log begins at %d, want %d", c.policy, got, want)
			}
			code(t, "delete records under "+c.policy, w.tryDelete(1, "t", 0, 0, time.Second).ErrorCode, refusal)
		}
	}, checks())
}
