package vfs

import (
	"errors"
	"io"
	"io/fs"
	"sync"
)

// ErrRevoked says that the process which a file system was given to has ended.
var ErrRevoked = errors.New("the process has ended")

// Revocable is fs as one process sees it. After revoke, which releases the locks,
// every operation through it, also on files opened before, fails with ErrRevoked
// and changes nothing: the process was killed, and what it wrote without a sync
// lives on in fs. An operation that waits in fs meanwhile still takes place.
func Revocable(fs FS) (_ FS, revoke func()) {
	r := &revocable{fs: fs, locks: map[*revocableLock]bool{}}
	return r, r.revoke
}

type revocable struct {
	fs    FS
	mu    sync.Mutex
	ended bool
	locks map[*revocableLock]bool
}

func (r *revocable) revoke() {
	r.mu.Lock()
	r.ended = true
	locks := r.locks
	r.locks = nil
	r.mu.Unlock()
	for l := range locks {
		_ = l.Closer.Close() // the process that would hear of it is gone
	}
}

func (r *revocable) check(op, path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return &fs.PathError{Op: op, Path: path, Err: ErrRevoked}
	}
	return nil
}

func (r *revocable) Open(path string) (File, error) { return r.file("open", path, r.fs.Open) }

func (r *revocable) Create(path string) (File, error) { return r.file("create", path, r.fs.Create) }

func (r *revocable) file(op, path string, open func(string) (File, error)) (File, error) {
	if err := r.check(op, path); err != nil {
		return nil, err
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return &revocableFile{file: f, r: r, path: path}, nil
}

func (r *revocable) Rename(oldPath, newPath string) error {
	if err := r.check("rename", oldPath); err != nil {
		return err
	}
	return r.fs.Rename(oldPath, newPath)
}

func (r *revocable) Remove(path string) error { return r.path("remove", path, r.fs.Remove) }

func (r *revocable) RemoveAll(path string) error { return r.path("remove", path, r.fs.RemoveAll) }

func (r *revocable) MkdirAll(path string) error { return r.path("mkdir", path, r.fs.MkdirAll) }

func (r *revocable) SyncDir(path string) error { return r.path("syncdir", path, r.fs.SyncDir) }

func (r *revocable) path(op, path string, do func(string) error) error {
	if err := r.check(op, path); err != nil {
		return err
	}
	return do(path)
}

func (r *revocable) ReadDir(path string) ([]Info, error) {
	if err := r.check("readdir", path); err != nil {
		return nil, err
	}
	return r.fs.ReadDir(path)
}

func (r *revocable) Stat(path string) (Info, error) {
	if err := r.check("stat", path); err != nil {
		return Info{}, err
	}
	return r.fs.Stat(path)
}

func (r *revocable) Lock(path string) (io.Closer, error) {
	if err := r.check("lock", path); err != nil {
		return nil, err
	}
	c, err := r.fs.Lock(path)
	if err != nil {
		return nil, err
	}
	l := &revocableLock{Closer: c, r: r}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: path, Err: ErrRevoked}, c.Close())
	}
	r.locks[l] = true
	return l, nil
}

type revocableLock struct {
	io.Closer
	r *revocable
}

func (l *revocableLock) Close() error {
	l.r.mu.Lock()
	held := l.r.locks[l]
	delete(l.r.locks, l)
	l.r.mu.Unlock()
	if !held {
		return nil
	}
	return l.Closer.Close()
}

type revocableFile struct {
	file File
	r    *revocable
	path string
}

func (f *revocableFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.r.check("read", f.path); err != nil {
		return 0, err
	}
	return f.file.ReadAt(b, off)
}

func (f *revocableFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.r.check("write", f.path); err != nil {
		return 0, err
	}
	return f.file.WriteAt(b, off)
}

func (f *revocableFile) WriteVecAt(bufs [][]byte, off int64) (int64, error) {
	if err := f.r.check("write", f.path); err != nil {
		return 0, err
	}
	return f.file.WriteVecAt(bufs, off)
}

func (f *revocableFile) Truncate(size int64) error {
	if err := f.r.check("truncate", f.path); err != nil {
		return err
	}
	return f.file.Truncate(size)
}

func (f *revocableFile) Sync() error {
	if err := f.r.check("sync", f.path); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *revocableFile) Size() (int64, error) {
	if err := f.r.check("stat", f.path); err != nil {
		return 0, err
	}
	return f.file.Size()
}

// Close gives the file back, also after revoke.
func (f *revocableFile) Close() error { return f.file.Close() }
