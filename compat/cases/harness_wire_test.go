package cases

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// socket is a connection on which the test itself makes the bytes.
type socket struct {
	net.Conn
	t *testing.T
}

// socket opens a connection to a broker.
func (w *world) socket(broker int) *socket {
	w.t.Helper()
	nc, err := w.Dial(context.Background(), "tcp", w.Addrs()[broker-1])
	if err != nil {
		w.t.Fatalf("dial broker %d: %v", broker, err)
	}
	w.t.Cleanup(func() { nc.Close() })
	return &socket{nc, w.t}
}

// tryDial opens a connection to a broker that may be down.
func (w *world) tryDial(broker int) (*transport.Client, error) {
	return transport.Dial(context.Background(), w.Addrs()[broker-1], transport.ClientOptions{ClientID: "case",
		Dial: func(ctx context.Context, addr string) (net.Conn, error) { return w.Dial(ctx, "tcp", addr) }})
}

// framed puts the size in front of a request.
func framed(request []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)
}

// requestBytes is a request without its size, from the client "x".
func requestBytes(req kmsg.Request, id int32) []byte {
	x := "x"
	return requestFrom(&x, req, id)
}

// requestFrom is requestBytes from another client.
func requestFrom(client *string, req kmsg.Request, id int32) []byte {
	h := wire.Header{Key: req.Key(), Version: req.GetVersion(), CorrelationID: id, ClientID: client}
	return req.AppendTo(wire.AppendRequestHeader(nil, h, wire.Flexible(h.Key, h.Version)))
}

// put writes a request without its size.
func (s *socket) put(request []byte) {
	s.t.Helper()
	if _, err := s.Write(framed(request)); err != nil {
		s.t.Fatalf("write: %v", err)
	}
}

var (
	errEnded = errors.New("the broker closed the connection")
	errQuiet = errors.New("the broker says nothing")
)

// take reads one response without its size. Errors: errEnded without a byte of
// it, errQuiet when none comes in so long.
func (s *socket) take(limit time.Duration) ([]byte, error) {
	s.t.Helper()
	s.SetReadDeadline(time.Now().Add(limit))
	var size [4]byte
	n, err := io.ReadFull(s, size[:])
	switch {
	case n == 0 && errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errQuiet
	case n == 0 && err != nil:
		return nil, errEnded
	case err != nil:
		s.t.Fatalf("%d bytes came before %v", n, err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if n, err := io.ReadFull(s, body); err != nil {
		s.t.Fatalf("%d of %d bytes came before %v", n, len(body), err)
	}
	return body, nil
}

// mustTake is take of what has to come within a minute, with its correlation id.
func (s *socket) mustTake(id int32) []byte {
	s.t.Helper()
	b, err := s.take(time.Minute)
	if err != nil {
		s.t.Fatalf("instead of response %d: %v", id, err)
	}
	if got := int32(binary.BigEndian.Uint32(b)); got != id {
		s.t.Fatalf("correlation id %d, want %d", got, id)
	}
	return b[4:]
}

// ends checks that the broker closes the connection without another byte.
func (s *socket) ends(what string, limit time.Duration) {
	s.t.Helper()
	if b, err := s.take(limit); !errors.Is(err, errEnded) {
		s.t.Errorf("%s: the connection goes on (%d bytes, %v)", what, len(b), err)
	}
}

// exchange sends a request and decodes the answer.
func (s *socket) exchange(req kmsg.Request) kmsg.Response {
	s.t.Helper()
	s.put(requestBytes(req, 7))
	return decoded(s.t, req, s.mustTake(7))
}

// decoded is what follows the correlation id as an answer to a request. It must
// use up every byte.
func decoded(t *testing.T, req kmsg.Request, b []byte) kmsg.Response {
	t.Helper()
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	name := kmsg.NameForKey(req.Key())
	if wire.FlexibleResponseHeader(req.Key(), req.GetVersion()) {
		if len(b) == 0 || b[0] != 0 {
			t.Fatalf("%s v%d: the response header has no empty tag section", name, req.GetVersion())
		}
		b = b[1:]
	}
	if err := resp.ReadFrom(b); err != nil {
		t.Fatalf("%s v%d: decode: %v", name, req.GetVersion(), err)
	}
	if again := resp.AppendTo(nil); len(again) != len(b) {
		t.Fatalf("%s v%d: the answer has %d bytes, %d of them mean something", name, req.GetVersion(), len(b), len(again))
	}
	return resp
}

// cursor reads a response by hand.
type cursor struct {
	t *testing.T
	b []byte
}

func (c *cursor) skip(n int) []byte {
	c.t.Helper()
	if n < 0 || n > len(c.b) {
		c.t.Fatalf("%d bytes are wanted, %d are left", n, len(c.b))
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) int16() int16 { c.t.Helper(); return int16(binary.BigEndian.Uint16(c.skip(2))) }

func (c *cursor) int32() int32 { c.t.Helper(); return int32(binary.BigEndian.Uint32(c.skip(4))) }

func (c *cursor) uvarint() int {
	c.t.Helper()
	v, n := binary.Uvarint(c.b)
	c.skip(n)
	return int(v)
}

// tags skips a tag section.
func (c *cursor) tags() {
	c.t.Helper()
	for range c.uvarint() {
		c.uvarint()
		c.skip(c.uvarint())
	}
}

// Where fields of a batch's header begin.
const (
	atBatchEpoch    = 12
	atBatchCRC      = 17
	atAttributes    = 21
	atLastDelta     = 23
	atMaxTimestamp  = 35
	atProducerID    = 43
	atBaseSequence  = 53
	atCount         = 57
	controlFlag     = 0x20
	transactionFlag = 0x10
)

// forged is a copy of a batch with another header field, of two, four or eight
// bytes, and a checksum that is right.
func forged(b []byte, at, size int, value int64) []byte {
	b = append([]byte(nil), b...)
	v := binary.BigEndian.AppendUint64(nil, uint64(value))
	copy(b[at:], v[8-size:])
	binary.BigEndian.PutUint32(b[atBatchCRC:], crc32.Checksum(b[atAttributes:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// sized is a batch of one record that has exactly so many bytes.
func sized(t *testing.T, bytes int) []byte {
	t.Helper()
	for pad := bytes - record.HeaderSize; pad > 0; pad-- {
		if b := batch(strings.Repeat("x", pad)); len(b) == bytes {
			return b
		}
	}
	t.Fatalf("no batch has %d bytes", bytes)
	return nil
}

// timed is a batch of records at these times, whose values are their times.
func timed(o record.BatchOptions, times ...int64) []byte {
	b := record.NewBuilder(o)
	for _, at := range times {
		b.Add(model.Millis(at), []byte("k"), []byte(time.UnixMilli(at).UTC().String()))
	}
	return b.Bytes()
}

// end is the leader's log end of partition 0.
func (w *world) end(topic string) int64 {
	w.t.Helper()
	leo, _ := w.mark(w.Leader(topic, 0), topic)
	return leo
}

// denied checks that a produced batch gets an error and leaves no trace.
func (w *world) denied(what, topic string, set []byte, want ...model.Error) produced {
	w.t.Helper()
	before := w.end(topic)
	p, took := w.timedProduce(w.Leader(topic, 0), topic, -1, 10*time.Second, set)
	code(w.t, what, p.ErrorCode, want...)
	within(w.t, what, took, atOnce)
	if after := w.end(topic); p.BaseOffset != -1 || after != before {
		w.t.Errorf("%s: base offset %d, log end %d -> %d", what, p.BaseOffset, before, after)
	}
	return p
}

// accepted checks that a produced batch gets an offset.
func (w *world) accepted(what, topic string, set []byte, offset int64) produced {
	w.t.Helper()
	p := w.produce(w.Leader(topic, 0), topic, -1, 10*time.Second, set)
	code(w.t, what, p.ErrorCode, model.None)
	if p.ErrorCode == 0 && p.BaseOffset != offset {
		w.t.Errorf("%s: offset %d, want %d", what, p.BaseOffset, offset)
	}
	return p
}

// headerAt is the header and the bytes of the batch at an offset, as the leader
// stored it.
func (w *world) headerAt(topic string, offset int64) (record.Header, []byte) {
	w.t.Helper()
	p, _ := w.fetch(w.Leader(topic, 0), at(topic, offset))
	code(w.t, "fetch", p.ErrorCode, model.None)
	for h, b := range record.Split(p.RecordBatches) {
		if !record.Valid(b) {
			w.t.Errorf("the batch at %d has a bad checksum", offset)
		}
		return h, b
	}
	w.t.Fatalf("no batch at %d", offset)
	return record.Header{}, nil
}
