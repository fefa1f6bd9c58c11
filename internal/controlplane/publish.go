package controlplane

import (
	"sync"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
)

// leadership is who leads the quorum, as one node knows it.
type leadership struct {
	leader model.BrokerID // model.NoBroker: none
	epoch  model.Epoch
	// active says that the leader is this node and that it decides: an entry of
	// its own epoch is applied.
	active bool
	addr   string // where the leader's controller listener is; "" unknown
}

// broadcast hands the newest image and leadership to readers. One task sets
// them.
type broadcast struct {
	rt      *task.Runtime
	img     atomic.Pointer[image.Image]
	lead    atomic.Pointer[leadership]
	mu      sync.Mutex
	changed *task.Signal // closed and replaced when either changes
}

func newBroadcast(rt *task.Runtime, img *image.Image) *broadcast {
	b := &broadcast{rt: rt, changed: rt.NewSignal()}
	b.img.Store(img)
	b.lead.Store(&leadership{leader: model.NoBroker, epoch: model.NoEpoch})
	return b
}

// wait returns a signal that is closed at the next change after this call.
func (b *broadcast) wait() *task.Signal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed.Close()
	b.changed = b.rt.NewSignal()
}

func (b *broadcast) setImage(img *image.Image) {
	if b.img.Load() != img {
		b.img.Store(img)
		b.wake()
	}
}

func (b *broadcast) setLead(l leadership) {
	if *b.lead.Load() != l {
		b.lead.Store(&l)
		b.wake()
	}
}

// subscribe runs fn with the image and with every newer one it gets to see,
// until stop is called or done is closed.
func (b *broadcast) subscribe(done *task.Signal, group *task.Group, fn func(*image.Image)) (stop func()) {
	quit, gone := b.rt.NewSignal(), b.rt.NewSignal()
	group.Go("metadata subscriber", func() {
		defer gone.Close()
		w := b.rt.NewWaiter()
		var last *image.Image
		for {
			changed := b.wait()
			if img := b.img.Load(); img != last {
				last = img
				fn(img)
			}
			if w.Wait(nil, task.Forever, changed, quit, done); quit.Closed() || done.Closed() {
				return
			}
		}
	})
	return func() {
		quit.Close()
		b.rt.Wait(nil, task.Forever, gone)
	}
}
