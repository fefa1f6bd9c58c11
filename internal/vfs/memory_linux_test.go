package vfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Who does not own a log cannot have its reads untimed: each may then wait for the
// journal, whatever is in memory.
func TestAFileWhoseReadsAreTimedIsNotSaidToBeInMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		t.Fatal(err)
	}
	never := s.Flags&unix.MS_NOATIME != 0 // nothing is timed there
	timed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer timed.Close()
	if _, asked := memory(timed); asked && !never {
		t.Error("it may be sent without word, though to read it is to change it")
	}
	f, err := openUntimed(path, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !untimed(f) || untimed(timed) {
		t.Errorf("opened in both ways: %v, %v", untimed(f), untimed(timed))
	}
}
