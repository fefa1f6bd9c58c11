package transport

import (
	"log/slog"
	"sync"
	"time"
)

// Bad clients must not fill the disk with log lines (case B258): in each window
// at most so many are written, and the next window says how many were not.
const (
	noiseWindow = 10 * time.Second
	noiseLines  = 20
)

// noise limits the warnings of one listener.
type noise struct {
	mu      sync.Mutex
	began   time.Time
	lines   int
	dropped int
}

func (n *noise) warn(now time.Time, log *slog.Logger, what, peer string, err error) {
	ok, dropped := n.admit(now)
	if dropped > 0 {
		log.Warn("more connections were refused or closed than the log shows", "lines", dropped)
	}
	if ok {
		log.Warn(what, "peer", peer, "err", err)
	}
}

// admit says whether a line may be written now, and how many were dropped in a
// window that is over.
func (n *noise) admit(now time.Time) (ok bool, dropped int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.began) >= noiseWindow {
		dropped = n.dropped
		n.began, n.lines, n.dropped = now, 0, 0
	}
	if n.lines == noiseLines {
		n.dropped++
		return false, dropped
	}
	n.lines++
	return true, dropped
}
