package controlplane

import (
	"sync"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
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

// broadcast hands the newest image and leadership to readers. One goroutine
// sets them.
type broadcast struct {
	img     atomic.Pointer[image.Image]
	lead    atomic.Pointer[leadership]
	mu      sync.Mutex
	changed chan struct{} // closed and replaced when either changes
}

func newBroadcast(img *image.Image) *broadcast {
	b := &broadcast{changed: make(chan struct{})}
	b.img.Store(img)
	b.lead.Store(&leadership{leader: model.NoBroker, epoch: model.NoEpoch})
	return b
}

// wait returns a channel that is closed at the next change after this call.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
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
func (b *broadcast) subscribe(done <-chan struct{}, group *sync.WaitGroup, fn func(*image.Image)) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	group.Add(1)
	go func() {
		defer group.Done()
		defer close(gone)
		var last *image.Image
		for {
			changed := b.wait()
			if img := b.img.Load(); img != last {
				last = img
				fn(img)
			}
			select {
			case <-changed:
			case <-quit:
				return
			case <-done:
				return
			}
		}
	}()
	var once sync.Once
	return func() {
		once.Do(func() { close(quit) })
		<-gone
	}
}

// ready is a channel that is closed once.
type ready struct {
	once sync.Once
	ch   chan struct{}
}

func newReady() *ready { return &ready{ch: make(chan struct{})} }

func (r *ready) set() { r.once.Do(func() { close(r.ch) }) }
