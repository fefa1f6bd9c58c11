// Package vfs is the file system as storage needs it: one door that the
// operating system, an in-memory disk with crashes and a fault injector share.
package vfs

import (
	"errors"
	"io"
	"time"
)

// ErrLocked says that another process, or another part of this one, holds a lock.
var ErrLocked = errors.New("another process uses this directory")

// FS is a file system. Paths are slash separated. Missing files are reported
// with an error that is fs.ErrNotExist, existing ones with fs.ErrExist.
type FS interface {
	// Open opens an existing file for reading and writing.
	Open(path string) (File, error)
	// Create opens a file for reading and writing; an existing one is emptied.
	Create(path string) (File, error)
	// Rename replaces newPath atomically.
	Rename(oldPath, newPath string) error
	// Remove removes one file or one empty folder.
	Remove(path string) error
	// RemoveAll removes a folder with all that is in it; none there is no error.
	RemoveAll(path string) error
	// MkdirAll makes the folder and its parents.
	MkdirAll(path string) error
	// ReadDir lists a folder, sorted by name.
	ReadDir(path string) ([]Info, error)
	// Stat describes a file or folder.
	Stat(path string) (Info, error)
	// SyncDir makes the folder's entries (new, renamed, removed) durable.
	SyncDir(path string) error
	// Lock takes an exclusive lock on the file, which it creates. It fails at
	// once, with ErrLocked, when another holder has it. Closing releases it.
	Lock(path string) (io.Closer, error)
}

// File is an open file. Writes say where; there is no current position.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// WriteVecAt writes the buffers one after the other from off on. The slice
	// of buffers may be changed by the call, their bytes are not.
	WriteVecAt(bufs [][]byte, off int64) (int64, error)
	// Truncate sets the size; growth reads as zeroes and takes no space.
	Truncate(size int64) error
	// Sync makes the file's bytes and size durable, not its name.
	Sync() error
	// Size is the size in bytes.
	Size() (int64, error)
}

// Info describes one file or folder.
type Info struct {
	Name    string // without the folder
	Size    int64
	Dir     bool
	ModTime time.Time
}
