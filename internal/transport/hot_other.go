//go:build linux && !amd64 && !arm64

package transport

import "golang.org/x/sys/unix"

// mover moves a range of a file to a connection that does not block.
type mover struct{}

// move is sendfile, and may move less.
func (mover) move(conn, file int, off *int64, n int) (int, error) {
	return unix.Sendfile(conn, file, off, n)
}
