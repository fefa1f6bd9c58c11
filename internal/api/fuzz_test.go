package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"reflect"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// dialects is every version of every API that a node of ours serves.
func dialects() (out []wire.Header) {
	for _, table := range []*wire.Versions{wire.BrokerVersions, wire.ControllerVersions} {
		for _, r := range table.Advertised() {
			for v := r.Parse; v <= r.Max; v++ {
				if h := (wire.Header{Key: r.Key, Version: v}); !slices.Contains(out, h) {
					out = append(out, h)
				}
			}
		}
	}
	return out
}

// FuzzRequest takes a request from its bytes to its answer: which chooses API and
// version of the body; a number beyond them says that the body is a whole frame.
// What is decoded survives its own encoding, the memory it takes follows the bytes
// that came, and a broker with a real controller, real logs and a real group
// answers it or closes the connection; either way its next client is served.
func FuzzRequest(f *testing.F) {
	all, cfg := dialects(), testConfig(f, nil)
	for i, h := range all {
		f.Add(uint16(i), wire.NewRequest(h.Key, h.Version).AppendTo(nil))
		if i+1 < len(all) && all[i+1].Key == h.Key {
			continue
		}
		odd := rapid.Custom(func(t *rapid.T) kmsg.Request {
			req := wire.NewRequest(h.Key, h.Version)
			nonsense(t, reflect.ValueOf(req).Elem())
			req.SetVersion(h.Version)
			return req
		})
		for seed := range 3 {
			f.Add(uint16(i), odd.Example(seed+1).AppendTo(nil))
		}
	}
	produce := produceRequest(1, "t", batchOf(record.PlainOptions(), 10), 0)
	f.Add(uint16(slices.Index(all, wire.Header{Key: 0, Version: produce.Version})), produce.AppendTo(nil))
	f.Add(uint16(len(all)), []byte("\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff\x01\x4d\x01x"))
	f.Add(uint16(len(all)), []byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, which uint16, body []byte) {
		var h wire.Header
		if int(which) < len(all) {
			h = all[which]
		} else {
			var err error
			frame := len(body)
			if h, body, err = wire.ParseRequest(body); err != nil {
				return
			}
			if len(body) > frame {
				t.Fatalf("a body of %d bytes in a frame of %d", len(body), frame)
			}
		}
		if fuzzDecode(t, h, body) && wire.BrokerVersions.Serves(h.Key, h.Version) {
			fuzzServe(t, cfg, h, body)
		}
	})
}

// mostDecoded is how many bytes of memory a byte of a message may take.
const mostDecoded = 200

// fuzzDecode checks the decoder. False says that it refuses the body.
func fuzzDecode(t *testing.T, h wire.Header, body []byte) bool {
	req, again := wire.NewRequest(h.Key, h.Version), wire.NewRequest(h.Key, h.Version)
	if req == nil {
		return false
	}
	var err error
	used := allocated(func() { err = req.ReadFrom(body) })
	if most := uint64(4<<20 + mostDecoded*len(body)); used > most {
		t.Fatalf("%s v%d: %d bytes took %d of memory", kmsg.NameForKey(h.Key), h.Version, len(body), used)
	}
	if err != nil {
		return false
	}
	first := req.AppendTo(nil)
	if err := again.ReadFrom(first); err != nil {
		t.Fatalf("%s v%d: %x became %x: %v", kmsg.NameForKey(h.Key), h.Version, body, first, err)
	}
	if second := again.AppendTo(nil); !bytes.Equal(first, second) {
		t.Fatalf("%s v%d: %x became %x", kmsg.NameForKey(h.Key), h.Version, first, second)
	}
	if slices.Contains(groupKeys, kmsg.Key(h.Key)) {
		fuzzGroup(again)
	}
	return true
}

// fuzzGroup hands a request to a group coordinator and lets its time pass.
func fuzzGroup(req kmsg.Request) {
	s := group.New(group.Config{
		MinSession: time.Second, MaxSession: time.Minute, MaxSize: 10, MetadataMax: 16, Retention: time.Minute,
		CheckInterval: 10 * time.Second, WriteTimeout: 5 * time.Second, NewID: func() string { return "id" }, Topics: noTopics{},
	}, 0, wall)
	s.Loaded(0, wall)
	r := s.Handle(0, wall, group.Request{Req: req, ClientID: "c", Host: "/h", To: 1})
	for _, w := range r.Writes {
		s.Committed(1, wall, w.ID)
	}
	s.Tick(model.Time(time.Hour), wall+3_600_000)
	s.Close(model.Time(2*time.Hour), wall)
}

type noTopics struct{}

func (noTopics) Partitions(string) int32           { return 1 }
func (noTopics) Name(model.UUID) (string, bool)    { return "t", true }
func (noTopics) ID(string) (id model.UUID, _ bool) { return id, true }

// fuzzServe sends a request to a broker of its own, and one more.
func fuzzServe(t *testing.T, cfg *config.Config, h wire.Header, body []byte) {
	w := worldOf(t, cfg)
	ids := []model.BrokerID{1}
	w.change(&metalog.Topic{Name: "t", TopicID: model.UUID{0: 1, 15: 1}}, &metalog.Partition{TopicID: model.UUID{0: 1, 15: 1},
		Replicas: ids, ISR: ids, Leader: 1, Directories: []model.UUID{{2, 1}}})
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s, done := transport.NewServer(l, transport.Options{Name: "PLAINTEXT"}), make(chan error, 1)
	go func() { done <- s.Serve(w.api) }()
	defer func() {
		w.api.Close()
		s.Close(context.Background())
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	h.CorrelationID = 1
	frame := wire.AppendRequestHeader(make([]byte, 4), h, wire.Flexible(h.Key, h.Version))
	frame = append(frame, body...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	probe := kmsg.NewRequestFormatter().AppendRequest(nil, apiVersions(0, "", ""), 2)
	if answers := l.exchange(slices.Concat(frame, probe)); len(answers) > 8 {
		fuzzAnswer(t, h, answers)
	}
	if answers := l.exchange(probe); len(answers) < 100 {
		t.Fatalf("%s v%d with %x leaves the next client with %x", kmsg.NameForKey(h.Key), h.Version, body, answers)
	}
}

// fuzzAnswer checks that the answer decodes to the version that asked.
func fuzzAnswer(t *testing.T, h wire.Header, answers []byte) {
	size := int(binary.BigEndian.Uint32(answers))
	id, body, err := wire.ParseResponse(answers[4:4+size], wire.FlexibleResponseHeader(h.Key, h.Version))
	if err == nil && id == 2 {
		return // it was a request without an answer
	}
	resp := wire.NewRequest(h.Key, h.Version).ResponseKind()
	resp.SetVersion(h.Version)
	if err == nil {
		err = resp.ReadFrom(body)
	}
	if err != nil {
		t.Fatalf("%s v%d is answered with %x: %v", kmsg.NameForKey(h.Key), h.Version, answers[:4+size], err)
	}
}

// pipes is a listener of connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// exchange writes frames and returns what comes up to the answer with id 2, or to
// the end of the connection.
func (l *pipes) exchange(frames []byte) (out []byte) {
	here, there := net.Pipe()
	l.conns <- there
	var writing sync.WaitGroup
	writing.Go(func() { here.Write(frames) })
	defer writing.Wait()
	defer here.Close()
	for {
		var size [4]byte
		if _, err := io.ReadFull(here, size[:]); err != nil {
			return out
		}
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(here, body); err != nil {
			return out
		}
		if out = append(append(out, size[:]...), body...); binary.BigEndian.Uint32(body) == 2 {
			return out
		}
	}
}

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
