package cases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// B112: a leader that was frozen while another was elected acknowledges nothing
// that the log will not have, and its log becomes that of the others. It finds
// requests that were sent to it meanwhile; in every second round it answers them
// before it hears anything from the others.
func TestALeaderThatWakesUpTooLateHarmsNothing(t *testing.T) {
	for i := range loops(20) {
		inBubble(t, 3, func(w *world) {
			w.CreateTopic("t", 1, 3, minISR(2))
			w.mustProduce("t", "before")
			w.settle("t", 1, 2, 3)
			old := w.Leader("t", 0)
			others := w.followers("t")
			queued := w.queueAt(old)
			w.Pause(old)
			queued.send(t)
			pass(6 * time.Second)
			w.WaitLeader("t", 0, old)
			for n := range 100 {
				w.mustProduce("t", fmt.Sprint("new", n))
			}
			alone := i%2 == 1
			if alone {
				w.Cut(old, others[0])
				w.Cut(old, others[1])
			}
			w.Resume(old)
			if alone {
				pass(3 * time.Second)
				w.Heal(old, others[0])
				w.Heal(old, others[1])
			}
			w.settle("t", 1, 2, 3)
			w.refused(old)
			queued.check(w, alone)
			w.identical("t", 1, 2, 3)
		}, distant())
	}
}

// queued is requests of one connection each to a leader of topic t.
type queued struct {
	all, one, fetch, list *transport.Client
	answers               chan kmsg.Response
	kinds                 chan string
	produced              map[string]produced
	ends                  []int64
	asked                 int
}

// queueAt opens the connections.
func (w *world) queueAt(broker int) *queued {
	w.t.Helper()
	return &queued{all: w.dial(broker), one: w.dial(broker), fetch: w.dial(broker), list: w.dial(broker),
		produced: map[string]produced{}, answers: make(chan kmsg.Response, 4), kinds: make(chan string, 4)}
}

// send puts the requests into the sockets.
func (q *queued) send(t *testing.T) {
	t.Helper()
	put := func(c *transport.Client, kind string, req kmsg.Request) {
		q.asked++
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			resp, err := c.Do(ctx, req)
			if err != nil {
				resp = nil
			}
			q.answers <- resp
			q.kinds <- kind
		}()
	}
	put(q.all, "all", produceRequest("t", 0, -1, 10*time.Second, batch("old-all")))
	put(q.one, "one", produceRequest("t", 0, 1, 10*time.Second, batch("old-one")))
	put(q.fetch, "fetch", at("t", 0).request())
	put(q.list, "list", listRequest("t", -1))
	pass(time.Millisecond)
}

// await notes the answers: what was produced, and where the log was said to end.
func (q *queued) await() {
	for range q.asked {
		resp := <-q.answers
		switch kind := <-q.kinds; r := resp.(type) {
		case *kmsg.ProduceResponse:
			q.produced[kind] = r.Topics[0].Partitions[0]
		case *kmsg.FetchResponse:
			if p := r.Topics[0].Partitions[0]; p.ErrorCode == 0 {
				q.ends = append(q.ends, p.HighWatermark)
			}
		case *kmsg.ListOffsetsResponse:
			if p := r.Topics[0].Partitions[0]; p.ErrorCode == 0 {
				q.ends = append(q.ends, p.Offset)
			}
		}
	}
}

// check holds the answers against the final log.
func (q *queued) check(w *world, alone bool) {
	w.t.Helper()
	q.await()
	log := map[string]int64{}
	for _, r := range w.records(w.Leader("t", 0), "t", 0) {
		if at, twice := log[r.value]; twice {
			w.t.Errorf("%s is in the log twice, at %d and %d", r.value, at, r.offset)
		}
		log[r.value] = r.offset
	}
	if len(log) < 101 {
		w.t.Errorf("the log has %d records", len(log))
	}
	if p, ok := q.produced["all"]; ok && p.ErrorCode == 0 {
		if at, kept := log["old-all"]; !kept || at != p.BaseOffset {
			w.t.Errorf("acks=all was acknowledged at %d; in the log: %v, %d", p.BaseOffset, kept, at)
		}
	}
	if p, ok := q.produced["one"]; ok && p.ErrorCode == 0 {
		if at, kept := log["old-one"]; kept && at != p.BaseOffset {
			w.t.Errorf("acks=1 was acknowledged at %d; the log has it at %d", p.BaseOffset, at)
		}
	} else if alone {
		w.t.Errorf("a leader that nobody had told otherwise refused acks=1: %v", model.Error(p.ErrorCode))
	}
	for _, end := range q.ends {
		if end > int64(len(log)) {
			w.t.Errorf("the old leader showed the end %d of a log that ends at %d", end, len(log))
		}
	}
}

// refused checks that a broker that leads t no more says so.
func (w *world) refused(broker int) {
	w.t.Helper()
	code(w.t, "produce", w.produce(broker, "t", 1, time.Second, batch("late")).ErrorCode, model.ErrNotLeaderOrFollower)
	code(w.t, "list", w.list(broker, "t", -1).ErrorCode, model.ErrNotLeaderOrFollower)
	f := at("t", 0)
	f.version = 10
	p, _ := w.fetch(broker, f)
	code(w.t, "fetch", p.ErrorCode, model.ErrNotLeaderOrFollower)
}

// B117: whatever happens to brokers and to the network between them, in the end
// all replicas hold the same bytes, and all that was acknowledged.
func TestReplicasAreIdenticalAfterChaos(t *testing.T) {
	long := 10 * time.Second
	if *full {
		long = 30 * time.Second
	}
	for range loops(20) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, 3, func(w *world) { w.chaos(seed, long) }, distant())
		})
	}
}

func (w *world) chaos(seed uint64, long time.Duration) {
	w.t.Helper()
	w.CreateTopic("t", 1, 3, minISR(2))
	safe := w.startLoad("t", "safe", 3, 10*time.Millisecond, hasty()...)
	weak := w.startLoad("t", "weak", 2, 10*time.Millisecond, append(hasty(), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))...)
	mute := w.startLoad("t", "mute", 1, 10*time.Millisecond, append(hasty(), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.NoAck()))...)
	r := rand.New(rand.NewPCG(seed, 1))
	for end := time.Now().Add(long); time.Now().Before(end); {
		pass(time.Duration(r.IntN(1500)) * time.Millisecond)
		w.mischief(r, time.Duration(r.IntN(4000))*time.Millisecond)
	}
	for _, l := range []*load{safe, weak, mute} {
		l.stop(w.t)
	}
	pass(10 * time.Second) // what was sent without waiting for an answer may still be under way
	w.settle("t", 1, 2, 3)
	w.identical("t", 1, 2, 3)
	for _, err := range safe.failed {
		w.t.Errorf("a producer failed: %v", err)
	}
	safe.exactlyOnce(w.t, w.records(w.Leader("t", 0), "t", 0))
	w.t.Logf("%d records acknowledged by all, %d by the leader", len(safe.acked), len(weak.acked))
}

// hasty has a client give a frozen broker up after two seconds.
func hasty() []kgo.Opt {
	return []kgo.Opt{kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(time.Second)}
}

// mischief does one bad thing to the cluster for a while and mends it.
func (w *world) mischief(r *rand.Rand, while time.Duration) {
	w.t.Helper()
	a := 1 + r.IntN(3)
	if leader := w.Leader("t", 0); leader != 0 && r.IntN(2) == 0 {
		a = leader
	}
	b, c := a%3+1, (a+1)%3+1
	switch r.IntN(9) {
	case 0:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = w.TryElect(ctx, "t", 0, a) // who is not in sync cannot be elected
	case 1:
		w.Kill(a)
		pass(while)
	case 2:
		w.Stop(a)
		pass(while)
	case 3: // one after the other
		w.Kill(a)
		pass(while / 2)
		w.Kill(b)
		pass(while / 2)
	case 4:
		w.all(w.Kill)
		pass(while)
	default:
		w.isolate(r, while, a, b, c)
	}
	w.all(w.restartDead)
}

// isolate freezes a broker or cuts brokers off from each other for a while.
func (w *world) isolate(r *rand.Rand, while time.Duration, a, b, c int) {
	switch r.IntN(4) {
	case 0:
		w.Pause(a)
	case 1:
		w.Cut(a, b)
	case 2: // alone
		w.Cut(a, b)
		w.Cut(a, c)
	case 3: // nobody hears anybody
		w.Pause(a)
		w.Cut(b, c)
	}
	pass(while)
	w.Heal(a, b)
	w.Heal(a, c)
	w.Heal(b, c)
	w.Resume(a)
}

// restartDead starts a broker if it is down.
func (w *world) restartDead(broker int) {
	if !w.Running(broker) {
		w.Restart(broker)
	}
}
