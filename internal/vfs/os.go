package vfs

import (
	"errors"
	"io"
	"os"
)

// OS is the file system of the machine.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Open(path string) (File, error) { return openOS(path, os.O_RDWR) }

func (osFS) Create(path string) (File, error) {
	return openOS(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func openOS(path string, flags int) (File, error) {
	f, err := openUntimed(path, flags)
	if errors.Is(err, os.ErrPermission) && flags == os.O_RDWR {
		f, err = openUntimed(path, os.O_RDONLY)
	}
	if err != nil {
		return nil, err
	}
	file := &osFile{File: f}
	file.all, file.asked = memory(f)
	return file, nil
}

func (osFS) Rename(oldPath, newPath string) error { return os.Rename(oldPath, newPath) }
func (osFS) Remove(path string) error             { return os.Remove(path) }
func (osFS) RemoveAll(path string) error          { return os.RemoveAll(path) }
func (osFS) MkdirAll(path string) error           { return os.MkdirAll(path, 0o755) }

func (osFS) ReadDir(path string) ([]Info, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		fi, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, infoOf(fi))
	}
	return infos, nil
}

func (osFS) Stat(path string) (Info, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	return infoOf(fi), nil
}

func infoOf(fi os.FileInfo) Info {
	return Info{Name: fi.Name(), Size: fi.Size(), Dir: fi.IsDir(), ModTime: fi.ModTime()}
}

func (osFS) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (osFS) Lock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, f.Close())
	}
	return f, nil
}

// osFile adds vectored writes and data-only syncs to a file.
type osFile struct {
	*os.File
	all, asked bool // in memory
}

// Memory tells what reading the file may take: nothing but memory for all of it; or,
// if asked, that the kernel can tell what of it is in memory, and reads that without a
// wait. Neither is known of most file systems.
func (f *osFile) Memory() (all, asked bool) { return f.all, f.asked }

func (f *osFile) WriteVecAt(bufs [][]byte, off int64) (int64, error) {
	return writeVec(f.File, bufs, off)
}

func (f *osFile) Sync() error { return syncData(f.File) }

func (f *osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// writeEach writes the buffers one by one, where there is no vectored write.
func writeEach(w io.WriterAt, bufs [][]byte, off int64) (int64, error) {
	var done int64
	for _, b := range bufs {
		n, err := w.WriteAt(b, off+done)
		done += int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
