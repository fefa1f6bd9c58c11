package ceiling

import (
	"os"
	"slices"
	"time"
)

// syncBytes is what is appended before each sync: one small batch.
const syncBytes = 4096

// Sync appends to a file in the directory and syncs it, so many times, and returns
// the median time of one: what a log that is synced with each batch waits at least.
// The file is removed.
func Sync(dir string, times int) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	buf, took := make([]byte, syncBytes), make([]time.Duration, times)
	for i := range took {
		start := time.Now()
		if _, err := f.Write(buf); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[times/2], nil
}
