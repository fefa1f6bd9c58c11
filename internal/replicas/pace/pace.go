// Package pace is how many syncs of a disk go on at the same time.
package pace

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

// A disk, and the journal of its file system, serve many that ask together for little
// more than what one costs. If a sync takes Slow or more, so many go on at the same
// time; what is quicker is not worth the threads (ADR 0024).
const (
	together = 16
	Slow     = time.Millisecond
)

// Disk remembers how quick the disk was. It has one user at a time.
type Disk struct {
	rt       *task.Runtime
	quickest time.Duration // sync of the last round
}

// New returns a Disk that is taken to be quick.
func New(rt *task.Runtime) *Disk { return &Disk{rt: rt} }

// Each calls sync for 0 to n-1 and returns when all have returned. It may be called
// for several at the same time, and returns what it took.
func (d *Disk) Each(n int, sync func(i int) time.Duration) {
	if n == 0 {
		return
	}
	lanes := 1
	if d.quickest >= Slow {
		lanes = min(n, together)
	}
	quickest := make([]time.Duration, lanes)
	lane := func(first int) {
		for i := first; i < n; i += lanes {
			if took := sync(i); i == first || took < quickest[first] {
				quickest[first] = took
			}
		}
	}
	if lanes == 1 {
		lane(0)
	} else {
		all := d.rt.NewGroup()
		for first := range lanes {
			all.Go("sync", func() { lane(first) })
		}
		all.Wait()
	}
	d.quickest = quickest[0]
	for _, took := range quickest {
		d.quickest = min(d.quickest, took)
	}
}
