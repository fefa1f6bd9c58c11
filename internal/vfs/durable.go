package vfs

import (
	"path"
)

// MakeDurably makes a folder and its parents, and sees to it that a power cut does
// not take them away again: the name of each in its parent is synced. Folders that
// exist are synced too, for a process that was killed may have made them; where a
// parent further up existed and cannot be synced, for instance for want of rights,
// that is no error.
func MakeDurably(files FS, dir string) error {
	fresh := map[string]bool{}
	var names []string // the innermost first
	for at := path.Clean(dir); at != path.Dir(at); at = path.Dir(at) {
		_, err := files.Stat(at)
		fresh[at] = err != nil || len(names) == 0
		names = append(names, at)
	}
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	for _, at := range names {
		if err := files.SyncDir(path.Dir(at)); err != nil && fresh[at] {
			return err
		}
	}
	return nil
}
