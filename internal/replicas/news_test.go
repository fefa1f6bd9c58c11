package replicas

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/replicas/timers"
)

// hwOf is the high watermark that a request was told.
func (f *poll) hwOf(t *testing.T) model.Offset {
	t.Helper()
	if f.done != 1 {
		t.Fatalf("the request was answered %d times", f.done)
	}
	return f.Parts[0].Reply.HW
}

// committed returns a partition with one record that all have, and what its
// followers wait with: the first came before the high watermark moved, the second
// moved it.
func (c *crank) committed() (r *replica, first, second *poll) {
	c.t.Helper()
	r = c.led(0)
	c.append(10, r)
	first, second = fetchOf(2, time.Minute, 1, 1, r), fetchOf(3, time.Minute, 1, 1, r)
	c.ask(first)
	c.ask(second)
	if hw := r.p.Marks().HW; hw != 1 {
		c.t.Fatalf("the high watermark is %d", hw)
	}
	return r, first, second
}

func TestNewsOfAHighWatermarkIsToldSoon(t *testing.T) {
	c := newCrank(t)
	r, first, second := c.committed()
	c.wait(newsWait - time.Microsecond)
	c.overdue(t, "")
	first.waits(t)
	second.waits(t)
	c.wait(time.Microsecond)
	for _, f := range []*poll{first, second} {
		if hw := f.hwOf(t); hw != 1 {
			t.Errorf("broker %d was told of %d", f.Replica, hw)
		}
	}
	again := fetchOf(2, time.Minute, 1, 1, r)
	c.ask(again)
	c.wait(time.Second)
	again.waits(t) // there is nothing new
}

func TestNewsOfAHighWatermarkGoWithRecords(t *testing.T) {
	c := newCrank(t)
	r, first, second := c.committed()
	c.append(10, r)
	for _, f := range []*poll{first, second} {
		if hw := f.hwOf(t); hw != 1 || f.Parts[0].Reply.Limit != 2 {
			t.Errorf("broker %d was told of %d and may read up to %d", f.Replica, hw, f.Parts[0].Reply.Limit)
		}
	}
	c.wait(newsWait) // the time that was set finds nobody
	next := fetchOf(2, time.Minute, 1, 2, r)
	c.ask(next)
	c.wait(newsWait)
	next.waits(t)
}

func TestNewsThatNobodyIsToldAreNoticed(t *testing.T) {
	c := newCrank(t)
	c.committed()
	c.timers = timers.Queue{}
	c.time.now = c.time.now.Add(newsWait + lateBy)
	c.overdue(t, "")
	c.time.now = c.time.now.Add(lateBy + 1)
	c.overdue(t, "could be answered")
}
