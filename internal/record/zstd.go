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
func streams(h *zstd.Header) bool {
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	return window <= zstdWindow && !h.Skippable
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
	out, err := f.zs.whole.DecodeAll(body, nil)
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
