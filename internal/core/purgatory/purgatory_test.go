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
	f.satisfied = true
	p.Wake(1)
	if late.tries != 2 || p.Len() != 1 {
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

// Whatever happens in whatever order: an operation completes exactly once, by
// the first of its causes, no wake-up is lost and nothing is left behind.
func TestEveryOperationCompletesExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := model.Time(0)
		p := New[int](0)
		type op struct {
			*fake
			keys     []int
			deadline model.Time
		}
		var ops []*op
		parked := func() (n, watched int) {
			for _, o := range ops {
				if o.completed == 0 {
					n, watched = n+1, watched+len(o.keys)
				}
			}
			return n, watched
		}
		for i := range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				o := &op{fake: &fake{name: fmt.Sprint(i)}, deadline: now + model.Time(rapid.IntRange(0, 3000).Draw(t, "wait"))*ms}
				o.keys = rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "keys")
				if wakes := rapid.IntRange(-5, 5).Draw(t, "wakes"); wakes >= 0 {
					o.onComplete = func(*fake) { p.Wake(wakes) }
				}
				ops = append(ops, o)
				if done := p.Park(now, o, o.deadline, o.keys...); done != (o.completed == 1) {
					t.Fatalf("Park = %v, completed %d times", done, o.completed)
				}
			case 1:
				if len(ops) > 0 {
					ops[rapid.IntRange(0, len(ops)-1).Draw(t, "satisfy")].satisfied = true
				}
			case 2:
				key := rapid.IntRange(0, 5).Draw(t, "key")
				p.Wake(key)
				for _, o := range ops {
					if o.satisfied && o.completed == 0 && slices.Contains(o.keys, key) {
						t.Fatalf("operation %s lost the wake-up of key %d", o.name, key)
					}
				}
			case 3:
				now += model.Time(rapid.IntRange(0, 1000).Draw(t, "by")) * ms
				p.Advance(now)
			}
			for _, o := range ops {
				if late := o.deadline <= now; o.completed > 1 || late && o.completed == 0 || o.expired && !late {
					t.Fatalf("at %v operation %s, deadline %v: completed %d times, expired %v", now, o.name, o.deadline, o.completed, o.expired)
				}
			}
			if n, watched := parked(); p.Len() != n || p.Watched() != watched {
				t.Fatalf("%d parked, %d watched, want %d and %d", p.Len(), p.Watched(), n, watched)
			}
		}
		p.Advance(now + 4000*ms)
		if p.Len() != 0 || p.Watched() != 0 || len(p.lists) != 0 {
			t.Fatalf("left behind: %d parked, %d watched, %d lists", p.Len(), p.Watched(), len(p.lists))
		}
	})
}
