package transport

import "sync"

// budget bounds the bytes of Produce requests that a listener holds. Only
// Produce counts: its answers may wait for followers, whose own Fetch requests
// must get through whatever the producers hold.
type budget struct {
	mu    sync.Mutex
	limit int64
	used  int64
	free  chan struct{} // closed and replaced whenever bytes come back
	// waiting counts the readers that hold back.
	waiting int
}

func newBudget(limit int64) *budget { return &budget{limit: limit, free: make(chan struct{})} }

// take reserves n bytes, or waits until enough are free. A request larger than
// the whole budget gets in when it is alone. It reports false when done closes
// first.
func (b *budget) take(n int64, done <-chan struct{}) bool {
	b.mu.Lock()
	for b.used > 0 && b.used+n > b.limit {
		free := b.free
		b.waiting++
		b.mu.Unlock()
		select {
		case <-free:
		case <-done:
		}
		b.mu.Lock()
		b.waiting--
		select {
		case <-done:
			b.mu.Unlock()
			return false
		default:
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
		close(b.free)
		b.free = make(chan struct{})
	}
}
