// Package wire is Kafka's protocol in bytes.
//
// The messages themselves are kmsg's. This room holds what kmsg leaves to a
// server: request and response headers, the table of the versions that we
// serve, and the encoder of the one response whose bytes must not be copied,
// Fetch. It is pure: no sockets, no clocks, no locks.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Header is a request header, versions 0 to 2 (KIP-482). ClientID is nil when
// the client sent null.
type Header struct {
	Key, Version  int16
	CorrelationID int32
	ClientID      *string
}

// ErrShortRequest says that a frame ends inside its header.
var ErrShortRequest = errors.New("the request ends inside its header")

const fixedHeader = 8 // key, version, correlation id

// ParseRequest splits a frame, without its size prefix, into the header and the
// body, which aliases the frame. The client id is a non-compact string even in
// flexible requests; unknown header tags are skipped (cases B11, B12). The
// header form follows the key and version; versions above the highest known
// one are read like that one, so that a too new ApiVersions can be answered
// (B1). Errors: ErrShortRequest, or a malformed client id or tag section.
func ParseRequest(frame []byte) (Header, []byte, error) {
	var h Header
	body, err := h.Parse(frame)
	return h, body, err
}

// Parse is ParseRequest into h. When the client id equals the one that h
// already holds, the string is kept: a connection that reuses one Header
// allocates nothing.
func (h *Header) Parse(frame []byte) ([]byte, error) {
	if len(frame) < fixedHeader {
		return nil, ErrShortRequest
	}
	h.Key = int16(binary.BigEndian.Uint16(frame))
	h.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.CorrelationID = int32(binary.BigEndian.Uint32(frame[4:]))
	rest, err := h.parseClientID(frame[fixedHeader:])
	if err != nil {
		return nil, err
	}
	if !Flexible(h.Key, h.Version) {
		return rest, nil
	}
	return skipTags(rest)
}

func (h *Header) parseClientID(b []byte) ([]byte, error) {
	if h.Key == keyControlledShutdown && h.Version == 0 {
		h.ClientID = nil // the one request whose header ends before the client id
		return b, nil
	}
	if len(b) < 2 {
		return nil, ErrShortRequest
	}
	n := int(int16(binary.BigEndian.Uint16(b)))
	b = b[2:]
	if n < -1 {
		return nil, fmt.Errorf("client id of length %d", n)
	}
	if n == -1 {
		h.ClientID = nil
		return b, nil
	}
	if n > len(b) {
		return nil, ErrShortRequest
	}
	if h.ClientID == nil || *h.ClientID != string(b[:n]) {
		id := string(b[:n])
		h.ClientID = &id
	}
	return b[n:], nil
}

// skipTags drops a tag section: a count, then (tag, size, bytes) each. Every
// tag takes two bytes at least, so a count beyond the frame ends the loop.
func skipTags(b []byte) ([]byte, error) {
	count, b, err := uvarint(b)
	if err != nil {
		return nil, err
	}
	for ; count > 0; count-- {
		if _, b, err = uvarint(b); err != nil {
			return nil, err
		}
		var size uint32
		if size, b, err = uvarint(b); err != nil {
			return nil, err
		}
		if uint64(size) > uint64(len(b)) {
			return nil, ErrShortRequest
		}
		b = b[size:]
	}
	return b, nil
}

// uvarint reads an unsigned varint of at most 32 bits.
func uvarint(b []byte) (uint32, []byte, error) {
	v, n := binary.Uvarint(b)
	if n == 0 {
		return 0, nil, ErrShortRequest
	}
	if n < 0 || v > 1<<32-1 {
		return 0, nil, errors.New("a varint of more than 32 bits")
	}
	return uint32(v), b[n:], nil
}

// AppendRequestHeader writes the header that ParseRequest reads, without size
// prefix and with an empty tag section when the request is flexible.
func AppendRequestHeader(dst []byte, h Header, flexible bool) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.CorrelationID))
	if h.ClientID == nil {
		dst = binary.BigEndian.AppendUint16(dst, 0xffff)
	} else {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(*h.ClientID)))
		dst = append(dst, *h.ClientID...)
	}
	if flexible {
		dst = append(dst, 0)
	}
	return dst
}

// AppendResponseHeader writes a response header: the correlation id, then an
// empty tag section for flexible responses. ApiVersions never has tags there,
// so that a client of any age can read it (KIP-511, case B3).
func AppendResponseHeader(dst []byte, key, version int16, correlationID int32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if FlexibleResponseHeader(key, version) {
		dst = append(dst, 0)
	}
	return dst
}

// ParseResponse splits a response frame, without its size prefix, into the
// correlation id and the body. flexible says whether the header carries tags:
// FlexibleResponseHeader for Kafka's own keys.
func ParseResponse(frame []byte, flexible bool) (int32, []byte, error) {
	if len(frame) < 4 {
		return 0, nil, errors.New("the response ends inside its header")
	}
	id := int32(binary.BigEndian.Uint32(frame))
	if !flexible {
		return id, frame[4:], nil
	}
	body, err := skipTags(frame[4:])
	return id, body, err
}
