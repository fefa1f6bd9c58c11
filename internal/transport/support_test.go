package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a server whose handler hands every request to the test.
type bench struct {
	*Server
	requests chan *Request
}

func newBench(t *testing.T, opts Options) *bench {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startBench(t, l, opts)
}

func startBench(t *testing.T, l net.Listener, opts Options) *bench {
	b := &bench{Server: NewServer(l, opts), requests: make(chan *Request, 1000)}
	served := make(chan error, 1)
	go func() { served <- b.Serve(HandlerFunc(func(r *Request) { b.requests <- r })) }()
	t.Cleanup(func() {
		b.Close(canceled(t))
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return b
}

// raw is a client that speaks bytes.
type raw struct {
	t *testing.T
	net.Conn
}

func (b *bench) dial(t *testing.T) *raw {
	t.Helper()
	c, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &raw{t, c}
}

func frameOf(id int32, req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, id)
}

func (c *raw) send(id int32, req kmsg.Request) {
	c.t.Helper()
	c.write(frameOf(id, req))
}

func (c *raw) write(b []byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the correlation id and the rest of the next response.
func (c *raw) read() (int32, []byte) {
	c.t.Helper()
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		c.t.Fatalf("read a response: %v", err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		c.t.Fatalf("read a response: %v", err)
	}
	return int32(binary.BigEndian.Uint32(head[4:])), body
}

func (c *raw) wantID(want int32) []byte {
	c.t.Helper()
	id, body := c.read()
	if id != want {
		c.t.Fatalf("the answer to request %d came, want %d", id, want)
	}
	return body
}

// wantEnd says that the server closed without another byte.
func (c *raw) wantEnd() {
	c.t.Helper()
	var b [1]byte
	if n, err := c.Read(b[:]); n > 0 || err == nil {
		c.t.Fatalf("read %d bytes, error %v; want the end", n, err)
	}
}

func produce() *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version = 9
	return req
}

func produceOf(size int) *kmsg.ProduceRequest {
	req := produce()
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = make([]byte, size)
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "t"
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	return req
}

func metadata() *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 9
	return req
}

func apiVersions(version int16) *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = version
	return req
}

// answerOf makes an empty response to a request.
func answerOf(r *Request) Response {
	resp := wire.NewRequest(r.Header.Key, r.Header.Version).ResponseKind()
	resp.SetVersion(r.Header.Version)
	return Message(resp)
}

// records is a response of one file range.
type records struct {
	file     io.ReaderAt
	off      int64
	n        int
	released func()
}

func (f records) Layout(l *Layout) error {
	l.SetBuffer(append(l.Buffer(), "head"...))
	l.File(f.file, f.off, f.n, f.released)
	l.SetBuffer(append(l.Buffer(), "tail"...))
	return nil
}

func (f records) Discard() { f.released() }

var errDisk = errors.New("disk error")

// brokenFile fails beyond its good bytes.
type brokenFile struct{ good *bytes.Reader }

func (f brokenFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.good.ReadAt(b, off)
	if err != nil {
		err = errDisk
	}
	return n, err
}
