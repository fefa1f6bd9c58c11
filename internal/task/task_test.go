package task_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

func TestSignalLetsOneThroughForEachRaise(t *testing.T) {
	var rt *task.Runtime
	s := rt.NewSignal()
	s.Raise()
	s.Raise()
	if got := rt.Wait(nil, 0, s); got != 0 {
		t.Fatalf("a raised signal answers %d", got)
	}
	if got := rt.Wait(nil, 0, s); got != task.Timeout {
		t.Fatalf("a signal that was taken answers %d", got)
	}
	s.Close()
	for range 2 {
		if got := rt.Wait(nil, task.Forever, s); got != 0 {
			t.Fatalf("a closed signal answers %d", got)
		}
	}
	if !s.Closed() || !s.Take() {
		t.Fatal("a closed signal does not stay closed")
	}
}

func TestWaitEndsWithWhatComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *task.Runtime
		never, late := rt.NewSignal(), rt.NewSignal()
		w := rt.NewWaiter()
		began := rt.Now()
		if got := w.Wait(nil, time.Second, never, nil, late); got != task.Timeout || rt.Since(began) != time.Second {
			t.Fatalf("answered %d after %v", got, rt.Since(began))
		}
		g := rt.NewGroup()
		g.Go("late", func() {
			rt.Sleep(nil, time.Second)
			late.Raise()
		})
		if got := w.Wait(nil, time.Minute, never, late); got != 1 {
			t.Fatalf("answered %d", got)
		}
		g.Wait()
		ctx, cancel := rt.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if got := w.Wait(ctx, task.Forever, never); got != task.Ended {
			t.Fatalf("answered %d", got)
		}
	})
}

func TestQueueKeepsOrderAndRefusesAfterClose(t *testing.T) {
	var rt *task.Runtime
	q := task.NewQueue[int](rt)
	if !q.Post(1, 2) || !q.Post(3) || !q.Wake.Take() || q.Wake.Take() {
		t.Fatal("two posts raise the wake signal once")
	}
	q.Close()
	if q.Post(4) || q.Drained() {
		t.Fatal("a closed queue takes no more and still holds what it had")
	}
	if got := q.Take(nil); len(got) != 3 || got[0] != 1 || got[2] != 3 {
		t.Fatalf("took %v", got)
	}
	if !q.Drained() {
		t.Fatal("an empty closed queue is drained")
	}
}

func BenchmarkWaitRaised(b *testing.B) {
	var rt *task.Runtime
	w, s := rt.NewWaiter(), rt.NewSignal()
	b.ReportAllocs()
	for b.Loop() {
		s.Raise()
		w.Wait(nil, task.Forever, s)
	}
}
