package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
)

// Bounds on hostile input. A body is streamed, so that what it unpacks to costs
// time but no memory; where it must be held whole, maxHeld bounds it.
const (
	maxInflated = 1 << 30
	maxHeld     = 128 << 20
	// snappyRatio bounds what a snappy block can unpack to: a copy of 64 bytes
	// takes 3.
	snappyRatio = 22
)

var (
	errCodec    = errors.New("unknown compression codec")
	errTooLarge = errors.New("batch unpacks to more than is allowed")
	errSnappy   = errors.New("malformed snappy block")
)

// inflater unpacks batch bodies; it keeps its decoders between batches.
type inflater struct {
	src  bytes.Reader
	gz   *gzip.Reader
	lz   *lz4.Reader
	zs   *zstdDecoder // while a zstd body is open
	snap snappyReader
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// open returns a reader of the unpacked body. It is valid until the inflater is
// opened again or put back.
func (f *inflater) open(c Codec, body []byte) (io.Reader, error) {
	f.closeZstd()
	f.src.Reset(body)
	switch c {
	case CodecNone:
		return &f.src, nil
	case CodecGzip:
		return f.openGzip()
	case CodecSnappy:
		f.snap.reset(body)
		return &f.snap, nil
	case CodecLZ4:
		if f.lz == nil {
			f.lz = lz4.NewReader(&f.src)
		} else {
			f.lz.Reset(&f.src)
		}
		return f.lz, nil
	case CodecZstd:
		return f.openZstd(body)
	}
	return nil, errCodec
}

func (f *inflater) openGzip() (io.Reader, error) {
	if f.gz == nil {
		gz, err := gzip.NewReader(&f.src)
		if err != nil {
			return nil, err
		}
		f.gz = gz
		return gz, nil
	}
	return f.gz, f.gz.Reset(&f.src)
}

// put gives the inflater back to the pool.
func (f *inflater) put() {
	f.src.Reset(nil)
	f.snap.reset(nil)
	f.closeZstd()
	inflaters.Put(f)
}

// xerialMagic starts the framing that Java's snappy streams use: the magic, two
// int32 versions, then blocks, each after its length as int32.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

// snappyReader unpacks snappy in xerial framing, or one bare block.
type snappyReader struct {
	rest   []byte // blocks to come
	framed bool
	block  []byte // unpacked
	pos    int
}

func (s *snappyReader) reset(body []byte) {
	s.framed = len(body) >= xerialHeader && bytes.HasPrefix(body, xerialMagic)
	if s.framed {
		body = body[xerialHeader:]
	}
	s.rest, s.block, s.pos = body, s.block[:0], 0
}

func (s *snappyReader) Read(b []byte) (int, error) {
	for s.pos == len(s.block) {
		if len(s.rest) == 0 {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.block[s.pos:])
	s.pos += n
	return n, nil
}

func (s *snappyReader) next() error {
	src := s.rest
	if s.framed {
		if len(src) < 4 {
			return errSnappy
		}
		n := int64(binary.BigEndian.Uint32(src))
		if n > int64(len(src)-4) {
			return errSnappy
		}
		src = src[4 : 4+n]
		s.rest = s.rest[4+n:]
	} else {
		s.rest = nil
	}
	size, err := snappy.DecodedLen(src)
	if err != nil {
		return err
	}
	if size > snappyRatio*len(src) {
		return errSnappy
	}
	s.block, err = snappy.Decode(s.block[:cap(s.block)], src)
	s.pos = 0
	return err
}

// inflate unpacks a body into memory, at most maxHeld bytes of it.
func inflate(dst []byte, c Codec, body []byte) ([]byte, error) {
	f := inflaters.Get().(*inflater)
	defer f.put()
	r, err := f.open(c, body)
	if err != nil {
		return dst, fmt.Errorf("unpack %s: %w", c, err)
	}
	dst = slices.Grow(dst, max(1024, 2*len(body)))
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > maxHeld:
			return dst, errTooLarge
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return dst, fmt.Errorf("unpack %s: %w", c, err)
		}
	}
}
