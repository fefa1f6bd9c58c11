package tidetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-log/tidemark/tidetest"
)

func TestAClusterRunsOnAFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tidetest.New(t, 3, tidetest.InMemory())
		c.CreateTopic("orders", 1, 3, nil)
		cl := client(t, c, kgo.Dialer(c.Dial))
		produce(t, cl, "orders", "a")
		start := time.Now()
		old := c.Leader("orders", 0)
		c.Pause(old)
		c.WaitLeader("orders", 0, old)
		if d := time.Since(start); d < time.Second || d > 6*time.Second {
			t.Errorf("a frozen leader was replaced after %v; its session lasts 2 s, and so may a new controller's first", d)
		}
		// A client that asks the frozen broker first gives up on it after a second.
		impatient := client(t, c, kgo.Dialer(c.Dial), kgo.RequestTimeoutOverhead(time.Second), kgo.ProduceRequestTimeout(time.Second))
		produce(t, impatient, "orders", "b")
		c.Resume(old)
		start = time.Now()
		c.WaitISR("orders", 0, 1, 2, 3)
		if d := time.Since(start); d > time.Second {
			t.Errorf("a leader that thawed was back in the ISR after %v", d)
		}
	})
}
