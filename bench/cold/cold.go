// Package cold takes files out of the page cache, so that the next read comes
// from the disk.
package cold

import (
	"fmt"
	"io"
	"os"
	"time"
)

// residue is the part of a file that may stay in memory: pages that the kernel
// held just then.
const residue = 0.02

// Drop syncs the files and takes them out of the page cache. It fails if they stay
// there, as those in memory (tmpfs) do, which are never cold.
func Drop(files ...string) error {
	var size, left int64
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		n, kept, err := drop(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("take %s out of the page cache: %w", name, err)
		}
		size, left = size+n, left+kept
	}
	if float64(left) > residue*float64(size) {
		return fmt.Errorf("%d MB of %d stay in memory: files of tmpfs, or mapped ones, cannot be cold", left/1e6, size/1e6)
	}
	return nil
}

// drop returns the size of the file and how much of it is still in memory.
func drop(f *os.File) (size, left int64, err error) {
	if err := f.Sync(); err != nil {
		return 0, 0, err
	}
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return 0, 0, err
	}
	if err := forget(f); err != nil {
		return 0, 0, err
	}
	left, err = resident(f, st.Size())
	return st.Size(), left, err
}

// Read drops the files, reads them one after the other in large pieces, and
// returns the rate in MB/s: what the disk gives at best.
func Read(files ...string) (float64, error) {
	if err := Drop(files...); err != nil {
		return 0, err
	}
	buf, sum := make([]byte, 1<<20), int64(0)
	start := time.Now()
	for _, name := range files {
		n, err := readAll(name, buf)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return float64(sum) / 1e6 / time.Since(start).Seconds(), nil
}

func readAll(name string, buf []byte) (sum int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for {
		n, err := f.Read(buf)
		sum += int64(n)
		if err == io.EOF {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
	}
}
