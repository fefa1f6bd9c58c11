package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

// frameReader reads frames from a connection through a small buffer, so that a
// small frame costs one system call and a large one is not copied.
type frameReader struct {
	nc    net.Conn
	from  io.Reader // what is read of nc
	rt    *task.Runtime
	ahead []byte // received and not consumed yet, a part of buf
	buf   []byte
	low   lowWater
	timed bool // a deadline is set
}

// A frame of at least lowMin bytes is read in steps of up to lowMost: its reader is
// not woken for each packet.
const (
	lowMin  = 256 << 10
	lowMost = 1 << 20
	// previewMin is the smallest frame that a preview is asked for.
	previewMin = 64 << 10
)

// fill reads until at least n bytes, at most len(buf), are ahead. Every read
// waits for so long at most; zero means for ever.
func (f *frameReader) fill(n int, limit time.Duration) error {
	if len(f.ahead) >= n {
		return nil
	}
	f.ahead = f.buf[:copy(f.buf, f.ahead)]
	for len(f.ahead) < n {
		f.deadline(limit)
		got, err := f.from.Read(f.buf[len(f.ahead):])
		f.ahead = f.buf[:len(f.ahead)+got]
		if err != nil && len(f.ahead) < n {
			return err
		}
	}
	return nil
}

func (f *frameReader) deadline(limit time.Duration) {
	switch {
	case limit > 0:
		f.nc.SetReadDeadline(f.rt.Now().Add(limit))
	case f.timed:
		f.nc.SetReadDeadline(time.Time{})
	}
	f.timed = limit > 0
}

// rest reads a frame of size bytes, whose prefix is ahead. Beyond first bytes
// it is allocated as its bytes come. The frame given is used up, also with an
// error. seen, if not nil, is told what came.
func (f *frameReader) rest(frame *Frame, size int, limit time.Duration, seen Preview) (*Frame, error) {
	used := copy(frame.buf, f.ahead[4:])
	f.ahead = f.ahead[4+used:]
	if size >= lowMin {
		defer f.low.set(1)
	}
	for used < size {
		if size >= lowMin {
			f.low.set(min(size-used, lowMost))
		}
		if used == len(frame.buf) {
			frame = frame.grow(min(size, 2*used), used)
		}
		n, err := f.step(frame.buf[used:], limit)
		if used += n; err != nil && used < size {
			frame.Release()
			return nil, err
		}
		if seen != nil {
			seen.Extend(frame.buf[:used])
		}
	}
	return frame, nil
}

// step reads more of a large frame. A reader is not woken for less than it waits for, so
// when the time is up it looks what came: who is slow is not cut off, who stopped is.
func (f *frameReader) step(b []byte, limit time.Duration) (int, error) {
	f.deadline(limit)
	n, err := f.from.Read(b)
	if f.low.at == 1 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	f.low.set(1)
	f.deadline(glance)
	return f.from.Read(b)
}

// glance is long enough to read what is there.
const glance = time.Millisecond

// readFrame reads the rest of a frame, whose size prefix it drops. Large
// frames are allocated as their bytes come.
func (c *Conn) readFrame(size int, charged bool, seen Preview) (*Frame, error) {
	if !charged {
		return c.in.rest(newFrame(min(size, firstChunk)), size, c.server.opts.StallLimit, nil)
	}
	taken, ok := c.charge(int64(size))
	if !ok {
		return nil, net.ErrClosed
	}
	frame := newFrame(min(size, firstCharged))
	frame.charge = taken
	return c.in.rest(frame, size, c.server.opts.StallLimit, seen)
}
