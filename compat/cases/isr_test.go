package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// B121: a follower that stops is waited for until it leaves the ISR, and no
// longer. The active controller may be that follower, or not.
func TestShrinkingTheISRReleasesWritesThatWait(t *testing.T) {
	for stopped := range 3 {
		t.Run(fmt.Sprint("broker ", stopped+1), func(t *testing.T) {
			inBubble(t, 3, func(w *world) { w.shrinkReleases("t", stopped+1) }, brisk()...)
		})
	}
}

func (w *world) shrinkReleases(topic string, stopped int) {
	t := w.t
	w.CreateTopic(topic, 1, 3, minISR(2))
	if w.Leader(topic, 0) == stopped {
		w.Elect(topic, 0, w.followers(topic)[0])
	}
	leader, epoch := w.serving(topic)
	w.Pause(stopped)
	p, took := w.timedProduce(leader, topic, -1, 15*time.Second, batch("x"))
	code(t, "acks=all with a stopped follower", p.ErrorCode, model.None)
	if took < 1500*time.Millisecond || took > 5*time.Second {
		t.Errorf("the write was acknowledged after %v", took)
	}
	start := time.Now()
	two := slices.DeleteFunc([]int32{1, 2, 3}, func(b int32) bool { return int(b) == stopped })
	w.WaitFor("metadata tells of the smaller ISR", func() bool {
		return slices.Equal(slices.Sorted(slices.Values(w.partitionOf(leader, topic).ISR)), two)
	})
	within(t, "the news in metadata", time.Since(start), atOnce)
	p, took = w.timedProduce(leader, topic, -1, 15*time.Second, batch("y"))
	code(t, "the second write", p.ErrorCode, model.None)
	within(t, "the second write", took, atOnce)
	start = time.Now()
	w.Resume(stopped)
	w.WaitISR(topic, 0, 1, 2, 3)
	within(t, "coming back", time.Since(start), 5*time.Second)
	if l, e := w.serving(topic); l != leader || e != epoch {
		t.Errorf("leader %d of epoch %d became %d of %d", leader, epoch, l, e)
	}
}

// B122: a follower that fetches late from a partition to which nothing is
// written has all there is: it stays in the ISR.
func TestASlowFollowerOfAnIdlePartitionStaysInTheISR(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("idle", 2, 3, nil)
		w.CreateTopic("busy", 1, 3, nil)
		leader := w.Leader("busy", 0)
		w.Elect("idle", 0, leader)
		w.Elect("idle", 1, leader)
		w.mustProduce("idle", "x")
		w.WaitHW("idle", 0, 1)
		_, slow := w.apart("busy")
		w.WaitFor("the slow follower has what is idle", func() bool {
			leo, _ := w.mark(slow, "idle")
			return leo == 1 && len(w.ISR("idle", 0)) == 3
		})
		pass(time.Second)
		before := []int32{w.PartitionEpoch("idle", 0), w.PartitionEpoch("idle", 1), w.PartitionEpoch("busy", 0)}
		w.Cut(leader, slow)
		for i := range 60 { // three times the lag
			code(t, "acks=1", w.produce(leader, "busy", 1, time.Second, batch(fmt.Sprint(i))).ErrorCode, model.None)
			pass(100 * time.Millisecond)
		}
		w.Heal(leader, slow)
		w.WaitISR("busy", 0, 1, 2, 3)
		pass(5 * time.Second)
		for p := range 2 {
			if e := w.PartitionEpoch("idle", p); e != before[p] {
				t.Errorf("the ISR of idle partition %d changed %d times", p, e-before[p])
			}
		}
		if n := w.PartitionEpoch("busy", 0) - before[2]; n != 2 {
			t.Errorf("the ISR of the busy partition changed %d times; the slow follower leaves and joins once", n)
		}
	}, brisk()...)
}

// B125: below the minimum a write of acks=all is refused before anything is
// appended.
func TestBelowTheMinimumNothingIsAppended(t *testing.T) {
	inBubble(t, 5, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		leader, followers := w.Leader("t", 0), w.followers("t")
		for _, f := range followers {
			w.Kill(f)
		}
		w.WaitISR("t", 0, leader)
		w.WaitFor("the leader knows", func() bool { return len(w.partitionOf(leader, "t").ISR) == 1 })
		pass(100 * time.Millisecond)
		p, took := w.timedProduce(leader, "t", -1, 10*time.Second, batch("refused"))
		code(t, "acks=all", p.ErrorCode, model.ErrNotEnoughReplicas)
		within(t, "the refusal", took, atOnce)
		if leo, _ := w.mark(leader, "t"); p.BaseOffset != -1 || leo != 0 {
			t.Errorf("base offset %d, log end %d after a refused write", p.BaseOffset, leo)
		}
		code(t, "acks=1", w.produce(leader, "t", 1, time.Second, batch("one")).ErrorCode, model.None)
		w.send(leader, "t", batch("zero"))
		w.WaitFor("both writes that ask for less are in the log", func() bool {
			leo, _ := w.mark(leader, "t")
			return leo == 2
		})
		for _, f := range followers {
			w.Restart(f)
		}
		w.WaitISR("t", 0, append(followers, leader)...)
		code(t, "acks=all with all replicas", w.produce(leader, "t", -1, 10*time.Second, batch("all")).ErrorCode, model.None)
		if got := w.read(leader, "t"); fmt.Sprint(got) != "map[0:one 1:zero 2:all]" {
			t.Errorf("read %v", got)
		}
	})
}

// B126: a write that is in the log when the ISR falls below the minimum is
// never acknowledged there, and counts once when the followers are back.
func TestAWriteIsNotAcknowledgedWhenTheISRFallsBelowTheMinimum(t *testing.T) {
	inBubble(t, 5, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		leader, followers := w.Leader("t", 0), w.followers("t")
		o := w.producerID(leader)
		for _, f := range followers {
			w.Pause(f)
		}
		p, took := w.timedProduce(leader, "t", -1, 8*time.Second, batchOf(o, "x"))
		code(t, "acks=all", p.ErrorCode, model.ErrRequestTimedOut, model.ErrNotEnoughReplicasAfterAppend)
		within(t, "the refusal", took, 8300*time.Millisecond)
		w.WaitISR("t", 0, leader)
		if leo, hw := w.mark(leader, "t"); leo != 1 || hw != 0 {
			t.Errorf("log end %d, high watermark %d", leo, hw)
		}
		if got := w.read(leader, "t"); len(got) != 0 {
			t.Errorf("a consumer sees %v", got)
		}
		code(t, "another write", w.produce(leader, "t", -1, time.Second, batchOf(o, "x")).ErrorCode, model.ErrNotEnoughReplicas)
		for _, f := range followers {
			w.Resume(f)
		}
		w.WaitISR("t", 0, append(followers, leader)...)
		w.WaitHW("t", 0, 1)
		p = w.produce(leader, "t", -1, 8*time.Second, batchOf(o, "x"))
		code(t, "a retry", p.ErrorCode, model.None)
		if got := w.read(leader, "t"); p.BaseOffset != 0 || fmt.Sprint(got) != "map[0:x]" {
			t.Errorf("the retry answers offset %d, %v is read", p.BaseOffset, got)
		}
	}, brisk()...)
}

// B129: a minimum above the number of replicas means all of them.
func TestAMinimumAboveTheReplicasMeansAllReplicas(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("one", 1, 1, nil)
		w.CreateTopic("two", 1, 2, minISR(3))
		for _, topic := range []string{"one", "two"} {
			code(t, topic, w.produce(w.Leader(topic, 0), topic, -1, 5*time.Second, batch("x")).ErrorCode, model.None)
		}
	}, tidetest.Set("min.insync.replicas", "2"))
}

// B130: a write of acks=all that times out stays in the log, and counts once.
func TestAWriteThatTimesOutStaysInTheLog(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		leader, followers := w.Leader("t", 0), w.followers("t")
		o := w.producerID(leader)
		for _, f := range followers {
			w.Pause(f)
		}
		p, took := w.timedProduce(leader, "t", -1, time.Second, batchOf(o, "x"))
		code(t, "acks=all", p.ErrorCode, model.ErrRequestTimedOut)
		about(t, "the write", took, time.Second, 300*time.Millisecond)
		if p.BaseOffset != -1 {
			t.Errorf("base offset %d", p.BaseOffset)
		}
		for _, f := range followers {
			w.Resume(f)
		}
		w.WaitHW("t", 0, 1)
		p = w.produce(leader, "t", -1, 10*time.Second, batchOf(o, "x"))
		code(t, "a retry", p.ErrorCode, model.None)
		if got := w.read(leader, "t"); p.BaseOffset != 0 || fmt.Sprint(got) != "map[0:x]" {
			t.Errorf("the retry answers offset %d, %v is read", p.BaseOffset, got)
		}
	}, steady()...)
}

// B135: a batch above the limits of a follower's fetch is replicated all the
// same, and holds nothing else up.
func TestABatchAboveTheFetchLimitsIsReplicated(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 10, 3, map[string]string{"max.message.bytes": fmt.Sprint(2 << 20), "min.insync.replicas": "3"})
		epochs := make([]int32, 10)
		for i := range epochs {
			epochs[i] = w.PartitionEpoch("t", i)
		}
		p, took := w.timedProduce(w.Leader("t", 0), "t", -1, 10*time.Second, batch(strings.Repeat("b", 1500<<10)))
		code(t, "the big batch", p.ErrorCode, model.None)
		within(t, "the big batch", took, 2*time.Second)
		start := time.Now()
		for i := range 1000 {
			n := i % 10
			resp := produceTo(w, "t", int32(n), batch(fmt.Sprint(i)))
			code(t, fmt.Sprint("small ", i), resp.ErrorCode, model.None)
		}
		within(t, "a thousand small batches", time.Since(start), 20*time.Second)
		for i, e := range epochs {
			if got := w.PartitionEpoch("t", i); got != e || len(w.ISR("t", i)) != 3 {
				t.Errorf("partition %d: ISR %v, partition epoch %d -> %d", i, w.ISR("t", i), e, got)
			}
		}
	}, tidetest.Set("replica.fetch.max.bytes", "102400"), tidetest.Set("replica.fetch.response.max.bytes", "204800"))
}
