package storage

import (
	"encoding/binary"
	"io"
	"sync"
)

// Sizes of index entries (R8.3-R8.5).
const (
	offsetEntrySize = 8  // relative offset int32, position int32
	timeEntrySize   = 12 // timestamp int64, relative offset int32
)

// pendingEntries is how many entries wait in memory before they are written. A
// killed process loses them, and recovery reads that segment anyway.
const pendingEntries = 64

// index is a file of ascending entries of one size, sparse up to its maximum
// while its segment is active. The writer adds, any goroutine searches.
type index struct {
	f       *file
	size    int // bytes of an entry
	mu      sync.Mutex
	n       int    // entries in the file
	pending []byte // entries that come after them
	grown   bool   // the file has its maximum size
}

func (x *index) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.n + len(x.pending)/x.size
}

// add appends an entry. maxBytes is the size that an active index file has.
func (x *index) add(entry []byte, maxBytes int32) error {
	x.mu.Lock()
	x.pending = append(x.pending, entry...)
	full := len(x.pending) >= pendingEntries*x.size
	x.mu.Unlock()
	if !full && x.grown {
		return nil
	}
	return x.write(maxBytes)
}

// write puts the pending entries into the file, which grows first.
func (x *index) write(maxBytes int32) error {
	f, err := x.f.acquire()
	if err != nil {
		return err
	}
	defer x.f.release()
	if size := int64(maxBytes) / int64(x.size) * int64(x.size); !x.grown && size > 0 {
		if err := f.Truncate(max(size, int64(x.count()*x.size))); err != nil {
			return err
		}
		x.grown = true
	}
	if len(x.pending) == 0 { // only the writer changes it
		return nil
	}
	if _, err := f.WriteAt(x.pending, int64(x.n*x.size)); err != nil {
		return err
	}
	x.mu.Lock()
	x.n += len(x.pending) / x.size
	x.pending = x.pending[:0]
	x.mu.Unlock()
	return nil
}

// trim writes what is pending and cuts the file behind its last entry.
func (x *index) trim() error {
	if len(x.pending) == 0 && !x.grown {
		return nil
	}
	if err := x.write(0); err != nil {
		return err
	}
	f, err := x.f.acquire()
	if err != nil {
		return err
	}
	defer x.f.release()
	x.mu.Lock()
	x.grown, x.pending = false, nil
	x.mu.Unlock()
	return f.Truncate(int64(x.n * x.size))
}

// cut keeps the first n entries.
func (x *index) cut(n int) error {
	x.mu.Lock()
	if n >= x.n {
		x.pending = x.pending[:min(len(x.pending), (n-x.n)*x.size)]
		x.mu.Unlock()
		return nil
	}
	x.n, x.pending = n, x.pending[:0]
	x.mu.Unlock()
	f, err := x.f.acquire()
	if err != nil {
		return err
	}
	defer x.f.release()
	x.grown = false
	return f.Truncate(int64(n * x.size))
}

// entryKey is the number by which entries are ordered: one of those below.
type entryKey func(entry []byte) int64

func keyRelative(e []byte) int64 { return int64(int32(binary.BigEndian.Uint32(e))) }
func keyPosition(e []byte) int64 { return int64(int32(binary.BigEndian.Uint32(e[4:]))) }
func keyTime(e []byte) int64     { return int64(binary.BigEndian.Uint64(e)) }

// floor copies into entry the last entry whose key is <= target and returns its
// number, -1 when there is none. entry has room for one.
func (x *index) floor(key entryKey, target int64, entry []byte) (int, error) {
	entry = entry[:x.size]
	x.mu.Lock()
	n := x.n
	if len(x.pending) > 0 && key(x.pending) <= target {
		lo, hi := 0, len(x.pending)/x.size
		for hi-lo > 1 {
			if mid := (lo + hi) / 2; key(x.pending[mid*x.size:]) <= target {
				lo = mid
			} else {
				hi = mid
			}
		}
		copy(entry, x.pending[lo*x.size:])
		x.mu.Unlock()
		return n + lo, nil
	}
	x.mu.Unlock()
	if n == 0 {
		return -1, nil
	}
	f, err := x.f.acquire()
	if err != nil {
		return -1, err
	}
	defer x.f.release()
	return x.search(f, n, key, target, entry)
}

// search looks through the n entries of the file.
func (x *index) search(f io.ReaderAt, n int, key entryKey, target int64, entry []byte) (int, error) {
	read := func(i int) error {
		got, err := f.ReadAt(entry, int64(i*x.size))
		if got == x.size {
			return nil
		}
		if err == nil || err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	lo, hi := -1, n
	for hi-lo > 1 {
		mid := int(uint(lo+hi) / 2)
		if lo < 0 && hi == n {
			mid = n - 1 // most look for the end
		}
		if err := read(mid); err != nil {
			return -1, err
		}
		if key(entry) <= target {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo < 0 {
		return -1, nil
	}
	return lo, read(lo)
}

// last copies the last entry and reports false when there is none.
func (x *index) last(entry []byte) (bool, error) {
	x.mu.Lock()
	if n := len(x.pending); n > 0 {
		copy(entry[:x.size], x.pending[n-x.size:])
		x.mu.Unlock()
		return true, nil
	}
	n := x.n
	x.mu.Unlock()
	if n == 0 {
		return false, nil
	}
	f, err := x.f.acquire()
	if err != nil {
		return false, err
	}
	defer x.f.release()
	if got, err := f.ReadAt(entry[:x.size], int64((n-1)*x.size)); got < x.size {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return false, err
	}
	return true, nil
}

// sync makes the file durable.
func (f *file) sync() error {
	h, err := f.acquire()
	if err != nil {
		return err
	}
	defer f.release()
	return h.Sync()
}
