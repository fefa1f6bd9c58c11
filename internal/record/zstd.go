package record

import (
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zstdWindow is the largest window that is reserved in advance. Frames that ask
// for more are unpacked whole, so that memory follows the data, not the claim.
const zstdWindow = 8 << 20

// zstdDecoder unpacks zstd: stream those frames whose window is small, whole the
// others. Inside, the library keeps a channel. A channel belongs to the bubble of
// testing/synctest in which it was made, and to use it in another ends the
// process: so the decoders that are kept are made with the package, outside all
// bubbles, and one that is made later is used once.
type zstdDecoder struct {
	stream, whole *zstd.Decoder
	kept          bool
}

// keptZstd is how many zstd decoders are kept: as many batches are unpacked at a
// time without a new one.
const keptZstd = 8

// zstdDecoders are those that are idle.
var zstdDecoders = struct {
	sync.Mutex
	idle []*zstdDecoder
}{idle: makeZstd(keptZstd)}

func makeZstd(n int) []*zstdDecoder {
	out := make([]*zstdDecoder, n)
	for i := range out {
		out[i] = newZstdDecoder()
		out[i].kept = true
	}
	return out
}

func newZstdDecoder() *zstdDecoder {
	stream, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderMaxMemory(maxInflated))
	if err != nil {
		panic("zstd options: " + err.Error())
	}
	whole, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxHeld))
	if err != nil {
		panic("zstd options: " + err.Error())
	}
	return &zstdDecoder{stream: stream, whole: whole}
}

func takeZstd() *zstdDecoder {
	d := &zstdDecoders
	d.Lock()
	defer d.Unlock()
	last := len(d.idle) - 1
	if last < 0 {
		return newZstdDecoder()
	}
	z := d.idle[last]
	d.idle = d.idle[:last]
	return z
}

func (z *zstdDecoder) free() {
	if !z.kept {
		return
	}
	d := &zstdDecoders
	d.Lock()
	defer d.Unlock()
	d.idle = append(d.idle, z)
}

// streams reports whether a frame is unpacked as a stream. A single segment is its own
// window.
func streams(h *zstd.Header) bool { return window(h) <= zstdWindow && !h.Skippable }

func window(h *zstd.Header) uint64 {
	if h.SingleSegment {
		return h.FrameContentSize
	}
	return h.WindowSize
}

// wholeZstd is what the frames of a body unpack to at most, maxHeld or less: the
// decoder stops there.
func wholeZstd(body []byte) int64 {
	total := uint64(0)
	for len(body) > 0 && total < maxHeld {
		var h zstd.Header
		rest, err := h.DecodeAndStrip(body)
		if err != nil {
			break
		}
		if h.Skippable {
			body = rest[min(len(rest), int(h.SkippableSize)):]
			continue
		}
		size, rest, ok := blocks(rest, min(window(&h), zstdBlock))
		if h.HasFCS {
			size = min(size, h.FrameContentSize)
		}
		if total += size; !ok {
			break
		}
		if h.HasCheckSum {
			rest = rest[min(len(rest), 4):]
		}
		body = rest
	}
	return int64(min(total, maxHeld))
}

// zstdBlock is the most that a block unpacks to.
const zstdBlock = 128 << 10

// blocks adds up what the blocks of a frame unpack to, most each if they are packed, and
// returns what follows the last one. False says that there is no last one.
func blocks(b []byte, most uint64) (size uint64, rest []byte, ok bool) {
	for len(b) >= 3 {
		head := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		n, came := head>>3, head>>3
		switch head >> 1 & 3 {
		case 0: // as it is
			size += uint64(n)
		case 1: // one byte, repeated
			size, came = size+uint64(n), 1
		case 2:
			size += most
		default:
			return size, nil, false
		}
		if came > len(b)-3 {
			return size, nil, false
		}
		if b = b[3+came:]; head&1 == 1 {
			return size, b, true
		}
	}
	return size, nil, false
}

func (f *inflater) openZstd(body []byte) (io.Reader, error) {
	var h zstd.Header
	if err := h.Decode(body); err != nil {
		return nil, err
	}
	f.zs = takeZstd()
	if streams(&h) {
		return f.zs.stream, f.zs.stream.Reset(&f.src)
	}
	// Where it all fits, the decoder does not make a larger buffer for each frame.
	out, err := f.zs.whole.DecodeAll(body, make([]byte, 0, wholeZstd(body)))
	if err != nil {
		return nil, err
	}
	f.src.Reset(out)
	return &f.src, nil
}

// closeZstd gives the decoder of a zstd body back.
func (f *inflater) closeZstd() {
	if f.zs != nil {
		f.zs.free()
		f.zs = nil
	}
}
