package wire

import "io"

// Sink takes the pieces of a response in order. Small things are appended to
// its buffer; records are handed over without copying.
type Sink interface {
	// Buffer is where to append next; SetBuffer takes the result.
	Buffer() []byte
	SetBuffer(b []byte)
	// Bytes adds bytes that stay unchanged until they are sent.
	Bytes(b []byte)
	// File adds n bytes of f from off on; release, if not nil, is called once
	// when they are not needed any more.
	File(f io.ReaderAt, off int64, n int, release func())
}
