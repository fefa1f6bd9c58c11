package transport

import (
	"sync"

	"github.com/tidemark-log/tidemark/internal/task"
)

// budget bounds the bytes of Produce requests that a listener, or a connection,
// holds. Only Produce counts: its answers may wait for followers, whose own Fetch
// requests must get through whatever the producers hold.
type budget struct {
	rt    *task.Runtime
	mu    sync.Mutex
	limit int64
	used  int64
	free  *task.Signal // closed and replaced whenever bytes come back
	// waiting counts the readers that hold back.
	waiting int
}

func newBudget(rt *task.Runtime, limit int64) *budget {
	return &budget{rt: rt, limit: limit, free: rt.NewSignal()}
}

// take reserves n bytes, or waits until enough are free. A request larger than
// the whole budget gets in when it is alone. It reports false when done closes
// first.
func (b *budget) take(n int64, done *task.Signal) bool {
	b.mu.Lock()
	for b.used > 0 && b.used+n > b.limit {
		free := b.free
		b.waiting++
		b.mu.Unlock()
		b.rt.Wait(nil, task.Forever, free, done)
		b.mu.Lock()
		b.waiting--
		if done.Closed() {
			b.mu.Unlock()
			return false
		}
	}
	b.used += n
	b.mu.Unlock()
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.waiting > 0 {
		b.free.Close()
		b.free = b.rt.NewSignal()
	}
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
	if !c.window.take(n, c.closed) {
		return charge{}, false
	}
	if !c.server.budget.take(n, c.closed) {
		c.window.give(n)
		return charge{}, false
	}
	return charge{n: n, conn: c.window, server: c.server.budget}, true
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
