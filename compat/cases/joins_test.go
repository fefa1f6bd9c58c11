package cases

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// B123: the high watermark of a new leader may lag what the last one
// acknowledged. A follower that has reached it, but not the start of the leader's
// epoch, may lack acknowledged records: it is not in sync.
func TestAFollowerJoinsTheISROnlyAtTheStartOfTheEpoch(t *testing.T) {
	const records = 400
	value := strings.Repeat("x", 1100) // a fetch takes one
	inBubble(t, 5, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		l := w.Leader("t", 0)
		f1, f2 := w.apart("t")
		w.Reassign("t", 0, l, f1, f2) // f1 comes next
		w.mustProduce("t", value)
		w.WaitFor("the follower has the first record", func() bool { _, hw := w.mark(f2, "t"); return hw == 1 })
		w.Cut(l, f2)
		w.Cut(f1, f2)
		for range records {
			code(t, "acks=1", w.produce(l, "t", 1, time.Second, batch(value)).ErrorCode, model.None)
		}
		w.WaitFor("the next leader has all records", func() bool { leo, _ := w.mark(f1, "t"); return leo == records+1 })
		w.Kill(l)
		if led := w.WaitLeader("t", 0, l); led != f1 {
			t.Fatalf("broker %d leads", led)
		}
		w.WaitISR("t", 0, f1)
		leo, hw := w.mark(f1, "t")
		if leo != records+1 || hw >= leo {
			t.Fatalf("the new leader has high watermark %d of %d: nothing to test", hw, leo)
		}
		w.Heal(f1, f2)
		for deadline := time.Now().Add(10 * time.Second); !slices.Contains(w.ISR("t", 0), f2); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("the follower does not come back")
			}
		}
		if got, _ := w.mark(f2, "t"); got < leo {
			t.Errorf("a follower with %d records of %d is in sync", got, leo)
		}
		w.WaitHW("t", 0, leo)
		w.Restart(l)
		w.WaitISR("t", 0, l, f1, f2)
	}, append(brisk(), tidetest.Set("replica.fetch.max.bytes", "1024"))...)
}
