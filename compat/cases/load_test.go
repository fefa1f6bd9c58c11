package cases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// load is producers that write until stop, one key each with values that count
// up, and what became of every record.
type load struct {
	name    string // begins its keys
	mu      sync.Mutex
	acked   map[int64]logged // by offset
	times   []time.Time      // of acknowledgements
	failed  []error
	slowest time.Duration
	stopped chan struct{}
	done    sync.WaitGroup
	clients []*kgo.Client
}

// startLoad has n producers, whose keys begin with a name, write to a topic every
// pause. opts change their clients, which are idempotent and ask for acks=all by
// themselves.
func (w *world) startLoad(topic, name string, n int, pause time.Duration, opts ...kgo.Opt) *load {
	w.t.Helper()
	l := &load{name: name, acked: map[int64]logged{}, stopped: make(chan struct{})}
	for i := range n {
		cl := w.client(opts...)
		l.clients = append(l.clients, cl)
		l.done.Add(1)
		go func() {
			defer l.done.Done()
			for seq := 0; ; seq++ {
				l.write(cl, topic, fmt.Sprint(name, i), fmt.Sprint(seq))
				select {
				case <-l.stopped:
					return
				case <-time.After(pause):
				}
			}
		}()
	}
	return l
}

func (l *load) write(cl *kgo.Client, topic, key, value string) {
	start := time.Now()
	cl.Produce(context.Background(), &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)},
		func(r *kgo.Record, err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if err != nil {
				l.failed = append(l.failed, fmt.Errorf("%s %s: %w", key, value, err))
				return
			}
			l.acked[int64(r.Partition)<<40|r.Offset] = logged{r.Offset, key, value}
			l.times = append(l.times, time.Now())
			l.slowest = max(l.slowest, time.Since(start))
		})
}

// stop ends the producers when everything they wrote is answered.
func (l *load) stop(t *testing.T) {
	t.Helper()
	close(l.stopped)
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, cl := range l.clients {
		if err := cl.Flush(ctx); err != nil {
			t.Errorf("records wait for an answer a minute after the load: %v", err)
		}
		cl.Close()
	}
}

// longestSilence is the longest time without an acknowledgement.
func (l *load) longestSilence() time.Duration {
	slices.SortFunc(l.times, time.Time.Compare)
	var longest time.Duration
	for i := 1; i < len(l.times); i++ {
		longest = max(longest, l.times[i].Sub(l.times[i-1]))
	}
	return longest
}

// exactlyOnce checks that a log holds each acknowledged record where it was
// acknowledged, and of this load nothing twice, and each key's values in order.
func (l *load) exactlyOnce(t *testing.T, log []logged) {
	t.Helper()
	seen := map[string]int64{}
	last := map[string]int{}
	for _, r := range log {
		if !strings.HasPrefix(r.key, l.name) {
			continue
		}
		id := r.key + " " + r.value
		if at, twice := seen[id]; twice {
			t.Errorf("%s is in the log twice, at %d and %d", id, at, r.offset)
		}
		seen[id] = r.offset
		var n int
		fmt.Sscan(r.value, &n)
		if before, any := last[r.key]; any && n <= before {
			t.Errorf("%s at %d comes after %d", id, r.offset, before)
		}
		last[r.key] = n
	}
	for _, a := range l.acked {
		if at, ok := seen[a.key+" "+a.value]; !ok || at != a.offset {
			t.Errorf("%s %s was acknowledged at %d; in the log: %v, %d", a.key, a.value, a.offset, ok, at)
		}
	}
}

// B111: leaders that die under load lose no acknowledged record, write none
// twice or out of order, and stop no producer.
func TestLeadersThatDieUnderLoadLoseNothing(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		l := w.startLoad("t", "p", 8, 10*time.Millisecond)
		for range loops(24) {
			pass(3 * time.Second)
			leader := w.WaitLeader("t", 0)
			w.Kill(leader)
			pass(2 * time.Second)
			w.Restart(leader)
		}
		pass(3 * time.Second)
		l.stop(t)
		w.settle("t", 1, 2, 3)
		for _, err := range l.failed {
			t.Errorf("a producer failed: %v", err)
		}
		l.exactlyOnce(t, w.records(w.Leader("t", 0), "t", 0))
		w.identical("t", 1, 2, 3)
		if silence := l.longestSilence(); silence > 4*time.Second {
			t.Errorf("nothing was acknowledged for %v; the session lasts 2 s", silence)
		}
		t.Logf("%d records acknowledged; longest silence %v", len(l.acked), l.longestSilence())
	}, distant())
}

// B114: an orderly stop moves leaderships first: no record fails, none takes
// long, and the port closes on a broker that leads nothing.
func TestAnOrderlyStopIsNotNoticed(t *testing.T) {
	const partitions = 30
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", partitions, 3, minISR(2))
		l := w.startLoad("t", "p", 3, 10*time.Millisecond)
		for broker := 1; broker <= 3; broker++ {
			pass(time.Second)
			w.stopWatched("t", partitions, broker)
			w.Restart(broker)
			for p := range partitions {
				w.WaitISR("t", p, 1, 2, 3)
			}
		}
		pass(time.Second)
		l.stop(t)
		for _, err := range l.failed {
			t.Errorf("a record failed: %v", err)
		}
		if l.slowest > time.Second {
			t.Errorf("the slowest record took %v", l.slowest)
		}
		t.Logf("%d records acknowledged; the slowest took %v", len(l.acked), l.slowest)
	}, distant())
}

// stopWatched stops a broker and checks what it leads when its port closes, and
// how long it takes.
func (w *world) stopWatched(topic string, partitions, broker int) {
	w.t.Helper()
	watched := w.dial(broker)
	led := make(chan []int, 1)
	go func() {
		<-watched.Closed()
		var still []int
		for p := range partitions {
			if w.Leader(topic, p) == broker {
				still = append(still, p)
			}
		}
		led <- still
	}()
	start := time.Now()
	w.Stop(broker)
	if took := time.Since(start); took > 10*time.Second {
		w.t.Errorf("broker %d stopped after %v", broker, took)
	}
	if still := <-led; len(still) > 0 {
		w.t.Errorf("broker %d led %v when its port closed", broker, still)
	}
}

// B115: what consumers see as the end of the log never goes back, whatever
// becomes of leaders, and through a full restart.
func TestTheEndThatConsumersSeeNeverGoesBack(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		l := w.startLoad("t", "p", 2, 5*time.Millisecond)
		watch := w.watchEnds("t")
		for i := range loops(30) {
			pass(700 * time.Millisecond)
			leader := w.WaitLeader("t", 0)
			if i%2 == 0 {
				w.Kill(leader)
			} else {
				w.Stop(leader)
			}
			pass(time.Second)
			w.Restart(leader)
			w.WaitISR("t", 0, 1, 2, 3)
		}
		pass(time.Second)
		l.stop(t)
		for _, end := range []func(int){w.Kill, w.Stop} {
			w.all(end)
			w.all(w.Restart)
			w.settle("t", 1, 2, 3)
			pass(time.Second)
		}
		seen := watch()
		if seen.answers < 100 {
			t.Errorf("the watcher had %d answers", seen.answers)
		}
		for _, s := range seen.fallen {
			t.Error(s)
		}
		if end := w.list(w.Leader("t", 0), "t", -1); end.ErrorCode != 0 || end.Offset < seen.last {
			t.Errorf("after a full restart the log ends at %d (%v), before at %d", end.Offset, model.Error(end.ErrorCode), seen.last)
		}
		l.exactlyOnce(t, w.records(w.Leader("t", 0), "t", 0))
	}, distant())
}
