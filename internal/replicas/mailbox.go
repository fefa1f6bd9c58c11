package replicas

import "sync"

// mailbox is the inbox of one loop. Anybody posts; the loop takes all at once.
// It does not bound itself: what waits in it is bounded by what the senders may
// have outstanding (bytes in flight of the connections, one fetch per peer).
type mailbox[E any] struct {
	mu     sync.Mutex
	in     []E
	closed bool
	wake   chan struct{}
}

func newMailbox[E any]() *mailbox[E] {
	return &mailbox[E]{wake: make(chan struct{}, 1)}
}

// post adds e and reports whether the loop will still see it.
func (m *mailbox[E]) post(e ...E) bool {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return false
	}
	first := len(m.in) == 0
	m.in = append(m.in, e...)
	m.mu.Unlock()
	if first {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// take returns all that waits and leaves buf's memory for the next ones.
func (m *mailbox[E]) take(buf []E) []E {
	clear(buf)
	m.mu.Lock()
	out := m.in
	m.in = buf[:0]
	m.mu.Unlock()
	return out
}

// close refuses further posts; what waits can still be taken.
func (m *mailbox[E]) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// isClosed reports whether nothing waits and nothing will.
func (m *mailbox[E]) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed && len(m.in) == 0
}
