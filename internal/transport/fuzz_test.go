package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/wire"
)

// fuzzMax is the largest frame in the fuzz target: small enough for the fuzzer to
// go beyond it.
const fuzzMax = 1 << 12

// FuzzFrames sends a stream of bytes, cut in pieces, to a server, or to a client
// that waits for three answers. What is served, or answered, is what a plain
// reading of the stream finds, and nothing is allocated for what does not come.
func FuzzFrames(f *testing.F) {
	whole := slices.Concat(frameOf(1, produceOf(10)), frameOf(2, apiVersions(3)), frameOf(3, metadataOf("t")), frameOf(4, produce()))
	f.Add(true, []byte{1, 200}, whole)
	f.Add(true, []byte{7}, whole[:len(whole)-3])
	f.Add(true, []byte{255}, append(whole[:len(whole):len(whole)], "GET / HTTP/1.1\r\n\r\n"...))
	f.Add(true, []byte{}, []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 9, 0, 0, 0, 1})
	f.Add(true, []byte{90}, frameOf(1, produceOf(fuzzMax+1)))
	f.Add(true, []byte{90}, frameOf(1, apiVersions(99)))
	f.Add(false, []byte{3}, []byte("\x00\x00\x00\x07\x00\x00\x00\x00\x00ab\x00\x00\x00\x06\x00\x00\x00\x01\x00c\x00\x00\x00\x05\x00\x00\x00\x02\x00"))
	f.Add(false, []byte{}, []byte("\x00\x00\x00\x08\x00\x00\x00\x00\x01\x05\x00\x00\x00\x00\x00\x05\x00\x00\x00\x09\x00"))
	f.Add(false, []byte{1}, []byte("\x7f\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, toServer bool, cuts, stream []byte) {
		used := allocated(func() {
			if toServer {
				fuzzServer(t, cuts, stream)
			} else {
				fuzzClient(t, cuts, stream)
			}
		})
		if most := uint64(4<<20 + 64*len(stream)); used > most {
			t.Fatalf("%d bytes of stream took %d of memory", len(stream), used)
		}
	})
}

// request is what a server is to hand over.
type request struct {
	header wire.Header
	body   []byte
}

// requestsIn reads a stream as plainly as it can be done. It says whether the
// stream breaks the protocol behind the requests: answers may be lost then.
func requestsIn(stream []byte) (out []request, breach bool) {
	for len(stream) >= 8 {
		size := int(int32(binary.BigEndian.Uint32(stream)))
		key, version := int16(binary.BigEndian.Uint16(stream[4:])), int16(binary.BigEndian.Uint16(stream[6:]))
		served := wire.BrokerVersions.Serves(key, version) || key == keyApiVersions && version > 5
		if size < 8 || size > fuzzMax || !served {
			return out, true
		}
		if size > len(stream)-4 {
			return out, false
		}
		h, body, err := wire.ParseRequest(stream[4 : 4+size])
		if err != nil {
			return out, true
		}
		out = append(out, request{h, body})
		stream = stream[4+size:]
	}
	if len(stream) >= 4 {
		size := int(int32(binary.BigEndian.Uint32(stream)))
		breach = size < 8 || size > fuzzMax
	}
	return out, breach
}

func fuzzServer(t *testing.T, cuts, stream []byte) {
	want, breach := requestsIn(stream)
	l := &one{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	var got []request
	s := NewServer(l, Options{MaxRequest: fuzzMax, MaxInFlight: 2 * fuzzMax, MaxPipelined: 2})
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(HandlerFunc(func(r *Request) {
			got = append(got, request{r.Header, bytes.Clone(r.Body)})
			if r.Header.CorrelationID%4 == 3 {
				r.ReplyNone()
				return
			}
			r.Reply(echoed{bytes.Clone(r.Body)})
		}))
	}()
	c := newPlayed(cuts, stream)
	close(c.begin)
	l.conns <- c
	<-c.closed
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	checkServed(t, want, got, breach, c.out.Bytes())
}

// checkServed compares what was handed over with what the stream holds, and the
// answers with it.
func checkServed(t *testing.T, want, got []request, breach bool, answers []byte) {
	if len(got) != len(want) {
		t.Fatalf("%d requests were handed over, there are %d", len(got), len(want))
	}
	for i, r := range got {
		w := want[i]
		if r.header.Key != w.header.Key || r.header.Version != w.header.Version || r.header.CorrelationID != w.header.CorrelationID ||
			(r.header.ClientID == nil) != (w.header.ClientID == nil) || !bytes.Equal(r.body, w.body) {
			t.Fatalf("request %d is %+v with %x, want %+v with %x", i, r.header, r.body, w.header, w.body)
		}
	}
	for _, w := range want {
		if w.header.CorrelationID%4 == 3 {
			continue
		}
		if len(answers) == 0 && breach {
			return
		}
		if len(answers) < 4 {
			t.Fatalf("request %d has no answer", w.header.CorrelationID)
		}
		size := int(binary.BigEndian.Uint32(answers))
		id, body, err := wire.ParseResponse(answers[4:4+size], wire.FlexibleResponseHeader(w.header.Key, w.header.Version))
		if err != nil || id != w.header.CorrelationID || !bytes.Equal(body, w.body) {
			t.Fatalf("answer %d with %x, error %v, to request %d with %x", id, body, err, w.header.CorrelationID, w.body)
		}
		answers = answers[4+size:]
	}
	if len(answers) > 0 {
		t.Fatalf("%d bytes of answers too many", len(answers))
	}
}

// fuzzClient has three calls wait for what the stream holds.
func fuzzClient(t *testing.T, cuts, stream []byte) {
	nc := newPlayed(cuts, stream)
	c := NewClient(nc, ClientOptions{MaxResponse: fuzzMax})
	defer c.Close()
	type answer struct {
		body []byte
		err  error
	}
	var calls sync.WaitGroup
	answers := make([]answer, 3)
	for i := range answers {
		calls.Go(func() {
			frame, err := c.DoFrame(context.Background(), metadata())
			if err == nil {
				answers[i] = answer{body: bytes.Clone(frame.Body())}
				frame.Release()
				return
			}
			answers[i].err = err
		})
		<-nc.wrote // so that calls and answers have one order
	}
	close(nc.begin)
	calls.Wait()
	for i, a := range answers {
		id, body, rest := answerIn(stream)
		if good := id == int64(i); good != (a.err == nil) || good && !bytes.Equal(body, a.body) {
			t.Fatalf("call %d: %x, error %v; the stream holds %d with %x", i, a.body, a.err, id, body)
		} else if !good {
			rest = nil
		}
		stream = rest
	}
}

// answerIn reads the first answer of a stream as plainly as it can be done; its
// id is -1 when there is none.
func answerIn(stream []byte) (id int64, body, rest []byte) {
	if len(stream) < 4 {
		return -1, nil, nil
	}
	size := int(int32(binary.BigEndian.Uint32(stream)))
	if size < 4 || size > fuzzMax || size > len(stream)-4 {
		return -1, nil, nil
	}
	got, body, err := wire.ParseResponse(stream[4:4+size], true)
	if err != nil {
		return -1, nil, nil
	}
	return int64(got), body, stream[4+size:]
}

// played is a connection on which a stream comes in pieces and ends.
type played struct {
	net.Conn // for addresses
	begin    chan struct{}
	cuts     []byte
	stream   []byte
	wrote    chan struct{} // takes one for each write
	out      bytes.Buffer  // the writer's until closed
	closed   chan struct{}
	once     sync.Once
}

func newPlayed(cuts, stream []byte) *played {
	here, _ := net.Pipe()
	return &played{Conn: here, begin: make(chan struct{}), cuts: cuts, stream: stream, wrote: make(chan struct{}, 1000), closed: make(chan struct{})}
}

func (c *played) Read(b []byte) (int, error) {
	select {
	case <-c.begin:
	case <-c.closed:
		return 0, net.ErrClosed
	}
	if len(c.stream) == 0 {
		return 0, io.EOF
	}
	if len(c.cuts) > 0 {
		b, c.cuts = b[:min(len(b), int(c.cuts[0])+1)], c.cuts[1:]
	}
	n := copy(b, c.stream)
	c.stream = c.stream[n:]
	return n, nil
}

func (c *played) Write(b []byte) (int, error) {
	select {
	case c.wrote <- struct{}{}:
	default:
	}
	return c.out.Write(b)
}

func (c *played) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (*played) SetReadDeadline(time.Time) error  { return nil }
func (*played) SetWriteDeadline(time.Time) error { return nil }

// echoed answers with the request's body.
type echoed struct{ body []byte }

func (e echoed) Layout(l *Layout) error { l.Bytes(e.body); return nil }

// one is a listener of the connections that are put into it.
type one struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *one) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *one) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *one) Addr() net.Addr { return &net.TCPAddr{} }

// allocated is how many bytes of heap f took, freed or not. What others took is in
// it, and what was not counted yet: a MiB or two.
func allocated(f func()) uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	before := s[0].Value.Uint64()
	f()
	metrics.Read(s)
	return s[0].Value.Uint64() - before
}
