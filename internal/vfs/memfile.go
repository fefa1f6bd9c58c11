package vfs

import (
	"io/fs"
	"slices"
)

// memFile is an open file of a Mem.
type memFile struct {
	m      *Mem
	n      *node
	closed bool
}

// enter locks the disk; the caller unlocks it, also after an error.
func (f *memFile) enter(op string) error {
	f.m.mu.Lock()
	if f.closed {
		return &fs.PathError{Op: op, Err: fs.ErrClosed}
	}
	return nil
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	err := f.enter("read")
	defer f.m.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return f.n.live.readAt(b, off)
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	err := f.enter("write")
	defer f.m.mu.Unlock()
	if err != nil || len(b) == 0 {
		return 0, err
	}
	f.n.live.write(b, off)
	f.n.writes = append(f.n.writes, write{off: off, bytes: slices.Clone(b)})
	f.n.mod = f.m.now()
	return len(b), nil
}

func (f *memFile) WriteVecAt(bufs [][]byte, off int64) (int64, error) {
	n, err := f.WriteAt(slices.Concat(bufs...), off)
	return int64(n), err
}

func (f *memFile) Truncate(size int64) error {
	err := f.enter("truncate")
	defer f.m.mu.Unlock()
	if err != nil {
		return err
	}
	f.n.live.truncate(size)
	f.n.writes = append(f.n.writes, write{off: size})
	f.n.mod = f.m.now()
	return nil
}

func (f *memFile) Sync() error {
	err := f.enter("sync")
	defer f.m.mu.Unlock()
	if err != nil {
		return err
	}
	for _, w := range f.n.writes {
		f.n.durable.apply(w)
	}
	f.n.writes = nil
	return nil
}

// forget has the unsynced bytes of a file of a Mem never become durable.
func forget(file File) {
	switch f := file.(type) {
	case *memFile:
		f.m.mu.Lock()
		defer f.m.mu.Unlock()
		f.n.writes = nil
	case *faultyFile:
		forget(f.File)
	case *revocableFile:
		forget(f.file)
	}
}

func (f *memFile) Size() (int64, error) {
	err := f.enter("stat")
	defer f.m.mu.Unlock()
	return f.n.live.size, err
}

func (f *memFile) Close() error {
	err := f.enter("close")
	defer f.m.mu.Unlock()
	f.closed = true
	return err
}
