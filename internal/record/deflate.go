package record

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// snappyBlock is the size of a block in xerial framing, as Java writes it.
const snappyBlock = 32 << 10

// deflater packs batch bodies with one codec at one level.
type deflater struct {
	out bytes.Buffer
	gz  *gzip.Writer
	lz  *lz4.Writer
	zs  *zstd.Encoder
}

// deflaterKey names a pool: encoders cannot change their level.
type deflaterKey struct {
	codec Codec
	level int
}

var deflaters sync.Map // deflaterKey -> *sync.Pool

func deflaterPool(c Codec, level int) *sync.Pool {
	key := deflaterKey{c, clampLevel(c, level)}
	if p, ok := deflaters.Load(key); ok {
		return p.(*sync.Pool)
	}
	p, _ := deflaters.LoadOrStore(key, &sync.Pool{New: func() any { return newDeflater(key) }})
	return p.(*sync.Pool)
}

// clampLevel keeps a level within what the codec knows, 0 for its default.
func clampLevel(c Codec, level int) int {
	switch {
	case level == 0, c == CodecGzip && level < 0: // gzip's own name of its default is -1
		return 0
	case c == CodecGzip:
		return min(level, 9)
	case c == CodecLZ4:
		return max(1, min(level, 9))
	case c == CodecZstd:
		return max(1, min(level, 22))
	}
	return 0
}

func newDeflater(key deflaterKey) *deflater {
	d := &deflater{}
	switch key.codec {
	case CodecGzip:
		level := gzip.DefaultCompression
		if key.level != 0 {
			level = key.level
		}
		gz, err := gzip.NewWriterLevel(&d.out, level)
		if err != nil {
			panic("gzip level out of range: " + err.Error())
		}
		d.gz = gz
	case CodecLZ4:
		d.lz = lz4.NewWriter(&d.out)
		opts := []lz4.Option{lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)}
		if key.level != 0 {
			opts = append(opts, lz4.CompressionLevelOption(lz4.CompressionLevel(1<<(8+key.level))))
		}
		if err := d.lz.Apply(opts...); err != nil {
			panic("lz4 options: " + err.Error())
		}
	case CodecZstd:
		level := zstd.SpeedDefault
		if key.level != 0 {
			level = zstd.EncoderLevelFromZstd(key.level)
		}
		zs, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level),
			zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic("zstd options: " + err.Error())
		}
		d.zs = zs
	}
	return d
}

// deflate appends the packed body to dst.
func deflate(dst []byte, c Codec, level int, body []byte) []byte {
	if c == CodecNone {
		return append(dst, body...)
	}
	if c == CodecSnappy {
		return deflateSnappy(dst, body)
	}
	pool := deflaterPool(c, level)
	d := pool.Get().(*deflater)
	defer pool.Put(d)
	return d.pack(dst, body)
}

func (d *deflater) pack(dst, body []byte) []byte {
	d.out.Reset()
	var err error
	switch {
	case d.zs != nil: // as a stream: EncodeAll would make channels, see zstdDecoder
		d.zs.ResetContentSize(&d.out, int64(len(body)))
		if _, err = d.zs.Write(body); err == nil {
			err = d.zs.Close()
		}
	case d.gz != nil:
		d.gz.Reset(&d.out)
		if _, err = d.gz.Write(body); err == nil {
			err = d.gz.Close()
		}
	case d.lz != nil:
		d.lz.Reset(&d.out)
		if _, err = d.lz.Write(body); err == nil {
			err = d.lz.Close()
		}
	}
	if err != nil {
		panic("packing into memory failed: " + err.Error())
	}
	dst = append(dst, d.out.Bytes()...)
	if d.out.Cap() > keptBlock {
		d.out = bytes.Buffer{}
	}
	return dst
}

func deflateSnappy(dst, body []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = binary.BigEndian.AppendUint32(dst, 1) // version
	dst = binary.BigEndian.AppendUint32(dst, 1) // oldest reader
	var packed []byte
	for len(body) > 0 {
		n := min(len(body), snappyBlock)
		packed = snappy.Encode(packed[:cap(packed)], body[:n])
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(packed)))
		dst = append(dst, packed...)
		body = body[n:]
	}
	return dst
}
