package transport

import (
	"runtime"
	"sync"
)

// depot keeps free frames of at least largeFrame bytes. The one that came back last
// leaves first: its bytes may still be in a cache. A sync.Pool would drop all of them
// with every second collection, and make and clear as many again.
type depot struct {
	mu   sync.Mutex
	free [maxClassBits - minClassBits + 1][]*Frame
	// spare is by class the fewest that were free since the last collection: so many
	// nobody missed.
	spare [maxClassBits - minClassBits + 1]int
}

// largeFrame is the smallest frame that a depot keeps.
const (
	largeFrameBits = 18
	largeClass     = largeFrameBits - minClassBits
)

// frameDepot is that of the process.
var frameDepot = newDepot()

func newDepot() *depot {
	d := &depot{}
	d.trimAtCollection()
	return d
}

// take returns a free frame, or nil.
func (d *depot) take(class int) *Frame {
	d.mu.Lock()
	defer d.mu.Unlock()
	free := d.free[class]
	n := len(free) - 1
	if n < 0 {
		return nil
	}
	f := free[n]
	free[n] = nil
	d.free[class] = free[:n]
	d.spare[class] = min(d.spare[class], n)
	return f
}

func (d *depot) put(f *Frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free[f.class] = append(d.free[f.class], f)
}

// trim drops what nobody missed since it was called last.
func (d *depot) trim() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for class, free := range d.free {
		rest := copy(free, free[d.spare[class]:])
		clear(free[rest:])
		d.free[class], d.spare[class] = free[:rest], rest
	}
}

// trimAtCollection has trim called with every garbage collection: an object that
// nobody holds dies with the next one.
func (d *depot) trimAtCollection() {
	runtime.AddCleanup(new([16]byte), func(d *depot) {
		d.trim()
		d.trimAtCollection()
	}, d)
}
