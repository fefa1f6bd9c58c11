package storage

import (
	"sync"

	"github.com/tidemark-log/tidemark/internal/vfs"
)

// fileCache bounds how many files a directory holds open: files open when they
// are needed, and the one unused for longest (by the clock algorithm) closes.
// Files in use are never closed, so the bound may be passed by as many.
type fileCache struct {
	fs   vfs.FS
	max  int
	mu   sync.Mutex
	open []*file
	hand int
}

// file is a file that is open only while it must be. Its path changes when it is
// renamed; after kill nobody opens it any more.
type file struct {
	c    *fileCache
	mu   sync.Mutex
	path string
	f    vfs.File
	refs int
	used bool
	dead bool
}

func (c *fileCache) file(path string) *file { return &file{c: c, path: path} }

// acquire returns the open file, which stays open until release.
func (f *file) acquire() (vfs.File, error) {
	f.mu.Lock()
	if f.f != nil {
		f.refs++
		f.used = true
		h := f.f
		f.mu.Unlock()
		return h, nil
	}
	path, dead := f.path, f.dead
	f.mu.Unlock()
	if dead {
		return nil, ErrClosed
	}
	h, err := f.c.fs.Open(path)
	if err != nil {
		return nil, err
	}
	return f.adopt(h)
}

// create makes the file, or empties the one there, and leaves it open.
func (f *file) create() error {
	h, err := f.c.fs.Create(f.path)
	if err != nil {
		return err
	}
	if _, err := f.adopt(h); err != nil {
		return err
	}
	f.release()
	return nil
}

// adopt keeps a file just opened, unless another goroutine was faster.
func (f *file) adopt(h vfs.File) (vfs.File, error) {
	f.mu.Lock()
	if f.f != nil || f.dead {
		kept := f.f
		if kept != nil {
			f.refs++
		}
		f.mu.Unlock()
		if err := h.Close(); err != nil {
			return nil, err
		}
		if kept == nil {
			return nil, ErrClosed
		}
		return kept, nil
	}
	f.f, f.refs, f.used = h, 1, true
	f.mu.Unlock()
	return h, f.c.add(f)
}

func (f *file) release() {
	f.mu.Lock()
	f.refs--
	gone := f.dead && f.refs == 0
	f.mu.Unlock()
	if gone {
		f.c.drop(f)
	}
}

// rest closes the file until it is needed again, if nobody uses it now.
func (f *file) rest() {
	f.mu.Lock()
	f.used = false
	f.mu.Unlock()
	f.c.drop(f)
}

// kill closes the file once nobody uses it.
func (f *file) kill() {
	f.mu.Lock()
	f.dead = true
	idle := f.refs == 0
	f.mu.Unlock()
	if idle {
		f.c.drop(f)
	}
}

// renamed tells the file its new path.
func (f *file) renamed(path string) {
	f.mu.Lock()
	f.path = path
	f.mu.Unlock()
}

// add counts an open file and closes others above the bound.
func (c *fileCache) add(f *file) error {
	c.mu.Lock()
	c.open = append(c.open, f)
	var victims []vfs.File
	for steps := 2 * len(c.open); len(c.open) > c.max && steps > 0; steps-- {
		c.hand %= len(c.open)
		v := c.open[c.hand]
		if h := v.evict(); h != nil {
			victims = append(victims, h)
			c.remove(c.hand)
			continue
		}
		c.hand++
	}
	c.mu.Unlock()
	var failed error
	for _, h := range victims {
		if err := h.Close(); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// evict takes the open file out if nobody used it since the last sweep.
func (f *file) evict() vfs.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refs > 0 || f.f == nil {
		return nil
	}
	if f.used {
		f.used = false
		return nil
	}
	h := f.f
	f.f = nil
	return h
}

// remove takes entry i out of the list; the order does not matter.
func (c *fileCache) remove(i int) {
	last := len(c.open) - 1
	c.open[i] = c.open[last]
	c.open[last] = nil
	c.open = c.open[:last]
}

// drop closes a file that nobody uses. What it wrote is safe only by sync, so an
// error of close has nothing to add.
func (c *fileCache) drop(f *file) {
	c.mu.Lock()
	f.mu.Lock()
	h := f.f
	if f.refs > 0 {
		h = nil
	}
	if h != nil {
		f.f = nil
		for i, o := range c.open {
			if o == f {
				c.remove(i)
				break
			}
		}
	}
	f.mu.Unlock()
	c.mu.Unlock()
	if h != nil {
		_ = h.Close()
	}
}

// count is the number of open files.
func (c *fileCache) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
