package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// B105: a follower that restarts keeps what was acknowledged, even if it has not
// heard the high watermark and the leader dies as it comes up.
func TestARestartedFollowerKeepsWhatWasAcknowledged(t *testing.T) {
	for i := range loops(200) {
		inBubble(t, 3, func(w *world) {
			w.CreateTopic("t", 1, 2, minISR(1))
			leader, follower := w.Leader("t", 0), w.followers("t")[0]
			w.mustProduce("t", "m1", "m2")
			w.Kill(follower)
			switch i % 3 {
			case 0: // while the follower comes up
				up := make(chan struct{})
				go func() { w.Restart(follower); close(up) }()
				pass(time.Duration(i%40) * time.Millisecond)
				w.Kill(leader)
				<-up
			case 1: // when its port is open
				w.Restart(follower)
				w.Kill(leader)
			case 2: // when it is in sync again
				w.Restart(follower)
				w.WaitISR("t", 0, leader, follower)
				w.Kill(leader)
			}
			pass(5 * time.Second)
			w.Restart(leader)
			w.WaitISR("t", 0, leader, follower)
			w.Elect("t", 0, follower)
			w.settle("t", leader, follower)
			for _, b := range []int{follower, leader} {
				if got := fmt.Sprint(w.records(b, "t", 0)); got != "[{0  m1} {1  m2}]" {
					t.Fatalf("round %d: broker %d has %v", i, b, got)
				}
			}
		}, distant())
	}
}

// B108: a partition without a record that goes through elections, restarts and
// the loss of a file of epochs keeps its offsets, and its followers neither loop
// nor fall out.
func TestAnEmptyPartitionSurvivesAStormOfElections(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		for i := range 5 {
			w.mustProduce("t", fmt.Sprint(i))
		}
		w.settle("t", 1, 2, 3)
		w.deleteRecords(w.Leader("t", 0), "t", 5)
		for range 10 {
			w.electOther("t")
			w.calm("t")
		}
		for broker := 1; broker <= 3; broker++ {
			w.Stop(broker)
			w.Restart(broker)
			w.calm("t")
		}
		for _, end := range []func(int){w.Stop, w.Kill} {
			f := w.followers("t")[0]
			end(f)
			if err := os.Remove(filepath.Join(w.LogDir(f, "t", 0), "leader-epoch-checkpoint")); err != nil {
				t.Fatal(err)
			}
			w.Restart(f)
			w.calm("t")
			w.Elect("t", 0, f) // a leader that lost its history of epochs
			w.calm("t")
			w.electOther("t")
			w.calm("t")
		}
		if o := w.mustProduce("t", "next"); o != 5 {
			t.Errorf("the next record got offset %d", o)
		}
		w.settle("t", 1, 2, 3)
		w.identical("t", 1, 2, 3)
	})
}

// calm checks that all replicas are in sync within ten seconds, that followers
// then fetch at most 20 times a second, and that an empty log of 5 stays so.
func (w *world) calm(topic string) {
	w.t.Helper()
	start := time.Now()
	w.WaitISR(topic, 0, 1, 2, 3)
	if took := time.Since(start); took > 10*time.Second {
		w.t.Errorf("all were in sync after %v", took)
	}
	const watched = 5
	before := w.fetches()
	pass(watched * time.Second)
	for pair, n := range w.fetches() {
		if rate := (n - before[pair]) / watched; rate > 20 {
			w.t.Errorf("broker %d asked broker %d %d times a second", pair[0], pair[1], rate)
		}
	}
	leader := w.Leader(topic, 0)
	for _, timestamp := range []int64{-1, -2} {
		if l := w.list(leader, topic, timestamp); l.ErrorCode != 0 || l.Offset != 5 {
			w.t.Errorf("offset of time %d: %v, %d", timestamp, model.Error(l.ErrorCode), l.Offset)
		}
	}
	for _, m := range w.Marks(topic, 0) {
		if m.LogStart != 5 || m.HW != 5 || m.LEO != 5 {
			w.t.Errorf("broker %d stands at %+v", m.Broker, m)
		}
	}
}

// fetches is how many requests each broker has sent to each other one.
func (w *world) fetches() map[[2]int]int64 {
	out := map[[2]int]int64{}
	for a := 1; a <= 3; a++ {
		for b := 1; b <= 3; b++ {
			out[[2]int{a, b}] = w.Asked(a, b)
		}
	}
	return out
}

// hundreds writes n batches of a hundred records.
func (w *world) hundreds(topic string, n int) {
	w.t.Helper()
	values := make([]string, 100)
	for i := range n {
		for j := range values {
			values[j] = fmt.Sprint(i, "-", j)
		}
		code(w.t, "produce", w.produce(w.Leader(topic, 0), topic, -1, 10*time.Second, batch(values...)).ErrorCode, model.None)
	}
}

// B109: a follower whose log ends below the leader's log start begins anew
// there, without a hole and without what was deleted.
func TestAFollowerBehindTheLogStartBeginsAnew(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.hundreds("t", 1)
		w.settle("t", 1, 2, 3)
		f := w.followers("t")[0]
		w.Kill(f)
		w.hundreds("t", 99)
		w.deleteRecords(w.Leader("t", 0), "t", 9_000)
		w.Restart(f)
		start := time.Now()
		if hw := w.settle("t", 1, 2, 3); hw != 10_000 {
			t.Errorf("the log ends at %d", hw)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the follower was in sync after %v", took)
		}
		for _, m := range w.Marks("t", 0) {
			if m.LogStart != 9_000 || m.LEO != 10_000 {
				t.Errorf("broker %d stands at %+v", m.Broker, m)
			}
		}
		w.Elect("t", 0, f)
		if l := w.list(f, "t", -2); l.ErrorCode != 0 || l.Offset != 9_000 {
			t.Errorf("earliest is %v, %d", model.Error(l.ErrorCode), l.Offset)
		}
		p, _ := w.fetch(f, at("t", 8_999))
		code(t, "fetch below the log start", p.ErrorCode, model.ErrOffsetOutOfRange)
		w.settle("t", 1, 2, 3)
		b := w.identical("t", 1, 2, 3)
		if len(b) != 10 || b[0].base != 9_000 {
			t.Errorf("%d batches from %d on", len(b), b[0].base)
		}
	})
}

// A process that was both the leader and the active controller is replaced as
// both as soon as its listeners refuse connections, not when it has been silent
// for a while.
func TestALeaderThatWasTheControllerIsReplacedAtOnce(t *testing.T) {
	for range loops(10) {
		inBubble(t, 3, func(w *world) {
			w.CreateTopic("t", 1, 3, minISR(2))
			w.mustProduce("t", "x")
			both := w.Controller()
			w.Elect("t", 0, both)
			start := time.Now()
			w.Kill(both)
			w.WaitLeader("t", 0, both)
			if took := time.Since(start); took > 300*time.Millisecond {
				t.Errorf("the next leader came after %v", took)
			}
			w.mustProduce("t", "y")
		}, distant())
	}
}
