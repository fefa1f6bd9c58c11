//go:build !linux

package vfs

import "os"

func writeVec(f *os.File, bufs [][]byte, off int64) (int64, error) { return writeEach(f, bufs, off) }

func syncData(f *os.File) error { return f.Sync() }

func openUntimed(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o644) }

func memory(*os.File) (all, asked bool) { return false, false }
