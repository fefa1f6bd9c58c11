package storage

import (
	"path"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// task is work that waits: the flush of what a roll left behind, or the removal
// of a file or folder after a delay.
type task struct {
	flush *Log
	upto  model.Offset
	cuts  uint64

	remove string
	after  time.Duration
	at     model.Millis
}

// background is the queue of tasks of a directory and the goroutine that works
// it off. The queue is bounded by the work that made it: one entry per roll and
// per deleted file.
type background struct {
	mu      sync.Mutex
	queue   []task
	running bool
	wake    chan struct{} // nil without a goroutine
	quit    chan struct{}
	done    chan struct{}
}

func (b *background) start(d *Dir) {
	b.wake, b.quit, b.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go b.loop(d)
}

// stop waits for the goroutine; it may be called again.
func (b *background) stop() {
	if b.quit == nil {
		return
	}
	close(b.quit)
	<-b.done
	b.quit = nil
}

func (b *background) loop(d *Dir) {
	defer close(b.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-b.quit:
			return
		case <-b.wake:
		case <-timer.C:
		}
		if err := d.RunBackground(); err != nil {
			d.opts.Log.Error("background work failed", "dir", d.path, "err", err)
		}
		if wait, ok := b.next(d.opts.Now()); ok {
			timer.Reset(wait)
		}
	}
}

// next is how long until the first delayed task is due.
func (b *background) next(now model.Millis) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait, ok := time.Hour, false
	for _, t := range b.queue {
		wait, ok = min(wait, time.Duration(t.at-now)*time.Millisecond), true
	}
	return max(wait, 0), ok
}

// later queues a task.
func (d *Dir) later(t task) {
	if t.remove != "" {
		t.at = d.opts.Now() + model.Millis(t.after.Milliseconds())
	}
	d.work.mu.Lock()
	d.work.queue = append(d.work.queue, t)
	d.work.mu.Unlock()
	if d.work.wake != nil {
		select {
		case d.work.wake <- struct{}{}:
		default:
		}
	}
}

// RunBackground does what is due: it makes durable what rolls left behind and
// removes files whose delay is over. The directory's own goroutine calls it,
// unless DirOptions.Manual. An error has taken the directory offline.
func (d *Dir) RunBackground() error {
	for {
		t, ok := d.work.take(d.opts.Now())
		if !ok {
			return nil
		}
		if d.usable() != nil {
			continue // nothing is touched any more
		}
		if err := d.run(t); err != nil {
			return d.fail("background work in", d.path, err)
		}
	}
}

// take removes the first task that is due from the queue.
func (b *background) take(now model.Millis) (task, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.queue, func(t task) bool { return t.at <= now })
	if i < 0 {
		return task{}, false
	}
	t := b.queue[i]
	b.queue = slices.Delete(b.queue, i, i+1)
	return t, true
}

func (d *Dir) run(t task) error {
	if t.flush != nil {
		return t.flush.flushBelow(t.upto, t.cuts)
	}
	// A removal needs no sync: what comes back after a crash is removed again
	// at loading. A log deleted meanwhile took the file with it.
	if path.Dir(t.remove) == d.path {
		return d.fs.RemoveAll(t.remove)
	}
	if err := d.fs.Remove(t.remove); err != nil && !missing(err) {
		return err
	}
	return nil
}
