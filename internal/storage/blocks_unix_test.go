//go:build unix

package storage_test

import (
	"os"
	"syscall"
)

// blocks is how many blocks of 512 bytes a file takes.
func blocks(fi os.FileInfo) int64 { return fi.Sys().(*syscall.Stat_t).Blocks }
