package transport

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/wire"
)

// Response is one answer. Layout is called once, in the connection's writer
// task, when all earlier answers are on their way: it may read files. An
// error closes the connection. A Response that holds resources also implements
// Discarder.
type Response interface {
	Layout(l *Layout) error
}

// Discarder is a Response that must be told when it is dropped without Layout,
// for the connection is gone.
type Discarder interface {
	Discard()
}

// Message makes a Response of a kmsg response, whose version must be set.
func Message(resp kmsg.Response) Response { return message{resp} }

type message struct{ resp kmsg.Response }

func (m message) Layout(l *Layout) error {
	l.SetBuffer(m.resp.AppendTo(l.Buffer()))
	return nil
}

// Fetch makes a Response of a fetch response. It allocates nothing.
func Fetch(r *wire.FetchResponse) Response { return (*fetch)(r) }

type fetch wire.FetchResponse

func (f *fetch) Layout(l *Layout) error {
	(*wire.FetchResponse)(f).Layout(l)
	return nil
}

func (f *fetch) Discard() { (*wire.FetchResponse)(f).Discard() }

// Layout collects the pieces of one or several responses: bytes that were
// appended to its own buffer, bytes of others, ranges of files. The size
// prefixes and response headers are written by the connection.
type Layout struct {
	buf    []byte // own bytes of all pieces
	open   int    // where the piece under construction begins in buf
	pieces []piece
	total  int
}

// piece is bytes [from, to) of Layout.buf, or other bytes, or a file's range.
type piece struct {
	from, to int
	bytes    []byte
	file     io.ReaderAt
	off      int64
	n        int
	release  func()
}

var layouts = sync.Pool{New: func() any { return new(Layout) }}

// keepBuffer is the largest buffer that a pooled layout keeps.
const keepBuffer = 1 << 20

var _ wire.Sink = (*Layout)(nil)

// Buffer is where the next bytes are to be appended; give the result to
// SetBuffer. Do not keep it across other calls.
func (l *Layout) Buffer() []byte { return l.buf }

// SetBuffer takes what was appended to Buffer.
func (l *Layout) SetBuffer(b []byte) { l.buf = b }

// Bytes adds bytes without copying; they must not change until the connection
// sent them.
func (l *Layout) Bytes(b []byte) {
	l.flush()
	l.pieces = append(l.pieces, piece{bytes: b, n: len(b)})
	l.total += len(b)
}

// File adds n bytes of f from off on. They are read while the response is
// sent; a failed or short read closes the connection, as the size is told by
// then. release, if not nil, is called once, when f is not needed any more.
func (l *Layout) File(f io.ReaderAt, off int64, n int, release func()) {
	l.flush()
	l.pieces = append(l.pieces, piece{file: f, off: off, n: n, release: release})
	l.total += n
}

func (l *Layout) flush() {
	if n := len(l.buf) - l.open; n > 0 {
		l.pieces = append(l.pieces, piece{from: l.open, to: len(l.buf), n: n})
		l.total += n
	}
	l.open = len(l.buf)
}

// add lays one response out behind the earlier ones.
func (l *Layout) add(key, version int16, correlationID int32, resp Response) error {
	l.flush()
	start, before := len(l.buf), l.total
	l.buf = append(l.buf, 0, 0, 0, 0)
	l.buf = wire.AppendResponseHeader(l.buf, key, version, correlationID)
	if err := resp.Layout(l); err != nil {
		return err
	}
	l.flush()
	size := l.total - before - 4
	if size > 1<<31-1 {
		return fmt.Errorf("a response of %d bytes", size)
	}
	binary.BigEndian.PutUint32(l.buf[start:], uint32(size))
	return nil
}

// reset releases what is pinned and makes l ready for the next responses.
func (l *Layout) reset() {
	for i := range l.pieces {
		if r := l.pieces[i].release; r != nil {
			r()
		}
	}
	clear(l.pieces)
	l.pieces = l.pieces[:0]
	l.open, l.total = 0, 0
	if l.buf = l.buf[:0]; cap(l.buf) > keepBuffer {
		l.buf = nil
	}
}

// sendChunk is how many bytes go into one write at most: a slow client is cut
// only if it takes fewer within the stall limit.
const sendChunk = 256 << 10

// maxVectors keeps one writev below the kernel's limit of pieces.
const maxVectors = 512

// directMin is from which size on the kernel moves a range of a file by itself:
// below it, one write of everything costs less.
const directMin = 32 << 10

// sender writes a layout to a connection: the one place where response bytes
// leave. Small ranges of files are read into a pooled buffer, then everything goes
// out in few vectored writes. Large ones are not read here, where the kernel can
// move them from the page cache.
type sender struct {
	vectors net.Buffers
	queued  int // bytes in vectors
	chunk   []byte
	used    int // of chunk, by file ranges in vectors
}

var senders = sync.Pool{New: func() any { return &sender{chunk: make([]byte, sendChunk)} }}

// send writes all pieces. before is called ahead of every write, to extend
// the deadline. direct is the route of files to w, if there is one.
func (s *sender) send(w io.Writer, direct *route, l *Layout, before func()) error {
	defer s.drop()
	for i := range l.pieces {
		p := &l.pieces[i]
		if p.file != nil {
			if err := s.fileRange(w, direct, p, before); err != nil {
				return err
			}
			continue
		}
		b := p.bytes
		if b == nil {
			b = l.buf[p.from:p.to]
		}
		if err := s.bytes(w, b, before); err != nil {
			return err
		}
	}
	return s.write(w, before)
}

// descriptor is a file of the kernel.
type descriptor interface{ Fd() uintptr }

// fileRange sends a range of a file in the way that costs least.
func (s *sender) fileRange(w io.Writer, direct *route, p *piece, before func()) error {
	f, ok := p.file.(descriptor)
	if !ok || direct == nil || p.n < directMin {
		return s.file(w, p, before)
	}
	if err := s.ahead(direct, before); err != nil {
		return err
	}
	for done := 0; done < p.n; {
		before()
		n, err := direct.send(f, p.off+int64(done), min(p.n-done, sendChunk))
		if done == 0 && n == 0 && unsupported(err) {
			return s.file(w, p, before)
		}
		if err != nil {
			return fmt.Errorf("send %d bytes at %d of a file: %w", p.n-done, p.off+int64(done), err)
		}
		done += n
	}
	return nil
}

// ahead writes what goes before a range that the kernel moves.
func (s *sender) ahead(direct *route, before func()) error {
	if len(s.vectors) == 0 {
		return nil
	}
	before()
	err := direct.write(s.vectors)
	s.drop()
	return err
}

// room makes place for at least one more byte and says for how many.
func (s *sender) room(w io.Writer, before func()) (int, error) {
	if s.queued == sendChunk || len(s.vectors) == maxVectors {
		if err := s.write(w, before); err != nil {
			return 0, err
		}
	}
	return sendChunk - s.queued, nil
}

func (s *sender) bytes(w io.Writer, b []byte, before func()) error {
	for len(b) > 0 {
		room, err := s.room(w, before)
		if err != nil {
			return err
		}
		n := min(room, len(b))
		s.vectors = append(s.vectors, b[:n])
		s.queued += n
		b = b[n:]
	}
	return nil
}

// file reads a range piece by piece and writes whenever enough is there.
func (s *sender) file(w io.Writer, p *piece, before func()) error {
	for off, left := p.off, p.n; left > 0; {
		room, err := s.room(w, before)
		if err != nil {
			return err
		}
		part := s.chunk[s.used : s.used+min(room, left)]
		if n, err := p.file.ReadAt(part, off); n < len(part) {
			return fmt.Errorf("read %d bytes at %d for a response: %w", len(part), off, err)
		} else if err != nil && err != io.EOF {
			return fmt.Errorf("read %d bytes at %d for a response: %w", len(part), off, err)
		}
		s.vectors = append(s.vectors, part)
		s.used, s.queued = s.used+len(part), s.queued+len(part)
		off, left = off+int64(len(part)), left-len(part)
	}
	return nil
}

func (s *sender) write(w io.Writer, before func()) error {
	if len(s.vectors) == 0 {
		return nil
	}
	before()
	var err error
	if len(s.vectors) == 1 {
		_, err = w.Write(s.vectors[0])
	} else {
		all := s.vectors // WriteTo eats the slice from the front
		_, err = s.vectors.WriteTo(w)
		s.vectors = all
	}
	s.drop()
	return err
}

func (s *sender) drop() {
	clear(s.vectors)
	s.vectors, s.queued, s.used = s.vectors[:0], 0, 0
}
