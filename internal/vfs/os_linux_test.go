package vfs_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/internal/vfs"
)

// Reading a log is no change of it, even right after it was written, when most file
// systems note the time of a reading.
func TestReadingAFileDoesNotTouchIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := vfs.OS.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := time.Unix(1_000_000, 0)
	if _, err := f.WriteAt([]byte("abc"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, old, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 3), 0); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if at := info.Sys().(*syscall.Stat_t).Atim; int64(at.Sec) != old.Unix() {
		t.Errorf("it was last read at %v", time.Unix(int64(at.Sec), int64(at.Nsec)))
	}
}

// What reading may take is known of a few file systems, and not claimed of others.
func TestAFileTellsWhatReadingItTakes(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "tidemark-")
	if err != nil {
		shm = t.TempDir() // this machine has no such directory
	}
	defer os.RemoveAll(shm)
	for _, dir := range []string{t.TempDir(), shm} {
		f, err := vfs.OS.Create(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		all, asked := f.(interface{ Memory() (all, asked bool) }).Memory()
		if all != (uint32(s.Type) == 0x1021994) || asked != (uint32(s.Type) == 0xef53 || uint32(s.Type) == 0x9123683e) {
			t.Errorf("a file on a file system of type %#x says %v, %v", s.Type, all, asked)
		}
	}
}
