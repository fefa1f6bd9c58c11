package transport

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/wire"
)

// Request is one request of a connection. The handler answers it exactly once,
// from any task: Reply, ReplyNone or CloseConn.
type Request struct {
	// Header is the parsed header. Its version is one that the listener
	// serves, but for ApiVersions, which may be too new (case B1).
	Header wire.Header
	// Body follows the header and aliases the frame: valid until the answer was
	// written, until Free, or while retained.
	Body []byte
	Conn *Conn
	// Preview saw the frame arrive; nil when none did.
	Preview Preview

	frame    *Frame
	began    time.Time // zero unless somebody observes
	freed    bool
	state    answer   // guarded by Conn.mu
	response Response // guarded by Conn.mu
}

type answer uint8

const (
	unanswered answer = iota
	answered
	answeredNone
	answeredClose
)

// Handler serves requests. Serve is called in the connection's reader
// task: it must not wait for a long poll, only post it.
type Handler interface {
	Serve(r *Request)
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(r *Request)

// Serve calls f.
func (f HandlerFunc) Serve(r *Request) { f(r) }

// Reply answers the request. The response leaves after those of all earlier
// requests of the connection. It panics when the request was answered before.
func (r *Request) Reply(resp Response) { r.Conn.answer(r, answered, resp) }

// ReplyNone ends a request that gets no answer: a Produce with acks=0.
func (r *Request) ReplyNone() { r.Conn.answer(r, answeredNone, nil) }

// CloseConn ends the connection instead of an answer, after the answers to
// earlier requests were sent. why goes to the log as a warning, unless it is
// ErrStopping.
func (r *Request) CloseConn(why error) {
	r.Conn.fail(why)
	r.Conn.answer(r, answeredClose, nil)
}

// Retain keeps Body valid past the answer, until as many calls of Release.
func (r *Request) Retain() { r.frame.Retain() }

// Release undoes one Retain.
func (r *Request) Release() { r.frame.Release() }

// Frame is the whole request, with its header, in which Body lies. It is valid as long
// as Body is.
func (r *Request) Frame() []byte { return r.frame.buf }

// Free gives the frame back before the answer, unless it is retained: its bytes
// stop counting as in flight. Only the task that will answer may call it,
// and nothing may read Body or what was decoded from it without a copy.
func (r *Request) Free() {
	if r.freed {
		return
	}
	r.freed = true
	r.Body = nil
	r.frame.Release()
}

// Hold waits until so many more bytes may be held for requests of this listener than
// came on its connections: what a packed batch unpacks to. More than all of them may be
// held alone. Only Serve may wait here. False says that the connection ended, or that
// there was no room for as long as a connection may stall.
func (r *Request) Hold(bytes int64) bool {
	s := r.Conn.server
	return s.unpacked.take(bytes, s.opts.StallLimit, r.Conn.closed)
}

// Drop says that they are held no more.
func (r *Request) Drop(bytes int64) { r.Conn.server.unpacked.give(bytes) }

// Grow counts so many bytes as if they had come with the request: what was made of its
// batches. They are held until its frame is. What is read next waits for them. Only Serve
// may call it.
func (r *Request) Grow(bytes int64) { r.frame.charge.grow(bytes) }
