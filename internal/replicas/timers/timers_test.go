package timers

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func TestTimersRunInTheirOrder(t *testing.T) {
	var q Queue
	var ran []model.Time
	for _, at := range []model.Time{30, 10, 20, 10} {
		q.Add(at, func() { ran = append(ran, at) })
	}
	if next, ok := q.Next(); !ok || next != 10 {
		t.Errorf("the first is at %d, %v", next, ok)
	}
	q.Run(20)
	if len(ran) != 3 || ran[0] != 10 || ran[1] != 10 || ran[2] != 20 {
		t.Errorf("ran %v", ran)
	}
	q.Run(30)
	if _, ok := q.Next(); ok || len(ran) != 4 {
		t.Errorf("ran %v, and there is one left: %v", ran, ok)
	}
}
