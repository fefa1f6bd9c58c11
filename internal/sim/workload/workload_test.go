package workload_test

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-log/tidemark/internal/sim/check"
	"github.com/tidemark-log/tidemark/internal/sim/workload"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/tidetest"
)

// world is a cluster in memory, on a bubble's clock, with an Env of it.
func world(t *testing.T, o workload.Options, set ...tidetest.Option) (*tidetest.Cluster, *workload.Env, *workload.Counts) {
	t.Helper()
	c := tidetest.New(t, 3, append(set, tidetest.InMemory(), tidetest.Delay(100*time.Microsecond))...)
	var mu sync.Mutex
	counts := &workload.Counts{}
	env := &workload.Env{
		Dial:      func(ctx context.Context, addr string) (net.Conn, error) { return c.Dial(ctx, "tcp", addr) },
		Bootstrap: c.Addrs(),
		Rand:      rand.New(rand.NewPCG(7, 7)),
		History:   check.NewHistory(),
		Options:   o,
		Broken:    func(err error) { t.Error(err) },
		Counts:    counts,
		Note: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			if testing.Verbose() {
				t.Logf(format, args...)
			}
		},
	}
	if !workload.Setup(t.Context(), env) {
		t.Fatal("there are no topics")
	}
	return c, env, counts
}

// run runs the workloads for a while, beside during.
func run(env *workload.Env, d time.Duration, during func(), list ...workload.Workload) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	g := (*task.Runtime)(nil).NewGroup()
	workload.Start(ctx, g, env, list)
	if during != nil {
		during()
	}
	g.Wait()
}

func TestEveryWorkloadAchievesSomethingByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, env, n := world(t, workload.Options{Records: 30, DeleteRecords: true, Retention: true})
		run(env, time.Minute, nil, workload.Producer{Acks: -1}) // something to read
		for _, w := range workload.All() {
			before := *n
			run(env, 5*time.Second, nil, w)
			if *n == before {
				t.Errorf("%s achieved nothing", w.Name())
			}
		}
		t.Logf("%+v", *n)
		if n.Truncated > 0 || n.Failed > 0 || n.Acked < 30 {
			t.Errorf("without faults: %+v", *n)
		}
	})
}

func TestAllWorkloadsTogetherLiveThroughAKill(t *testing.T) {
	racks := []string{"a", "b", "c"}
	for name, o := range map[string]workload.Options{
		"clean":            {DeleteRecords: true, Retention: true, Racks: racks},
		"topics come anew": {DeleteTopics: true, MinInSync: true},
		"lanes":            {Lanes: true},
		"unclean":          {UncleanElections: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, env, n := world(t, o, tidetest.Racks(racks...),
					tidetest.Set("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector"))
				list := slices.Concat(workload.All(), []workload.Workload{workload.Member{Group: "a"}, workload.Producer{Acks: -1}})
				run(env, 9*time.Second, func() { killOne(c) }, list...)
				t.Logf("%+v", *n)
				if o.DeleteTopics {
					n.Resumed++ // a group's offsets go with the topic
				}
				achieved(t, n)
				if n.Truncated > 0 && !o.UncleanElections {
					t.Errorf("%d positions were cut off", n.Truncated)
				}
			})
		})
	}
}

// killOne ends a broker that leads, and starts it again.
func killOne(c *tidetest.Cluster) {
	time.Sleep(3 * time.Second)
	old := 1
	for broker := range 3 {
		if c.Leader("orders", 0) == broker+1 {
			old = broker + 1
		}
	}
	c.Kill(old)
	time.Sleep(3 * time.Second)
	c.Restart(old)
}

func achieved(t *testing.T, n *workload.Counts) {
	t.Helper()
	for what, count := range map[string]int{
		"acknowledged": n.Acked, "read": n.Read, "from followers": n.Followers, "in sessions": n.Sessions, "listed": n.Listed,
		"committed": n.Committed, "resumed": n.Resumed, "changed": n.Changed,
	} {
		if count == 0 {
			t.Errorf("nothing was %s", what)
		}
	}
}

func TestAReaderFindsOutThatWhatItReadIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, env, n := world(t, workload.Options{Records: 20})
		run(env, time.Minute, nil, workload.Producer{Acks: -1})
		leader := cluster.Leader("orders", 0)
		epoch := cluster.Elect("orders", 0, leader%3+1)
		at, of, checked, ok := workload.ReadBeyond(t.Context(), env, 1000, epoch-1) // as if it had read more than there is
		if !ok || n.Truncated != 1 || at >= 1000 || of != epoch-1 || checked != epoch {
			t.Errorf("the reader stands at %d of epoch %d, having asked in epoch %d", at, of, checked)
		}
	})
}

func TestNamesAreOfOneWorkload(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range workload.All() {
		if seen[w.Name()] || workload.Named(w.Name()) == nil {
			t.Errorf("the name %q is of two workloads or of none", w.Name())
		}
		seen[w.Name()] = true
	}
}
