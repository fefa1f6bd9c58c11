//go:build linux && !amd64 && !arm64

package transport

import "golang.org/x/sys/unix"

// mover moves a range of a file to a connection that does not block.
type mover struct{ file int }

func newMover(file descriptor) mover { return mover{int(file.Fd())} }

// move is sendfile, and may move less.
func (m *mover) move(conn int, off *int64, n int) (int, error) {
	return unix.Sendfile(conn, m.file, off, n)
}
