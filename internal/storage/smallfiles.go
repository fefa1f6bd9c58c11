package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/tidemark-log/tidemark/internal/vfs"
)

// maxSmallFile bounds what is read of a file that must be small.
const maxSmallFile = 256 << 20

// readFile reads a whole file.
func readFile(fsys vfs.FS, name string) (b []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxSmallFile {
		return nil, fmt.Errorf("%s: %d bytes are too many", name, size)
	}
	b = make([]byte, size)
	if size > 0 {
		if n, err := f.ReadAt(b, 0); n < len(b) {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return b, nil
}

// writeFile writes a file that is there whole or not at all: a temporary file,
// fsync, rename, fsync of the folder (R8.7).
func writeFile(fsys vfs.FS, name string, b []byte) error {
	tmp := name + tmpSuffix
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", tmp, err)
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}

// missing reports whether an error says that a file is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
