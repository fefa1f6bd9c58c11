package transport

import (
	"runtime"
	"testing"
)

func large(n int) []*Frame {
	frames := make([]*Frame, n)
	for i := range frames {
		frames[i] = &Frame{class: largeClass}
	}
	return frames
}

func TestTheLargeFrameThatCameBackLastLeavesFirst(t *testing.T) {
	var d depot
	frames := large(3)
	for _, f := range frames {
		d.put(f)
	}
	for i := range frames {
		if got, want := d.take(largeClass), frames[len(frames)-1-i]; got != want {
			t.Errorf("take %d: another frame", i)
		}
	}
	if d.take(largeClass) != nil || d.take(largeClass+1) != nil {
		t.Error("an empty depot gave a frame")
	}
}

// What was in use between two collections stays, what nobody missed goes, the one
// that lay longest first.
func TestLargeFramesThatNobodyMissedAreDropped(t *testing.T) {
	var d depot
	frames := large(5)
	for _, f := range frames {
		d.put(f)
	}
	d.trim() // all are new: none was there since the last time
	if n := len(d.free[largeClass]); n != 5 {
		t.Fatalf("%d of 5 new frames are left", n)
	}
	a, b := d.take(largeClass), d.take(largeClass)
	d.put(b)
	d.put(a)
	d.trim()
	if n := len(d.free[largeClass]); n != 2 || d.take(largeClass) != frames[4] || d.take(largeClass) != frames[3] {
		t.Errorf("%d frames are left, want the two that were used", n)
	}
}

func TestACollectionTrims(t *testing.T) {
	d := newDepot()
	for _, f := range large(4) {
		d.put(f)
	}
	for range 10_000 { // cleanups run soon after a collection
		runtime.GC()
		d.mu.Lock()
		left := len(d.free[largeClass])
		d.mu.Unlock()
		if left == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Error("free frames outlive any number of collections")
}
