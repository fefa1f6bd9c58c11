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
	// keptBlock is the largest snappy block whose memory is kept for the next one.
	keptBlock = 1 << 20
)

var (
	errCodec    = errors.New("unknown compression codec")
	errTooLarge = errors.New("batch unpacks to more than is allowed")
	errSnappy   = errors.New("malformed snappy block")
	errLZ4      = errors.New("no lz4 frame of independent blocks")
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
		frame := lz4Frame(body)
		if frame == nil {
			return nil, errLZ4
		}
		f.src.Reset(frame)
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
	if cap(f.snap.block) > keptBlock {
		f.snap.block = nil
	}
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

// source takes the next packed block off what is to come.
func (s *snappyReader) source() ([]byte, error) {
	src := s.rest
	if !s.framed {
		s.rest = nil
		return src, nil
	}
	if len(src) < 4 {
		return nil, errSnappy
	}
	n := int64(binary.BigEndian.Uint32(src))
	if n > int64(len(src)-4) {
		return nil, errSnappy
	}
	s.rest = src[4+n:]
	return src[4 : 4+n], nil
}

func (s *snappyReader) next() error {
	src, err := s.source()
	if err != nil {
		return err
	}
	size, err := snappy.DecodedLen(src)
	if err != nil {
		return err
	}
	if size > snappyRatio*len(src) || !standardSnappy(src) {
		return errSnappy
	}
	if size > maxHeld {
		return errTooLarge
	}
	if size > cap(s.block) {
		s.block = nil // not held beside the larger one
	}
	s.block, err = snappy.Decode(s.block[:cap(s.block)], src)
	s.pos = 0
	return err
}

// standardSnappy reports whether a block does without what its decoder knows beyond
// snappy: repeated offsets, which are copies from offset 0. Other clients do not.
func standardSnappy(block []byte) bool {
	_, n := binary.Uvarint(block) // the length
	for at := max(0, n); at < len(block); {
		tag := block[at]
		switch tag & 3 {
		case 0:
			size, more := int(tag>>2), 0
			if size >= 60 {
				more = size - 59
				if at+more >= len(block) {
					return false
				}
				size = 0
				for i := more; i > 0; i-- {
					size = size<<8 | int(block[at+i])
				}
			}
			at += 1 + more + size + 1
		case 1:
			if tag>>5 == 0 && at+1 < len(block) && block[at+1] == 0 {
				return false
			}
			at += 2
		case 2:
			at += 3
		case 3:
			at += 5
		}
	}
	return true
}

// What an lz4 frame begins with, and its flags.
const (
	lz4Magic       = 0x184d2204
	lz4Header      = 7 // magic, flags, block size, checksum of the header
	lz4Flags       = 0b11_10_00_11
	lz4Wanted      = 0b01_10_00_00 // version 1, independent blocks, nothing reserved, no dictionary
	lz4BlockSum    = 1 << 4
	lz4ContentSize = 1 << 3
	lz4ContentSum  = 1 << 2
	lz4Stored      = 1 << 31 // of a block's size: it is not packed
)

// lz4Frame returns the one frame that body begins with, as far as it came; nil when it
// is none that Kafka reads. What follows the frame Kafka does not look at.
func lz4Frame(body []byte) []byte {
	if len(body) < lz4Header || binary.LittleEndian.Uint32(body) != lz4Magic || body[4]&lz4Flags != lz4Wanted {
		return nil
	}
	flags, at := body[4], lz4Header
	if flags&lz4ContentSize != 0 {
		at += 8
	}
	for at+4 <= len(body) {
		size := int(binary.LittleEndian.Uint32(body[at:]) &^ lz4Stored)
		if size == 1 && body[at+3]>>7 == 0 {
			return nil // nothing is packed into a byte but nothing, and Kafka ends there
		}
		at += 4
		if size == 0 { // the end, and a checksum of all if there is one
			if flags&lz4ContentSum != 0 {
				at += 4
			}
			return body[:min(len(body), at)]
		}
		at += size
		if flags&lz4BlockSum != 0 {
			at += 4
		}
	}
	return body
}

// inflate unpacks a body into memory behind dst, at most maxHeld bytes of it. Where it
// fits into dst nothing is allocated.
func inflate(dst []byte, c Codec, body []byte) ([]byte, error) {
	f := inflaters.Get().(*inflater)
	defer f.put()
	r, err := f.open(c, body)
	if err != nil {
		return dst, fmt.Errorf("unpack %s: %w", c, err)
	}
	if cap(dst) == len(dst) {
		dst = slices.Grow(dst, max(1024, 2*len(body)))
	}
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
