//go:build !linux

package vfs

import "os"

func writeVec(f *os.File, bufs [][]byte, off int64) (int64, error) { return writeEach(f, bufs, off) }

func syncData(f *os.File) error { return f.Sync() }
