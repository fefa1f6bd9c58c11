package cold

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestWhatWasReadIsInMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	name := filepath.Join(t.TempDir(), "a")
	const size = 1<<20 + 5
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := resident(f, size); err != nil || n < size {
		t.Errorf("%d bytes of %d, %v", n, size, err)
	}
	n, err := readAll(name, make([]byte, 1000))
	if n != size || err != nil {
		t.Errorf("%d bytes were read, %v", n, err)
	}
}

// Files in memory are never cold, and Drop must not pretend that they are.
func TestFilesInMemoryAreRefused(t *testing.T) {
	if st, err := os.Stat("/dev/shm"); err != nil || !st.IsDir() {
		return
	}
	f, err := os.CreateTemp("/dev/shm", "cold-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := Drop(f.Name()); err != nil {
		t.Errorf("an empty file: %v", err)
	}
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := Drop(f.Name()); err == nil || !strings.Contains(err.Error(), "stay in memory") {
		t.Errorf("%v", err)
	}
	if _, err := Read(filepath.Join(filepath.Dir(f.Name()), "cold-none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
