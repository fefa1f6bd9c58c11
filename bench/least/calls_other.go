//go:build !linux

package least

import (
	"io"
	"os"
)

// pass sends a part of a file.
func pass(to, file *os.File, at int64, n int) error {
	_, err := io.Copy(to, io.NewSectionReader(file, at, int64(n)))
	return err
}

// ahead sends what a part of a file follows.
func ahead(to *os.File, b []byte) error {
	_, err := to.Write(b)
	return err
}

// receive reads until b is full.
func receive(from *os.File, b []byte) (int, error) { return io.ReadFull(from, b) }
