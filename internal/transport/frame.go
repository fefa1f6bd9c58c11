package transport

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Frame is a pooled buffer that holds one request or response. It counts its
// users; the last Release gives the buffer back, and nobody may read it then.
type Frame struct {
	buf    []byte // the frame's bytes, without the size prefix
	refs   atomic.Int32
	class  int // pool that buf belongs to; -1 when it is too large for any
	charge charge
	body   []byte
}

// Size classes are powers of two from 512 bytes to 16 MiB.
const (
	minClassBits = 9
	maxClassBits = 24
)

// framePools holds free frames by size class, the large ones excepted.
var framePools [largeClass]sync.Pool

func classOf(n int) int {
	if n <= 1<<minClassBits {
		return 0
	}
	if n > 1<<maxClassBits {
		return -1
	}
	return bits.Len(uint(n-1)) - minClassBits
}

// newFrame returns a frame of n bytes with one user.
func newFrame(n int) *Frame {
	class := classOf(n)
	if class < 0 {
		f := &Frame{buf: make([]byte, n), class: class}
		f.refs.Store(1)
		return f
	}
	f := freeFrame(class)
	if f == nil {
		f = &Frame{buf: make([]byte, 1<<(class+minClassBits)), class: class}
	}
	f.buf = f.buf[:n]
	f.refs.Store(1)
	return f
}

// freeFrame returns a frame of a class that came back, or nil.
func freeFrame(class int) *Frame {
	if class >= largeClass {
		return frameDepot.take(class)
	}
	f, _ := framePools[class].Get().(*Frame)
	return f
}

// grow moves the first used bytes into a frame of n bytes and gives f back.
func (f *Frame) grow(n, used int) *Frame {
	g := newFrame(n)
	copy(g.buf, f.buf[:used])
	g.charge, f.charge = f.charge, charge{}
	f.Release()
	return g
}

// adopt makes buf, which was appended to f.buf, the frame's bytes. A buffer
// that outgrew its class is left to the garbage collector.
func (f *Frame) adopt(buf []byte) {
	if cap(buf) != cap(f.buf) {
		f.class = -1
	}
	f.buf = buf
}

// Bytes is the whole frame without its size prefix.
func (f *Frame) Bytes() []byte { return f.buf }

// Body is what follows the header of a response frame.
func (f *Frame) Body() []byte { return f.body }

// Retain adds a user.
func (f *Frame) Retain() {
	if f.refs.Add(1) <= 1 {
		panic("transport: a frame was retained after its last release")
	}
}

// Release takes a user away; the last one returns the buffer to its pool.
func (f *Frame) Release() {
	n := f.refs.Add(-1)
	if n > 0 {
		return
	}
	if n < 0 {
		panic("transport: a frame was released more often than retained")
	}
	f.charge.giveBack()
	f.body = nil
	switch {
	case f.class >= largeClass:
		frameDepot.put(f)
	case f.class >= 0:
		framePools[f.class].Put(f)
	}
}
