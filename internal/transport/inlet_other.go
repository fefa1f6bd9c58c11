//go:build !linux

package transport

import (
	"io"
	"net"
)

// inletOf is how to read from a connection.
func inletOf(nc net.Conn) io.Reader { return nc }
