// Package timers is what a loop does later.
package timers

import (
	"container/heap"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Queue holds the few things that a loop itself does later.
type Queue struct{ items soonest }

type item struct {
	at model.Time
	f  func()
}

type soonest []item

func (h soonest) Len() int           { return len(h) }
func (h soonest) Less(i, j int) bool { return h[i].at < h[j].at }
func (h soonest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *soonest) Push(x any)        { *h = append(*h, x.(item)) }
func (h *soonest) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = item{}
	*h = old[:len(old)-1]
	return x
}

// Add has f run at a time.
func (q *Queue) Add(at model.Time, f func()) { heap.Push(&q.items, item{at, f}) }

// Next is when Run has something to do; false: never.
func (q *Queue) Next() (model.Time, bool) {
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].at, true
}

// Run runs what is due, the earliest first.
func (q *Queue) Run(now model.Time) {
	for len(q.items) > 0 && q.items[0].at <= now {
		heap.Pop(&q.items).(item).f()
	}
}
