package task

import "sync"

// Queue is the inbox of one loop. Anybody posts; the loop takes all at once. It
// does not bound itself: what waits in it is bounded by what the senders may have
// outstanding.
type Queue[E any] struct {
	mu     sync.Mutex
	in     []E
	closed bool
	// Wake is raised when something was posted, or the queue was closed.
	Wake *Signal
}

// NewQueue returns an empty queue of this process.
func NewQueue[E any](rt *Runtime) *Queue[E] { return &Queue[E]{Wake: rt.NewSignal()} }

// Post adds e and reports whether the loop will still see it.
func (q *Queue[E]) Post(e ...E) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false
	}
	first := len(q.in) == 0
	q.in = append(q.in, e...)
	q.mu.Unlock()
	if first {
		q.Wake.Raise()
	}
	return true
}

// Take returns all that waits and leaves buf's memory for the next ones.
func (q *Queue[E]) Take(buf []E) []E {
	clear(buf)
	q.mu.Lock()
	out := q.in
	q.in = buf[:0]
	q.mu.Unlock()
	return out
}

// Len is how many wait.
func (q *Queue[E]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.in)
}

// Close refuses further posts; what waits can still be taken.
func (q *Queue[E]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.Wake.Raise()
}

// Drained reports whether nothing waits and nothing will.
func (q *Queue[E]) Drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && len(q.in) == 0
}
