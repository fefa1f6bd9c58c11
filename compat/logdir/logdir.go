// Package logdir compares replicas by the files in which brokers keep them.
package logdir

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Sum is a hash of all segments of a partition's folder, one after the other, and
// their size in bytes.
func Sum(dir string) (string, int64, error) {
	if _, err := os.Stat(dir); err != nil {
		return "", 0, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return "", 0, err
	}
	slices.Sort(files)
	h := sha256.New()
	var size int64
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", 0, err
		}
		n, err := io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", 0, err
		}
		size += n
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
