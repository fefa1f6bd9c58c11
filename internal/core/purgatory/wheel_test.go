package purgatory

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// naive is a wheel without a wheel: it looks at every timer.
type naive struct {
	clock int64
	due   map[int]int64
}

func (n *naive) advance(now model.Time) (fired []int) {
	n.clock = max(n.clock, floorTicks(now))
	for id, due := range n.due {
		if due <= n.clock {
			fired = append(fired, id)
			delete(n.due, id)
		}
	}
	slices.Sort(fired)
	return fired
}

func TestWheelFiresWhatANaiveTimerFires(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := model.Time(rapid.Int64Range(0, 1<<45).Draw(t, "start"))
		w, n := NewWheel[int](now), &naive{clock: floorTicks(now), due: map[int]int64{}}
		timers := make([]Timer[int], 20)
		for i := range timers {
			timers[i].Value = i
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			id := rapid.IntRange(0, len(timers)-1).Draw(t, "timer")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0, 1:
				in := model.Time(rapid.Int64Range(-1e6, 1e6).Draw(t, "in") * pow10(rapid.IntRange(0, 9).Draw(t, "scale")))
				added := w.Add(&timers[id], now+in)
				delete(n.due, id)
				if due := ceilTicks(now + in); due > n.clock {
					n.due[id] = due
				}
				if _, want := n.due[id]; added != want || timers[id].Active() != want {
					t.Fatalf("Add(%v) = %v, active %v, want %v", in, added, timers[id].Active(), want)
				}
			case 2:
				w.Remove(&timers[id])
				delete(n.due, id)
			case 3:
				now += model.Time(rapid.Int64Range(0, 1e6).Draw(t, "by") * pow10(rapid.IntRange(0, 9).Draw(t, "scale")))
				checkAdvance(t, w, n, now)
			}
			checkNext(t, w, n)
		}
	})
}

func checkAdvance(t *rapid.T, w *Wheel[int], n *naive, now model.Time) {
	t.Helper()
	var got []int
	last := int64(0)
	w.Advance(now, func(tm *Timer[int]) {
		if tm.due < last {
			t.Fatalf("tick %d fired after tick %d", tm.due, last)
		}
		last = tm.due
		got = append(got, tm.Value)
	})
	slices.Sort(got)
	if want := n.advance(now); !slices.Equal(got, want) {
		t.Fatalf("fired %v, want %v", got, want)
	}
}

// checkNext holds that waiting for NextDeadline again and again neither misses
// a deadline nor spins.
func checkNext(t *rapid.T, w *Wheel[int], n *naive) {
	t.Helper()
	next, ok := w.NextDeadline()
	if ok != (len(n.due) > 0) || w.Len() != len(n.due) {
		t.Fatalf("NextDeadline says %v, Len %d, with %d timers", ok, w.Len(), len(n.due))
	}
	for _, due := range n.due {
		if floorTicks(next) > due {
			t.Fatalf("next deadline in tick %d, a timer is due in %d", floorTicks(next), due)
		}
	}
	if ok && floorTicks(next) <= n.clock {
		t.Fatalf("next deadline in tick %d, the clock shows %d: a loop would spin", floorTicks(next), n.clock)
	}
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

func TestWheelNeverFiresEarly(t *testing.T) {
	w := NewWheel[int](0)
	var tm Timer[int]
	at := model.Time(1500 * time.Microsecond)
	if !w.Add(&tm, at) {
		t.Fatal("a future deadline was refused")
	}
	fired := 0
	w.Advance(at, func(*Timer[int]) { fired++ })
	if fired != 0 {
		t.Fatal("fired within the tick of its deadline")
	}
	w.Advance(model.Time(2*time.Millisecond), func(*Timer[int]) { fired++ })
	if fired != 1 {
		t.Fatal("did not fire at the next tick")
	}
}

func TestFarDeadlineCascadesOncePerLevel(t *testing.T) {
	w := NewWheel[int](0)
	var tm Timer[int]
	w.Add(&tm, model.Time(24*time.Hour))
	turns, fired := 0, false
	for !fired {
		next, ok := w.NextDeadline()
		if !ok {
			t.Fatal("the timer got lost")
		}
		turns++
		w.Advance(next, func(*Timer[int]) { fired = true })
	}
	if turns > len(w.levels) {
		t.Errorf("a timer of one day took %d turns on %d levels", turns, len(w.levels))
	}
	if w.clock != 24*60*60*1000 {
		t.Errorf("fired at tick %d", w.clock)
	}
}

func TestCallbackMayChangeTheWheel(t *testing.T) {
	w := NewWheel[int](0)
	var a, b, c Timer[int]
	ms := func(n int) model.Time { return model.Time(n) * model.Time(time.Millisecond) }
	for _, tm := range []*Timer[int]{&a, &b} {
		w.Add(tm, ms(5))
	}
	w.Advance(ms(5), func(tm *Timer[int]) {
		if tm != &a {
			t.Fatal("a timer fired that was removed before its turn")
		}
		w.Remove(&b)
		if w.Add(&c, ms(5)) {
			t.Error("a deadline of this very tick was taken")
		}
		w.Add(&c, ms(6))
	})
	if !c.Active() || b.Active() || w.Len() != 1 {
		t.Errorf("c active %v, b active %v, %d timers", c.Active(), b.Active(), w.Len())
	}
}
