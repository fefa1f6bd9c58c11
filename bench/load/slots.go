package load

import (
	"context"
	"sync/atomic"
)

// slots keep a closed loop from having more under way than it may: the clock of a
// record starts when it has a slot, not when it queues for one. One goroutine
// takes slots, another gives them back.
type slots struct {
	most    int64
	done    atomic.Int64 // records that are not under way any more
	waiting atomic.Bool
	free    chan struct{} // a pulse: look again
}

func (s *slots) init(most int64) { s.most, s.free = most, make(chan struct{}, 1) }

// await returns when record n, counted from 0, has a slot or the context ends.
func (s *slots) await(ctx context.Context, n int64) {
	for n-s.done.Load() >= s.most {
		s.waiting.Store(true)
		if n-s.done.Load() >= s.most {
			select {
			case <-ctx.Done():
				return
			case <-s.free:
			}
		}
		s.waiting.Store(false)
	}
}

// release gives the slot of one record back.
func (s *slots) release() {
	s.done.Add(1)
	if s.waiting.Load() {
		select {
		case s.free <- struct{}{}:
		default: // it will look anyway
		}
	}
}
