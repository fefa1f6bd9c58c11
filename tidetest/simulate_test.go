package tidetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/tidetest"
)

// quarrel is a plan with a little of everything.
const quarrel = `
seed 7
nodes 3 combined
topics partitions=2 replication=3 min.isr=2 unclean=false
workloads producer-acks-all consumer
at 500ms kill 1
at 900ms start 1
at 1s cut 2 3
at 1s cut 3 2
at 2s heal 2 3
at 2s heal 3 2
at 2200ms pause 2
at 3s resume 2
end 3500ms
`

// recorder is a test that keeps what it failed with.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	panic(r)
}

// failing returns what f fails a test with.
func failing(t *testing.T, f func(t testing.TB)) string {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != r {
				panic(p)
			}
		}()
		f(r)
	}()
	return r.failed
}

// counting brings an invariant and a workload that both look and use everything.
func counting(looks *int) func(r *tidetest.SimRun) {
	return func(r *tidetest.SimRun) {
		acked := map[string]int64{}
		r.Invariant("Own", func(s *tidetest.SimState) error {
			*looks++
			if p, ok := s.Partition("own", 0); ok && len(p.Replicas) != 3 {
				return fmt.Errorf("replicas %v", p.Replicas)
			}
			return nil
		})
		r.Workload("own", func(ctx context.Context, c *tidetest.SimClient) error {
			if err := c.CreateTopic(ctx, "own", 1, 3, map[string]string{"min.insync.replicas": "2"}); err != nil {
				return err
			}
			for n := 0; c.Sleep(ctx, time.Duration(c.Rand().IntN(20))*time.Millisecond); n++ {
				v := fmt.Sprint("v", n)
				if at, err := c.Produce(ctx, "own", 0, v); err == nil {
					acked[v] = at
				}
			}
			return readAll(c, acked)
		})
		r.AtEnd("OwnEnd", func(s *tidetest.SimState) error {
			p, _ := s.Partition("own", 0)
			if len(acked) == 0 || len(p.Marks) != 3 || len(p.ISR) != 3 || p.Marks[0].HW < int64(len(acked)) {
				return fmt.Errorf("%d acknowledged, in the end %+v", len(acked), p)
			}
			return nil
		})
	}
}

// readAll misses what was acknowledged and is not there.
func readAll(c *tidetest.SimClient, acked map[string]int64) error {
	ctx := context.Background()
	end, err := c.End(ctx, "own", 0)
	found := map[string]int64{}
	for at := int64(0); at < end && err == nil; {
		var rs []tidetest.SimRecord
		rs, err = c.Read(ctx, "own", 0, at)
		for _, r := range rs {
			found[r.Value], at = r.Offset, r.Offset+1
		}
	}
	for v, at := range acked {
		if found[v] != at {
			err = errors.Join(err, fmt.Errorf("%s is at %d, acknowledged was %d", v, found[v], at))
		}
	}
	return err
}

func TestTheSameSimulationGoesTheSameWay(t *testing.T) {
	var looks int
	var first, second strings.Builder
	a := tidetest.Simulate(t, quarrel, tidetest.SimSetup(counting(&looks)), tidetest.SimTrace(&first))
	b := tidetest.Simulate(t, quarrel, tidetest.SimSetup(counting(&looks)), tidetest.SimTrace(&second))
	if a != b || first.String() != second.String() {
		t.Errorf("two ways: %+v %+v", a, b)
	}
	if looks < int(a.Steps) || a.Records == 0 || a.Seed != 7 {
		t.Errorf("%d looks in %+v", looks, a)
	}
	if !strings.Contains(first.String(), " n1     is killed") {
		t.Error("the trace tells of no kill")
	}
	t.Logf("%+v", a)
}

func TestWhatOneBringsSeesThoseWhoAreDown(t *testing.T) {
	down, paused, behind, lives := 0, 0, 0, 0
	tidetest.Simulate(t, quarrel, tidetest.SimSetup(func(r *tidetest.SimRun) {
		r.Invariant("Looks", func(s *tidetest.SimState) error {
			for _, b := range s.Brokers() {
				if !b.Running && s.Now() > 500*time.Millisecond {
					down++
				}
				if b.Paused {
					paused++
				}
				lives = max(lives, b.Life)
			}
			ends := map[int64]bool{}
			for _, c := range s.Controllers() {
				ends[c.MetadataEnd] = true
			}
			if len(ends) > 1 {
				behind++
			}
			if !s.Clean() {
				return errors.New("something was lost")
			}
			return nil
		})
	}))
	if down == 0 || paused == 0 || behind == 0 || lives != 2 {
		t.Errorf("down %d, paused %d, behind %d times, life %d", down, paused, behind, lives)
	}
}

func TestWhatDoesNotHoldFailsTheTestWithTheShortestPlan(t *testing.T) {
	text := failing(t, func(t testing.TB) {
		tidetest.Simulate(t, quarrel, tidetest.SimSetup(func(r *tidetest.SimRun) {
			r.Invariant("NobodyDies", func(s *tidetest.SimState) error {
				for _, b := range s.Brokers() {
					if b.Life > 1 {
						return fmt.Errorf("broker %d had to be started again", b.ID)
					}
				}
				return nil
			})
		}))
	})
	for _, want := range []string{"seed 7: NobodyDies: broker 1 had to", "\nat 500ms kill 1\nend ", "trace:\n", " n1     is killed"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "pause 2\n") || strings.Contains(text, "consumer") {
		t.Errorf("the plan is not short:\n%s", text)
	}
}

func TestAWorkloadThatReturnsAnErrorFailsTheTest(t *testing.T) {
	for name, run := range map[string]func(ctx context.Context, c *tidetest.SimClient) error{
		"it is wrong": func(context.Context, *tidetest.SimClient) error { return errors.New("it is wrong") },
		"no-2: the topic has 1 partitions": func(ctx context.Context, c *tidetest.SimClient) error {
			if err := c.CreateTopic(ctx, "no", 1, 1, nil); err != nil {
				return err
			}
			_, err := c.Produce(ctx, "no", 2, "v")
			return err
		},
		"was produced before": func(ctx context.Context, c *tidetest.SimClient) error {
			c.Produce(ctx, "topic-1", 0, "v")
			_, err := c.Produce(ctx, "topic-1", 0, "v")
			return err
		},
		"INVALID_CONFIG": func(ctx context.Context, c *tidetest.SimClient) error {
			return c.CreateTopic(ctx, "no", 1, 1, map[string]string{"color": "blue"})
		},
		"not made by the runtime": func(ctx context.Context, c *tidetest.SimClient) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c.Sleep(ctx, time.Second)
			return nil
		},
	} {
		text := failing(t, func(t testing.TB) {
			tidetest.Simulate(t, "nodes 1 combined\ntopics partitions=1 replication=1 min.isr=1 unclean=false\nend 300ms",
				tidetest.SimSetup(func(r *tidetest.SimRun) { r.Workload("mine", run) }))
		})
		if !strings.Contains(text, name) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestAContextWithALimitEnds(t *testing.T) {
	tidetest.Simulate(t, "nodes 1 combined\ntopics partitions=1 replication=1 min.isr=1 unclean=false\nend 3s",
		tidetest.SimSetup(func(r *tidetest.SimRun) {
			r.Workload("limited", func(ctx context.Context, c *tidetest.SimClient) error {
				limited, cancel := c.WithTimeout(ctx, time.Second)
				defer cancel()
				began := c.Now()
				_, err := c.Read(limited, "there-is-none", 0, 0)
				if took := c.Now() - began; !errors.Is(err, context.DeadlineExceeded) || took < time.Second || took > 2*time.Second {
					return fmt.Errorf("after %v: %v", took, err)
				}
				c.Note("it took %v", c.Now()-began)
				return nil
			})
		}))
}

func TestSeedsAreDrawn(t *testing.T) {
	var looks int
	rs := tidetest.SimulateSeeds(t, 11, 2, tidetest.SimSetup(counted(&looks)), tidetest.SimFaults("kill", "cut"))
	if len(rs) != 2 || rs[1].Seed != 12 || looks == 0 {
		t.Errorf("%d looks, %+v", looks, rs)
	}
	for want, f := range map[string]func(t testing.TB){
		`there is no fault "meteor"`: func(t testing.TB) { tidetest.SimulateSeeds(t, 1, 1, tidetest.SimFaults("meteor")) },
		"line 1":                     func(t testing.TB) { tidetest.Simulate(t, "dance") },
	} {
		if text := failing(t, f); !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
}

func counted(looks *int) func(r *tidetest.SimRun) {
	return func(r *tidetest.SimRun) {
		r.Invariant("Counts", func(s *tidetest.SimState) error {
			*looks += min(1, len(s.Partitions()))
			return nil
		})
	}
}
