package vfs

import (
	"io"
	"slices"
)

// OpKind names an operation for a fault hook.
type OpKind string

// The operations that a fault hook sees.
const (
	OpOpen      OpKind = "open"
	OpCreate    OpKind = "create"
	OpRename    OpKind = "rename"
	OpRemove    OpKind = "remove"
	OpRemoveAll OpKind = "removeall"
	OpMkdir     OpKind = "mkdir"
	OpReadDir   OpKind = "readdir"
	OpStat      OpKind = "stat"
	OpSyncDir   OpKind = "syncdir"
	OpLock      OpKind = "lock"
	OpRead      OpKind = "read"
	OpWrite     OpKind = "write"
	OpTruncate  OpKind = "truncate"
	OpSync      OpKind = "sync"
)

// Changes reports whether the operation changes or settles what is on disk.
func (k OpKind) Changes() bool {
	switch k {
	case OpOpen, OpReadDir, OpStat, OpLock, OpRead:
		return false
	}
	return true
}

// Op is one operation as a fault hook sees it. Off is the position of a read or
// write or the new size of a truncation, Len the bytes.
type Op struct {
	Kind OpKind
	Path string
	Off  int64
	Len  int
}

// ShortWrite, as the error of a fault hook for a write, lets the first Bytes of it
// through before it fails with Err.
type ShortWrite struct {
	Bytes int
	Err   error
}

// Error is that of Err.
func (s *ShortWrite) Error() string { return s.Err.Error() }

// Unwrap is Err.
func (s *ShortWrite) Unwrap() error { return s.Err }

// LostSync, as the error of a fault hook for a sync of a file of a Mem, has what was
// to sync never become durable, not by the next sync either, as on Linux. It can
// still be read until the power is cut.
type LostSync struct{ Err error }

// Error is that of Err.
func (l *LostSync) Error() string { return l.Err.Error() }

// Unwrap is Err.
func (l *LostSync) Unwrap() error { return l.Err }

// Faulty passes every operation on to fs, but asks hook first: an error is
// returned in place of the operation, which then has no effect, but for a
// ShortWrite and a LostSync. No lock is held while the hook runs, which may wait
// and may be called from several goroutines.
func Faulty(fs FS, hook func(Op) error) FS { return &faulty{fs: fs, hook: hook} }

type faulty struct {
	fs   FS
	hook func(Op) error
}

func (f *faulty) Open(path string) (File, error) {
	return f.file(Op{Kind: OpOpen, Path: path}, f.fs.Open)
}

func (f *faulty) Create(path string) (File, error) {
	return f.file(Op{Kind: OpCreate, Path: path}, f.fs.Create)
}

func (f *faulty) file(op Op, open func(string) (File, error)) (File, error) {
	if err := f.hook(op); err != nil {
		return nil, err
	}
	file, err := open(op.Path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, path: op.Path, hook: f.hook}, nil
}

func (f *faulty) Rename(oldPath, newPath string) error {
	if err := f.hook(Op{Kind: OpRename, Path: newPath}); err != nil {
		return err
	}
	return f.fs.Rename(oldPath, newPath)
}

func (f *faulty) Remove(path string) error {
	if err := f.hook(Op{Kind: OpRemove, Path: path}); err != nil {
		return err
	}
	return f.fs.Remove(path)
}

func (f *faulty) RemoveAll(path string) error {
	if err := f.hook(Op{Kind: OpRemoveAll, Path: path}); err != nil {
		return err
	}
	return f.fs.RemoveAll(path)
}

func (f *faulty) MkdirAll(path string) error {
	if err := f.hook(Op{Kind: OpMkdir, Path: path}); err != nil {
		return err
	}
	return f.fs.MkdirAll(path)
}

func (f *faulty) ReadDir(path string) ([]Info, error) {
	if err := f.hook(Op{Kind: OpReadDir, Path: path}); err != nil {
		return nil, err
	}
	return f.fs.ReadDir(path)
}

func (f *faulty) Stat(path string) (Info, error) {
	if err := f.hook(Op{Kind: OpStat, Path: path}); err != nil {
		return Info{}, err
	}
	return f.fs.Stat(path)
}

func (f *faulty) SyncDir(path string) error {
	if err := f.hook(Op{Kind: OpSyncDir, Path: path}); err != nil {
		return err
	}
	return f.fs.SyncDir(path)
}

func (f *faulty) Lock(path string) (io.Closer, error) {
	if err := f.hook(Op{Kind: OpLock, Path: path}); err != nil {
		return nil, err
	}
	return f.fs.Lock(path)
}

type faultyFile struct {
	File
	path string
	hook func(Op) error
}

func (f *faultyFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.hook(Op{Kind: OpRead, Path: f.path, Off: off, Len: len(b)}); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.hook(Op{Kind: OpWrite, Path: f.path, Off: off, Len: len(b)}); err != nil {
		return f.short(b, off, err)
	}
	return f.File.WriteAt(b, off)
}

func (f *faultyFile) WriteVecAt(bufs [][]byte, off int64) (int64, error) {
	n := 0
	for _, b := range bufs {
		n += len(b)
	}
	if err := f.hook(Op{Kind: OpWrite, Path: f.path, Off: off, Len: n}); err != nil {
		n, err := f.short(slices.Concat(bufs...), off, err)
		return int64(n), err
	}
	return f.File.WriteVecAt(bufs, off)
}

// short writes what a failed write still wrote.
func (f *faultyFile) short(b []byte, off int64, err error) (int, error) {
	short, ok := err.(*ShortWrite)
	if !ok {
		return 0, err
	}
	n, werr := f.File.WriteAt(b[:min(short.Bytes, len(b))], off)
	if werr != nil {
		return n, werr
	}
	return n, short.Err
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.hook(Op{Kind: OpTruncate, Path: f.path, Off: size}); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if err := f.hook(Op{Kind: OpSync, Path: f.path}); err != nil {
		if lost, ok := err.(*LostSync); ok {
			forget(f.File)
			return lost.Err
		}
		return err
	}
	return f.File.Sync()
}
