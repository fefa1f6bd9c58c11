package storage

import (
	"path"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
)

// chore is work that waits: the flush of what a roll left behind, or the removal
// of a file or folder after a delay.
type chore struct {
	flush *Log
	upto  model.Offset
	cuts  uint64

	remove string
	after  time.Duration
	at     model.Millis
}

// background is the queue of chores of a directory and the task that works it
// off. The queue is bounded by the work that made it: one entry per roll and per
// deleted file.
type background struct {
	mu    sync.Mutex
	queue []chore
	wake  *task.Signal // nil without a task
	quit  *task.Signal
	tasks *task.Group
}

func (b *background) start(d *Dir) {
	rt := d.opts.Runtime
	b.wake, b.quit, b.tasks = rt.NewSignal(), rt.NewSignal(), rt.NewGroup()
	b.tasks.Go("storage background", func() { b.loop(d, rt.NewWaiter(), b.quit) })
}

// stop waits for the task; it may be called again.
func (b *background) stop() {
	if b.quit == nil {
		return
	}
	b.quit.Close()
	b.tasks.Wait()
	b.quit = nil
}

func (b *background) loop(d *Dir, w *task.Waiter, quit *task.Signal) {
	for !quit.Closed() {
		if err := d.RunBackground(); err != nil {
			d.opts.Log.Error("background work failed", "dir", d.path, "err", err)
		}
		w.Wait(nil, b.next(d.opts.Now()), quit, b.wake)
	}
}

// next is how long until the first delayed chore is due.
func (b *background) next(now model.Millis) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return task.Forever
	}
	wait := time.Hour
	for _, t := range b.queue {
		wait = min(wait, time.Duration(t.at-now)*time.Millisecond)
	}
	return max(wait, 0)
}

// later queues a chore.
func (d *Dir) later(t chore) {
	if t.remove != "" {
		t.at = d.opts.Now() + model.Millis(t.after.Milliseconds())
	}
	d.work.mu.Lock()
	d.work.queue = append(d.work.queue, t)
	d.work.mu.Unlock()
	if d.work.wake != nil {
		d.work.wake.Raise()
	}
}

// RunBackground does what is due: it makes durable what rolls left behind and
// removes files whose delay is over. The directory's own task calls it,
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

// take removes the first chore that is due from the queue.
func (b *background) take(now model.Millis) (chore, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.queue, func(t chore) bool { return t.at <= now })
	if i < 0 {
		return chore{}, false
	}
	t := b.queue[i]
	b.queue = slices.Delete(b.queue, i, i+1)
	return t, true
}

func (d *Dir) run(t chore) error {
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
