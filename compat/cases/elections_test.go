package cases

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// B123: a follower that lacks acknowledged records is never elected: it joins
// the ISR only once it holds what its leader began with.
func TestAFollowerThatLacksAcknowledgedRecordsIsNotElected(t *testing.T) {
	inBubble(t, 5, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(1))
		log := acknowledged{}
		for i := range loops(100) {
			w.laggardCompetes(log, i)
			if t.Failed() {
				t.Fatalf("in round %d", i)
			}
		}
	}, tidetest.Set("replica.lag.time.max.ms", "2000"))
}

// laggardCompetes is one round: F2 is cut off, L acknowledges records and goes,
// F1 leads, F2 is back and F1 dies while F2 catches up.
func (w *world) laggardCompetes(log acknowledged, round int) {
	w.t.Helper()
	l := w.Leader("t", 0)
	f1, f2 := w.apart("t")
	w.Cut(l, f2)
	w.Cut(f1, f2)
	for i := range 20 {
		w.mustAcknowledge(log, "t", fmt.Sprintf("%d-%d", round, i))
	}
	w.WaitISR("t", 0, l, f1)
	if rand.IntN(2) == 0 {
		w.Kill(l)
	} else {
		w.Stop(l)
	}
	if led := w.WaitLeader("t", 0, l); led != f1 {
		w.t.Fatalf("broker %d leads, which was not in the ISR", led)
	}
	w.Heal(l, f2)
	w.Heal(f1, f2)
	pass([]time.Duration{0, time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}[rand.IntN(5)])
	w.Kill(f1)
	w.WaitFor("F1 does not lead any more", func() bool { return w.Leader("t", 0) != f1 })
	pass(time.Second)
	if w.Leader("t", 0) == f2 {
		w.check(log, "t")
	} else if p := w.partitionOf(f2, "t"); p.Leader != -1 || p.ErrorCode != model.ErrLeaderNotAvailable.Code() {
		w.t.Errorf("metadata names leader %d, error %v", p.Leader, model.Error(p.ErrorCode))
	}
	w.Restart(f1)
	w.Restart(l)
	w.WaitISR("t", 0, l, f1, f2)
	w.check(log, "t")
}

// B132: without the last in-sync replica a partition is offline, and nothing is
// cut from that replica when it comes back.
func TestAnOutOfSyncReplicaIsNotElected(t *testing.T) {
	inBubble(t, 5, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(1))
		l, followers := w.Leader("t", 0), w.followers("t")
		for _, f := range followers {
			w.Kill(f)
		}
		log := acknowledged{}
		for i := range 100 {
			w.mustAcknowledge(log, "t", fmt.Sprint(i))
		}
		w.WaitISR("t", 0, l)
		w.Kill(l)
		for _, f := range followers {
			w.Restart(f)
		}
		w.WaitFor("the partition is offline", func() bool { return w.Leader("t", 0) == 0 })
		w.holdsFor(5*time.Second, "the partition has no leader", func() bool { return w.Leader("t", 0) == 0 })
		w.isOffline(followers)
		w.Restart(l)
		if led := w.WaitLeader("t", 0); led != l {
			t.Errorf("broker %d leads, broker %d alone was in sync", led, l)
		}
		w.WaitISR("t", 0, append(followers, l)...)
		w.check(log, "t")
		if leo, _ := w.mark(l, "t"); leo != 100 {
			t.Errorf("the log of the last in-sync replica ends at %d", leo)
		}
	})
}

// isOffline checks what brokers answer about a partition without a leader.
func (w *world) isOffline(brokers []int) {
	w.t.Helper()
	for _, b := range brokers {
		if p := w.partitionOf(b, "t"); p.Leader != -1 || p.ErrorCode != model.ErrLeaderNotAvailable.Code() {
			w.t.Errorf("metadata of broker %d: leader %d, error %v", b, p.Leader, model.Error(p.ErrorCode))
		}
		code(w.t, "produce", w.produce(b, "t", -1, time.Second, batch("x")).ErrorCode, model.ErrNotLeaderOrFollower, model.ErrLeaderNotAvailable)
		for version, want := range map[int16]model.Error{10: model.ErrNotLeaderOrFollower, 11: model.None} {
			f := at("t", 0) // from v11 on a follower answers, up to its own high watermark
			f.version = version
			p, _ := w.fetch(b, f)
			code(w.t, fmt.Sprint("fetch v", version), p.ErrorCode, want)
			if len(p.RecordBatches) != 0 || p.HighWatermark > 0 {
				w.t.Errorf("broker %d returned %d bytes and high watermark %d", b, len(p.RecordBatches), p.HighWatermark)
			}
		}
		code(w.t, "list offsets", w.list(b, "t", -1).ErrorCode, model.ErrNotLeaderOrFollower, model.ErrLeaderNotAvailable)
	}
}

// election is one partition of an ElectLeaders answer.
type election struct {
	topic     string
	partition int32
}

const (
	preferred = 0
	unclean   = 1
)

// elect asks for elections and returns the code of each partition in the
// answer. Without topics it asks for all of them.
func (w *world) elect(kind int8, topics ...election) map[election]model.Error {
	w.t.Helper()
	req := kmsg.NewPtrElectLeadersRequest()
	req.Version, req.ElectionType, req.TimeoutMillis = 2, kind, 30_000
	for _, e := range topics {
		rt := kmsg.NewElectLeadersRequestTopic()
		rt.Topic, rt.Partitions = e.topic, []int32{e.partition}
		req.Topics = append(req.Topics, rt)
	}
	up := 1
	for !w.Running(up) {
		up++
	}
	resp := ask[*kmsg.ElectLeadersResponse](w, up, req)
	code(w.t, "elect leaders", resp.ErrorCode, model.None)
	out := map[election]model.Error{}
	for _, rt := range resp.Topics {
		for _, p := range rt.Partitions {
			out[election{rt.Topic, p.Partition}] = model.Error(p.ErrorCode)
		}
	}
	return out
}

// B134: an election that is asked for tells whether it changed anything, and
// why not.
func TestElectLeadersTellsWhatItDid(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.CreateTopic("solo", 3, 1, nil)
		t0 := election{"t", 0}
		only := func(what string, kind int8, want model.Error) {
			t.Helper()
			if got := w.elect(kind, t0); len(got) != 1 || got[t0] != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		first := w.Leader("t", 0)
		only("the preferred replica leads", preferred, model.ErrElectionNotNeeded)
		only("unclean with a leader", unclean, model.ErrElectionNotNeeded)
		w.Stop(first)
		w.WaitLeader("t", 0, first)
		w.Restart(first)
		w.WaitISR("t", 0, 1, 2, 3)
		only("the preferred replica is in sync", preferred, model.None)
		if l := w.Leader("t", 0); l != first {
			t.Errorf("broker %d leads after the election of %d", l, first)
		}
		w.Kill(first)
		w.WaitLeader("t", 0, first)
		only("the preferred replica is dead", preferred, model.ErrPreferredLeaderNotAvailable)
		only("unclean with a leader", unclean, model.ErrElectionNotNeeded)
		lost := w.offline("solo", 3)
		if got := w.elect(unclean, lost); got[lost] != model.ErrEligibleLeadersNotAvailable {
			t.Errorf("unclean with all replicas dead: %v", got)
		}
		none := election{"nowhere", 0}
		for _, kind := range []int8{preferred, unclean} {
			if got := w.elect(kind, none); got[none] != model.ErrUnknownTopicOrPartition {
				t.Errorf("an unknown topic: %v", got)
			}
		}
	})
}

// offline waits until one of n partitions of a topic has no leader.
func (w *world) offline(topic string, n int) (found election) {
	w.t.Helper()
	w.WaitFor("a partition of "+topic+" has no leader", func() bool {
		for p := range n {
			if w.Leader(topic, p) == 0 {
				found = election{topic, int32(p)}
				return true
			}
		}
		return false
	})
	return found
}

// B134: an election of all partitions tells only of those that changed or
// failed.
func TestElectLeadersOfAllTellsOnlyWhatChangedOrFailed(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 6, 3, nil)
		if got := w.elect(preferred); len(got) != 0 {
			t.Errorf("all preferred replicas lead, the answer tells of %v", got)
		}
		w.Stop(1)
		w.WaitFor("broker 1 leads nothing", func() bool {
			for p := range 6 {
				if w.Leader("t", p) == 1 {
					return false
				}
			}
			return true
		})
		down := w.elect(preferred)
		w.Restart(1)
		for p := range 6 {
			w.WaitISR("t", p, 1, 2, 3)
		}
		up := w.elect(preferred)
		if len(down) == 0 || fmt.Sprint(keys(down)) != fmt.Sprint(keys(up)) {
			t.Errorf("with broker 1 down %v failed, with it back %v changed", down, up)
		}
		for e := range up {
			if down[e] != model.ErrPreferredLeaderNotAvailable || up[e] != model.None || w.Leader("t", int(e.partition)) != 1 {
				t.Errorf("%v: %v when down, %v when up, broker %d leads", e, down[e], up[e], w.Leader("t", int(e.partition)))
			}
		}
		if got := w.elect(preferred); len(got) != 0 {
			t.Errorf("a second election tells of %v", got)
		}
	})
}

// keys are the partitions of an answer, as a set that prints in order.
func keys(m map[election]model.Error) map[election]bool {
	out := map[election]bool{}
	for e := range m {
		out[e] = true
	}
	return out
}

// B137: a follower that is cut down to nothing has no high watermark left over.
func TestAFollowerCutToNothingStartsAtZero(t *testing.T) {
	for what, end := range map[string]func(w *world, broker int){
		"killed":  func(w *world, broker int) { w.Kill(broker) },
		"stopped": func(w *world, broker int) { w.Stop(broker) }, // its high watermark is on disk
	} {
		t.Run(what, func(t *testing.T) { cutToNothing(t, end) })
	}
}

func cutToNothing(t *testing.T, end func(w *world, broker int)) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 2, map[string]string{"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
		l, f := w.Leader("t", 0), w.followers("t")[0]
		w.Kill(f)
		w.WaitISR("t", 0, l)
		for i := range 50 {
			w.mustProduce("t", fmt.Sprint("lost ", i))
		}
		end(w, l)
		w.Restart(f)
		if led := w.WaitLeader("t", 0, l); led != f {
			t.Fatalf("broker %d leads", led)
		}
		w.Restart(l)
		w.WaitISR("t", 0, l, f)
		if leo, hw := w.mark(l, "t"); leo != 0 || hw != 0 {
			t.Errorf("after the cut the log ends at %d, the high watermark is %d", leo, hw)
		}
		old := at("t", 0)
		old.version = 11
		p, _ := w.fetch(l, old)
		code(t, "a fetch from the follower", p.ErrorCode, model.None)
		if p.HighWatermark != 0 || p.LogStartOffset != 0 || len(p.RecordBatches) != 0 {
			t.Errorf("the follower shows high watermark %d, log start %d, %d bytes", p.HighWatermark, p.LogStartOffset, len(p.RecordBatches))
		}
		w.startsAnew(l, f)
	})
}

// startsAnew has broker l lead an empty log again, and its first record visible
// on both replicas.
func (w *world) startsAnew(l, f int) {
	w.t.Helper()
	w.Elect("t", 0, l)
	if o := w.list(l, "t", -1); o.ErrorCode != 0 || o.Offset != 0 {
		w.t.Errorf("latest is %d, error %v", o.Offset, model.Error(o.ErrorCode))
	}
	if first := w.mustProduce("t", "new"); first != 0 {
		w.t.Errorf("the first new record has offset %d", first)
	}
	for _, b := range []int{l, f} {
		w.WaitFor(fmt.Sprint("the record is visible on broker ", b), func() bool { _, hw := w.mark(b, "t"); return hw == 1 })
		f := at("t", 0)
		f.version = 11
		p, _ := w.fetch(b, f)
		if got := w.values(p, 0); fmt.Sprint(got) != "[new]" {
			w.t.Errorf("broker %d shows %v", b, got)
		}
	}
}
