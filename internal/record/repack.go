package record

import (
	"encoding/binary"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Room bounds what all checks hold unpacked at a time: a batch of 15 KB may unpack to
// 125 MB.
type Room interface {
	// Hold waits until so many bytes may be held. False says that there was no room in
	// time, or that the connection ended.
	Hold(bytes int64) bool
	// Drop says that they are held no more.
	Drop(bytes int64)
}

// smallHold is up to how many bytes need no room: what one connection may hold anyway.
const smallHold = 1 << 20

func (c *checker) hold(bytes int64) bool {
	return bytes <= smallHold || c.rules.Room == nil || c.rules.Room.Hold(bytes)
}

func (c *checker) drop(bytes int64) {
	if bytes > smallHold && c.rules.Room != nil {
		c.rules.Room.Drop(bytes)
	}
}

// crowded is the verdict where there was no room.
func crowded() CheckResult {
	return refuse(model.ErrRequestTimedOut, "there was no room to unpack the batch in time: send it again later, or in smaller batches")
}

// wholeBytes is what has to be held at a time to walk over the records of a packed body,
// at most: frames of zstd if the first one has a large window, the largest block of
// snappy.
func wholeBytes(codec Codec, body []byte) int64 {
	switch codec {
	case CodecZstd:
		var h zstd.Header
		if h.Decode(body) != nil || streams(&h) {
			return 0
		}
		return wholeZstd(body)
	case CodecSnappy:
		return largestBlock(body)
	}
	return 0
}

// largestBlock is the size of the largest block of snappy that is going to be unpacked.
func largestBlock(body []byte) int64 {
	var s snappyReader
	s.reset(body)
	largest := 0
	for len(s.rest) > 0 {
		src, err := s.source()
		if err != nil {
			break
		}
		size, err := snappy.DecodedLen(src)
		if err != nil || size > snappyRatio*len(src) || size > maxHeld {
			break
		}
		largest = max(largest, size)
	}
	return int64(largest)
}

// repacked is the batch with another codec, or with offset deltas that count from 0,
// or why there is none.
func (c *checker) repacked(target Codec) CheckResult {
	if target == CodecNone && !c.renumber { // its size is known before
		if r := c.rules.size(HeaderSize + c.unpacked); r.Err != model.None {
			return r
		}
	}
	if c.unpacked > maxHeld {
		return unpackable(errTooLarge)
	}
	held := wholeBytes(c.h.Codec(), c.body()) + 2*c.unpacked // the body, and what is made of it
	if c.renumber {
		held += c.unpacked
	}
	if !c.hold(held) {
		return crowded()
	}
	defer c.drop(held)
	batch, err := c.repack(target)
	if err != nil {
		return unpackable(err)
	}
	h, _ := ParseHeader(batch)
	if r := c.rules.size(int64(h.Size())); r.Err != model.None {
		return r
	}
	return CheckResult{Header: h, Batch: batch}
}

func unpackable(why error) CheckResult {
	return refuse(model.ErrInvalidRecord, "the records cannot be repacked: %v", why)
}

// size judges the size of a repacked batch.
func (r *CheckRules) size(bytes int64) CheckResult {
	switch {
	case r.MaxBytes > 0 && bytes > int64(r.MaxBytes):
		return refuse(model.ErrMessageTooLarge, "the repacked batch has %d bytes, more than max.message.bytes %d", bytes, r.MaxBytes)
	case r.SegmentBytes > 0 && bytes > int64(r.SegmentBytes):
		return refuse(model.ErrRecordListTooLarge, "the repacked batch has %d bytes, more than segment.bytes %d", bytes, r.SegmentBytes)
	}
	return CheckResult{}
}

// repack makes a new batch of the same records with another codec, or with
// offset deltas that count from 0.
func (c *checker) repack(target Codec) ([]byte, error) {
	body, err := inflate(make([]byte, 0, c.unpacked+1), c.h.Codec(), c.body())
	if err != nil {
		return nil, err
	}
	if c.renumber {
		if body, err = renumber(body, c.h.Count); err != nil {
			return nil, err
		}
	}
	out := deflate(make([]byte, HeaderSize), target, c.rules.Level, body)
	h := c.h
	h.Attributes = h.Attributes&^codecMask | int16(target)
	h.Length = int32(len(out) - frameSize)
	h.put(out)
	seal(out)
	return out, nil
}

// renumber copies records with offset deltas 0, 1, 2 and so on.
func renumber(body []byte, count int32) ([]byte, error) {
	out := make([]byte, 0, len(body)+len(body)/8)
	var rec []byte
	for i := range int64(count) {
		size, n := varint(body)
		if n <= 0 || size < 1 || size > int64(len(body)-n) {
			return nil, errMalformed
		}
		old := body[n : n+int(size)]
		body = body[n+int(size):]
		_, tn := varlong(old[1:])
		if tn <= 0 {
			return nil, errMalformed
		}
		_, on := varint(old[1+tn:])
		if on <= 0 {
			return nil, errMalformed
		}
		rec = append(rec[:0], old[:1+tn]...)
		rec = binary.AppendVarint(rec, i)
		rec = append(rec, old[1+tn+on:]...)
		out = binary.AppendVarint(out, int64(len(rec)))
		out = append(out, rec...)
	}
	return out, nil
}
