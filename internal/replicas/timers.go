package replicas

import (
	"container/heap"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// timerQueue holds the few things that the loop itself does later.
type timerQueue struct{ items timerHeap }

type timerItem struct {
	at model.Time
	f  func()
}

type timerHeap []timerItem

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(timerItem)) }
func (h *timerHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = timerItem{}
	*h = old[:len(old)-1]
	return x
}

func (q *timerQueue) add(at model.Time, f func()) { heap.Push(&q.items, timerItem{at, f}) }

func (q *timerQueue) next() (model.Time, bool) {
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].at, true
}

func (q *timerQueue) run(now model.Time) {
	for len(q.items) > 0 && q.items[0].at <= now {
		heap.Pop(&q.items).(timerItem).f()
	}
}
