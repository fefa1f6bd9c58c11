package purgatory

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

const ms = model.Time(time.Millisecond)

// fake is an operation that is satisfied when the test says so.
type fake struct {
	name       string
	satisfied  bool
	tries      int
	onTry      func(*fake)
	onComplete func(*fake)
	log        *[]string
	expired    bool
	completed  int
}

func (f *fake) TryComplete() bool {
	f.tries++
	if f.onTry != nil {
		f.onTry(f)
	}
	return f.satisfied
}

func (f *fake) Complete() {
	f.completed++
	if f.log != nil {
		*f.log = append(*f.log, f.name)
	}
	if f.onComplete != nil {
		f.onComplete(f)
	}
}

func (f *fake) Expire() { f.expired = true }

func TestParkTriesBeforeAndAfterWatching(t *testing.T) {
	p := New[int](0)
	f := &fake{}
	// The first try finds nothing; what it waits for happens right after it.
	f.onTry = func(f *fake) { f.satisfied = f.tries == 2 }
	if !p.Park(0, f, 10*ms, 1, 2) {
		t.Fatal("what happened between the two tries was missed")
	}
	if f.completed != 1 || f.expired || p.Len() != 0 || p.Watched() != 0 {
		t.Errorf("%+v, %d parked, %d watched", f, p.Len(), p.Watched())
	}
}

func TestDeadlineInThePastExpiresAtOnce(t *testing.T) {
	p := New[int](5 * ms)
	f := &fake{}
	if !p.Park(7*ms, f, 7*ms, 1) || !f.expired || f.completed != 1 || p.Watched() != 0 {
		t.Errorf("%+v, %d watched", f, p.Watched())
	}
}

func TestExpiryCompletesOnceAndLeavesAllKeys(t *testing.T) {
	p := New[int](0)
	f := &fake{}
	p.Park(0, f, 10*ms, 1, 2, 3)
	if p.Len() != 1 || p.Watched() != 3 {
		t.Fatalf("%d parked, %d watched", p.Len(), p.Watched())
	}
	p.Advance(9 * ms)
	if f.completed != 0 {
		t.Fatal("expired early")
	}
	p.Advance(10 * ms)
	f.satisfied = true
	p.Wake(2)
	if f.completed != 1 || !f.expired || p.Len() != 0 || p.Watched() != 0 || len(p.lists) != 0 {
		t.Errorf("%+v, %d parked, %d watched, %d lists", f, p.Len(), p.Watched(), len(p.lists))
	}
}

func TestAKeyNamedTwiceIsHarmless(t *testing.T) {
	p := New[int](0)
	a, b := &fake{}, &fake{}
	p.Park(0, a, 10*ms, 1, 1, 2, 1)
	p.Park(0, b, 10*ms, 1)
	a.satisfied, b.satisfied = true, true
	p.Wake(1)
	if a.completed != 1 || b.completed != 1 || p.Watched() != 0 {
		t.Errorf("completed %d and %d times, %d watched", a.completed, b.completed, p.Watched())
	}
}

// A completion that causes others does not run them inside itself: the walk at
// hand ends first, then the causes follow in order.
func TestCausesRunInOrder(t *testing.T) {
	p := New[string](0)
	var log []string
	park := func(name, key string, wakes ...string) {
		f := &fake{name: name, log: &log}
		f.onTry = func(f *fake) { f.satisfied = f.tries > 2 }
		f.onComplete = func(*fake) {
			for _, k := range wakes {
				p.Wake(k)
			}
			log = append(log, name+" done")
		}
		p.Park(0, f, 10*ms, key)
	}
	park("a1", "a", "c", "b")
	park("a2", "a", "b")
	park("b1", "b", "c")
	park("c1", "c")
	p.Wake("a")
	want := []string{"a1", "a1 done", "a2", "a2 done", "c1", "c1 done", "b1", "b1 done"}
	if !slices.Equal(log, want) {
		t.Errorf("order %v, want %v", log, want)
	}
}

func TestParkDuringWakeIsNotTriedAgain(t *testing.T) {
	p := New[int](0)
	late := &fake{}
	f := &fake{onComplete: func(*fake) { p.Park(0, late, 10*ms, 1) }}
	p.Park(0, f, 10*ms, 1)
	p.Park(0, &fake{}, 10*ms, 1)
	f.satisfied = true
	p.Wake(1)
	if late.tries != 2 || p.Len() != 2 {
		t.Errorf("tried %d times, %d parked", late.tries, p.Len())
	}
}

func TestWakeAllocatesNothing(t *testing.T) {
	p := New[model.TopicIDPartition](0)
	key := model.TopicIDPartition{Partition: 3}
	waiting := &fake{}
	p.Park(0, waiting, 1000*ms, key)
	f := &fake{}
	cycle := func() {
		f.satisfied = false
		p.Park(0, f, 1000*ms, key)
		f.satisfied = true
		p.Wake(key)
	}
	cycle()
	if n := testing.AllocsPerRun(1000, cycle); n != 0 {
		t.Errorf("%v allocations for a Park and a Wake, want 0", n)
	}
	if f.completed < 1000 || waiting.completed != 0 {
		t.Errorf("completed %d and %d times", f.completed, waiting.completed)
	}
}

// crowd is many operations in one purgatory, which the test knows one by one.
type crowd struct {
	t   *rapid.T
	p   *Purgatory[int]
	now model.Time
	ops []*crowdOp
}

type crowdOp struct {
	*fake
	keys     []int
	deadline model.Time
}

func (c *crowd) step() {
	switch rapid.IntRange(0, 3).Draw(c.t, "kind") {
	case 0:
		c.park()
	case 1:
		if len(c.ops) > 0 {
			rapid.SampledFrom(c.ops).Draw(c.t, "satisfy").satisfied = true
		}
	case 2:
		key := rapid.IntRange(0, 5).Draw(c.t, "key")
		c.p.Wake(key)
		for _, o := range c.ops {
			if o.satisfied && o.completed == 0 && slices.Contains(o.keys, key) {
				c.t.Fatalf("operation %s lost the wake-up of key %d", o.name, key)
			}
		}
	case 3:
		c.now += model.Time(rapid.IntRange(0, 1000).Draw(c.t, "by")) * ms
		c.p.Advance(c.now)
	}
}

func (c *crowd) park() {
	o := &crowdOp{fake: &fake{name: fmt.Sprint(len(c.ops))}, deadline: c.now + model.Time(rapid.IntRange(0, 3000).Draw(c.t, "wait"))*ms}
	o.keys = rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(c.t, "keys")
	if wakes := rapid.IntRange(-5, 5).Draw(c.t, "wakes"); wakes >= 0 {
		o.onComplete = func(*fake) { c.p.Wake(wakes) }
	}
	c.ops = append(c.ops, o)
	if done := c.p.Park(c.now, o, o.deadline, o.keys...); done != (o.completed == 1) {
		c.t.Fatalf("Park = %v, completed %d times", done, o.completed)
	}
}

func (c *crowd) check() {
	parked, watched := 0, 0
	for _, o := range c.ops {
		if late := o.deadline <= c.now; o.completed > 1 || late && o.completed == 0 || o.expired && !late {
			c.t.Fatalf("at %v operation %s, deadline %v: completed %d times, expired %v", c.now, o.name, o.deadline, o.completed, o.expired)
		}
		if o.completed == 0 {
			parked, watched = parked+1, watched+len(o.keys)
		}
	}
	if c.p.Len() != parked || c.p.Watched() != watched {
		c.t.Fatalf("%d parked, %d watched, want %d and %d", c.p.Len(), c.p.Watched(), parked, watched)
	}
}

// Whatever happens in whatever order: an operation completes exactly once, by
// the first of its causes, no wake-up is lost and nothing is left behind.
func TestEveryOperationCompletesExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &crowd{t: t, p: New[int](0)}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			c.step()
			c.check()
		}
		c.p.Advance(c.now + 4000*ms)
		if c.p.Len() != 0 || c.p.Watched() != 0 || len(c.p.lists) != 0 {
			t.Fatalf("left behind: %d parked, %d watched, %d lists", c.p.Len(), c.p.Watched(), len(c.p.lists))
		}
	})
}

func BenchmarkParkAndWake(b *testing.B) {
	p := New[model.TopicIDPartition](0)
	key := model.TopicIDPartition{Partition: 3}
	f := &fake{}
	b.ReportAllocs()
	for b.Loop() {
		f.satisfied = false
		p.Park(0, f, 1000*ms, key)
		f.satisfied = true
		p.Wake(key)
	}
}

func TestAWalkSeesEverythingThatIsParkedAndChangesNothing(t *testing.T) {
	p := New[int](0)
	deadlines := []model.Time{10 * ms, 3000 * ms, 25*ms - 1, 1 << 60}
	ops := make([]*fake, len(deadlines))
	for i, at := range deadlines {
		ops[i] = &fake{name: fmt.Sprint(i)}
		p.Park(0, ops[i], at, i, 0)
	}
	gone := &fake{}
	p.Park(0, gone, 20*ms, 9)
	gone.satisfied = true
	p.Wake(9)
	p.Advance(9 * ms)
	var order string
	p.Each(func(op Op, due model.Time) {
		f := op.(*fake)
		if at := deadlines[len(order)]; due < at || due >= at+ms {
			t.Errorf("operation %s is due at %v, its deadline is %v", f.name, due, at)
		}
		if f.tries != 2 || f.completed != 0 {
			t.Errorf("operation %s was tried %d times and completed %d times", f.name, f.tries, f.completed)
		}
		order += f.name
	})
	if order != "0123" || p.Len() != 4 || p.Watched() != 8 {
		t.Errorf("seen %q; %d parked, %d watched", order, p.Len(), p.Watched())
	}
}
