package transport

import (
	"slices"
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

// budget bounds bytes that are held at one time: of Produce requests by a listener or a
// connection, or of what they unpack to. Of requests only Produce counts: its answers may
// wait for followers, whose own Fetch requests must get through whatever the producers
// hold. Who waits is served in the order of coming, so that small ones do not keep a
// large one out for ever.
type budget struct {
	rt      *task.Runtime
	mu      sync.Mutex
	limit   int64
	used    int64
	waiting []*claim
}

// claim is bytes that somebody waits for.
type claim struct {
	n       int64
	granted *task.Signal
}

func newBudget(rt *task.Runtime, limit int64) *budget { return &budget{rt: rt, limit: limit} }

// take reserves n bytes, or waits until enough are free, for so long. More than the whole
// budget gets in when it is alone. It reports false when done closes first, or the time
// is over.
func (b *budget) take(n int64, limit time.Duration, done *task.Signal) bool {
	b.mu.Lock()
	if len(b.waiting) == 0 && b.fits(n) {
		b.used += n
		b.mu.Unlock()
		return true
	}
	c := &claim{n, b.rt.NewSignal()}
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()
	b.rt.Wait(nil, limit, c.granted, done)
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.granted.Closed() {
		return true
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(w *claim) bool { return w == c })
	b.grant()
	return false
}

func (b *budget) fits(n int64) bool { return b.used == 0 || b.used+n <= b.limit }

// grant serves those who wait as far as there is room.
func (b *budget) grant() {
	for len(b.waiting) > 0 && b.fits(b.waiting[0].n) {
		c := b.waiting[0]
		b.waiting = slices.Delete(b.waiting, 0, 1)
		b.used += c.n
		c.granted.Close()
	}
}

// add reserves n bytes that are held already, without waiting.
func (b *budget) add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.grant()
}

// charge is what a frame took from the budget of its connection and from that of
// its listener.
type charge struct {
	n            int64
	conn, server *budget
}

// charge takes n bytes from both budgets. It reports false when the connection ends
// first.
func (c *Conn) charge(n int64) (charge, bool) {
	if !c.window.take(n, task.Forever, c.closed) {
		return charge{}, false
	}
	if !c.server.budget.take(n, task.Forever, c.closed) {
		c.window.give(n)
		return charge{}, false
	}
	return charge{n: n, conn: c.window, server: c.server.budget}, true
}

// grow takes n bytes more, which are held already.
func (c *charge) grow(n int64) {
	if c.conn == nil {
		return
	}
	c.n += n
	c.conn.add(n)
	c.server.add(n)
}

// giveBack returns what was taken, once.
func (c *charge) giveBack() {
	if c.conn == nil {
		return
	}
	c.conn.give(c.n)
	c.server.give(c.n)
	*c = charge{}
}
