package vfs

import (
	"io/fs"
	"path"
	"slices"
	"sync"
)

// Fault is a rule by which operations fail.
type Fault struct {
	Kind OpKind // "": any
	// Path is a pattern of path.Match for the last element of the path, or for
	// all of it when it begins with a slash; "": any.
	Path string
	Err  error // such as syscall.ENOSPC
	// After lets so many operations that fit pass first.
	After int
	// Times is how many then fail; 0: all of them.
	Times int
	// Bytes of a failed write are written all the same.
	Bytes int
}

// Faults is a set of rules, for the hook of a Faulty file system. It may be
// changed at any time.
type Faults struct {
	mu    sync.Mutex
	rules []*Fault
}

// Add adds a rule; the first one that fits an operation counts.
func (f *Faults) Add(rule Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &rule)
}

// Clear drops all rules.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Check returns the error of an operation, nil when no rule has it fail. A write
// fails short, a sync loses what was to sync.
func (f *Faults) Check(op Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.rules {
		if !r.fits(op) {
			continue
		}
		if r.After > 0 {
			r.After--
			return nil
		}
		if r.Times == 1 {
			f.rules = slices.Delete(slices.Clone(f.rules), i, i+1)
		}
		r.Times--
		return r.failure(op)
	}
	return nil
}

func (r *Fault) fits(op Op) bool {
	if r.Kind != "" && r.Kind != op.Kind {
		return false
	}
	if r.Path == "" {
		return true
	}
	name := op.Path
	if r.Path[0] != '/' {
		name = path.Base(name)
	}
	ok, err := path.Match(r.Path, name)
	return ok && err == nil
}

func (r *Fault) failure(op Op) error {
	err := error(&fs.PathError{Op: string(op.Kind), Path: op.Path, Err: r.Err})
	switch op.Kind {
	case OpWrite:
		return &ShortWrite{Bytes: r.Bytes, Err: err}
	case OpSync:
		return &LostSync{Err: err}
	}
	return err
}

// Rot flips bits of the byte at a position of a stored file: mask says which.
// Whoever reads it is not told. Errors: fs.ErrNotExist, or fs.ErrInvalid outside
// the file.
func (m *Mem) Rot(name string, off int64, mask byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil || n.dir {
		return &fs.PathError{Op: "rot", Path: name, Err: fs.ErrNotExist}
	}
	var b [1]byte
	if off < 0 || off >= n.live.size {
		return &fs.PathError{Op: "rot", Path: name, Err: fs.ErrInvalid}
	}
	_, _ = n.live.readAt(b[:], off) // the byte is there
	b[0] ^= mask
	n.live.write(b[:], off)
	if len(n.writes) > 0 {
		n.writes = append(n.writes, write{off: off, bytes: b[:]})
	} else {
		n.durable.write(b[:], off)
	}
	return nil
}
