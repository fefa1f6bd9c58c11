package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/wire"
)

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Produces overlap and are answered in request order, whatever the order in
// which the handler answers (R13.8, case B9).
func TestProducesOverlapAndAnswersKeepTheirOrder(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	const n = 50
	for id := range int32(n) {
		c.send(id, produce())
	}
	var requests []*Request
	for range n {
		requests = append(requests, <-b.requests)
	}
	for _, i := range rand.Perm(n) {
		requests[i].Reply(answerOf(requests[i]))
	}
	for id := range int32(n) {
		c.wantID(id)
	}
}

func TestPipelinedProducesOfAConnectionAreBounded(t *testing.T) {
	b := newBench(t, Options{MaxPipelined: 2})
	c := b.dial(t)
	for id := range int32(3) {
		c.send(id, produce())
	}
	first, second := <-b.requests, <-b.requests
	second.Reply(answerOf(second)) // waits for the first: no place for the third yet
	first.Reply(answerOf(first))
	third := <-b.requests
	third.Reply(answerOf(third))
	for id := range int32(3) {
		c.wantID(id)
	}
}

// A Produce with acks=0 gets no answer; the next answer belongs to the next
// request (case B30).
func TestRequestsWithoutAnswerSendNothing(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	c.send(1, produce())
	c.send(2, metadata())
	(<-b.requests).ReplyNone()
	r := <-b.requests
	r.Reply(answerOf(r))
	c.wantID(2)
}

func TestCloseConnSendsTheEarlierAnswersAndEnds(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	c.send(1, produce())
	c.send(2, produce())
	c.send(3, produce())
	first, second, third := <-b.requests, <-b.requests, <-b.requests
	third.Reply(answerOf(third))
	second.CloseConn(errors.New("bad batch"))
	first.Reply(answerOf(first))
	c.wantID(1)
	c.wantEnd()
	<-second.Conn.Closed()
}

// An unknown key or version closes only its own connection, without a byte
// (case B8); a too new ApiVersions is handed over (case B1).
func TestWhatIsNotServedClosesOnlyItsConnection(t *testing.T) {
	b := newBench(t, Options{})
	good := b.dial(t)
	for name, frame := range map[string][]byte{
		"unknown key":      append([]byte{0, 0, 0, 10}, wire.AppendRequestHeader(nil, wire.Header{Key: 9999}, false)...),
		"negative key":     append([]byte{0, 0, 0, 10}, wire.AppendRequestHeader(nil, wire.Header{Key: -1}, false)...),
		"version too new":  append([]byte{0, 0, 0, 10}, wire.AppendRequestHeader(nil, wire.Header{Key: 3, Version: 14}, false)...),
		"version too old":  append([]byte{0, 0, 0, 10}, wire.AppendRequestHeader(nil, wire.Header{Key: 1, Version: 3}, false)...),
		"old Produce":      append([]byte{0, 0, 0, 10}, wire.AppendRequestHeader(nil, wire.Header{Key: 0, Version: 2}, false)...),
		"TLS hello":        []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
		"HTTP":             []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"negative size":    {0xff, 0xff, 0xff, 0xff, 0, 3, 0, 9, 0, 0, 0, 0},
		"no header":        {0, 0, 0, 4, 0, 3, 0, 9},
		"cut header":       {0, 0, 0, 9, 0, 3, 0, 9, 0, 0, 0, 0, 0},
		"big other frame":  {0, 0x90, 0, 0, 0, 3, 0, 9, 0, 0, 0, 0},
		"too big for all":  {0x7f, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0},
		"negative version": append([]byte{0, 0, 0, 10}, wire.AppendRequestHeader(nil, wire.Header{Key: 18, Version: -1}, false)...),
	} {
		t.Run(name, func(t *testing.T) {
			c := b.dial(t)
			c.write(frame)
			c.wantEnd()
		})
	}
	good.write(append([]byte{0, 0, 0, 11}, wire.AppendRequestHeader(nil, wire.Header{Key: 18, Version: 99, CorrelationID: 5}, true)...))
	r := <-b.requests
	if r.Header.Version != 99 {
		t.Fatalf("ApiVersions v%d was handed over", r.Header.Version)
	}
	r.Reply(Message(apiVersions(0).ResponseKind()))
	good.wantID(5)
}

func TestFramesArriveInAnyPieces(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	frame := frameOf(1, produceOf(3000))
	go func() {
		for i := range frame {
			if _, err := c.Write(frame[i : i+1]); err != nil {
				return
			}
		}
	}()
	r := <-b.requests
	if want := frame[4:][len(frame)-4-len(r.Body):]; !bytes.Equal(r.Body, want) {
		t.Error("the body changed on its way")
	}
	r.Reply(answerOf(r))
	c.wantID(1)
}

func TestLargeProduceFramesArriveWhole(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	req := produceOf(9 << 20)
	records := req.Topics[0].Partitions[0].Records
	for i := range records {
		records[i] = byte(rand.Uint32())
	}
	go c.Write(frameOf(1, req))
	r := <-b.requests
	if !bytes.Contains(r.Body, records) {
		t.Error("the records changed on their way")
	}
	r.Reply(answerOf(r))
	c.wantID(1)
	if got := b.InFlight(); got != 0 && b.Connections() > 0 {
		// The writer gives the frame back after the answer left; wait for it by
		// another round trip.
		c.send(2, metadata())
		r := <-b.requests
		r.Reply(answerOf(r))
		c.wantID(2)
		if got := b.InFlight(); got != 0 {
			t.Errorf("%d bytes in flight after the answer", got)
		}
	}
}

// A large frame is waited for in large steps. However its bytes come, and however
// little the socket holds, it arrives whole, and so do small ones behind it.
func TestLargeFramesThatTrickleInArriveWhole(t *testing.T) {
	for _, buffer := range []int{0, 64 << 10} {
		b := newBench(t, Options{ReceiveBuffer: buffer})
		c := b.dial(t)
		for i, size := range []int{lowMin - 100, lowMin, lowMin + lowMost + 1, 3 << 20} {
			stream := slices.Concat(frameOf(int32(2*i), produceOf(size)), frameOf(int32(2*i+1), metadata()))
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for piece := range slices.Chunk(stream, len(stream)/37+1) {
					c.write(piece)
					runtime.Gosched()
				}
			}()
			r := <-b.requests
			if got := r.Header.CorrelationID; got != int32(2*i) || len(r.Body) < size {
				t.Errorf("request %d of %d bytes, want %d of %d", got, len(r.Body), 2*i, size)
			}
			r.Reply(answerOf(r))
			r = <-b.requests
			r.Reply(answerOf(r))
			c.wantID(int32(2 * i))
			c.wantID(int32(2*i + 1))
			<-sent
		}
	}
}

// sight is a preview that keeps what it was told.
type sight struct {
	version int16
	calls   int
	seen    []byte
}

func (s *sight) Extend(frame []byte) {
	if s.calls++; !bytes.HasPrefix(frame, s.seen) {
		panic("what came before has changed")
	}
	s.seen = slices.Clone(frame)
}

// A preview is told of every byte of a large Produce, as it comes, before the request
// is handed over; of nothing else.
func TestLargeProducesAreSeenWhileTheyArrive(t *testing.T) {
	b := newBench(t, Options{Preview: func(version int16) Preview { return &sight{version: version} }})
	c := b.dial(t)
	for i, req := range []kmsg.Request{produceOf(previewMin), produceOf(100), metadata(), produceOf(2 << 20)} {
		c.send(int32(i), req)
		r := <-b.requests
		s, _ := r.Preview.(*sight)
		if large := i == 0 || i == 3; (s != nil) != large {
			t.Errorf("request %d is seen: %v", i, s != nil)
		} else if large && (s.version != 9 || !bytes.Equal(s.seen, frameOf(int32(i), req)[4:]) || !bytes.Equal(r.Frame(), s.seen)) {
			t.Errorf("request %d of version %d was seen as %d bytes in %d calls", i, s.version, len(s.seen), s.calls)
		}
		r.Reply(answerOf(r))
		c.wantID(int32(i))
	}
}

// Readers hold back when the listener's producers have too many bytes in
// flight; other requests still get through.
func TestBytesInFlightAreBounded(t *testing.T) {
	b := newBench(t, Options{MaxInFlight: 150_000})
	one, two, three := b.dial(t), b.dial(t), b.dial(t)
	one.send(1, produceOf(100_000))
	r1 := <-b.requests
	two.send(1, produceOf(100_000))
	three.send(1, metadata())
	r3 := <-b.requests
	if r3.Header.Key != 3 {
		t.Fatal("a second large Produce was read beyond the bound")
	}
	r3.Reply(answerOf(r3))
	three.wantID(1)
	r1.Free() // its bytes are on disk, its answer may wait
	r2 := <-b.requests
	if len(r2.Body) < 100_000 {
		t.Errorf("a body of %d bytes", len(r2.Body))
	}
	r2.Reply(answerOf(r2))
	two.wantID(1)
	r1.Reply(answerOf(r1))
	one.wantID(1)
}

// A connection whose requests are not stored yet is read no further, and takes
// nothing from other connections.
func TestAConnectionHoldsOnlySoMuchOfItsRequests(t *testing.T) {
	b := newBench(t, Options{})
	c, other := b.dial(t), b.dial(t)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for id := range int32(3) {
			c.send(id, produceOf(connWindow*7/16))
		}
	}()
	first, second := <-b.requests, <-b.requests
	other.send(1, produceOf(connWindow*7/16))
	r := <-b.requests
	r.Reply(answerOf(r))
	other.wantID(1)
	if len(b.requests) > 0 {
		t.Error("a third request was handed over while two fill the window")
	}
	first.Free() // stored; its answer may wait
	third := <-b.requests
	for id, r := range []*Request{first, second, third} {
		r.Reply(answerOf(r))
		c.wantID(int32(id))
	}
	<-sent
}

func TestAProduceBeyondTheWholeBoundGetsInAlone(t *testing.T) {
	b := newBench(t, Options{MaxInFlight: 1000})
	c := b.dial(t)
	c.send(1, produceOf(100_000))
	r := <-b.requests
	r.Reply(answerOf(r))
	c.wantID(1)
}

func TestRetainedBodiesOutliveTheAnswer(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	c.send(1, produceOf(600))
	r := <-b.requests
	r.Retain()
	body := r.Body
	want := bytes.Clone(body)
	r.ReplyNone()
	for id := int32(2); id < 20; id++ { // other frames of the same class come and go
		c.send(id, produceOf(700))
		r := <-b.requests
		r.Reply(answerOf(r))
		c.wantID(id)
	}
	if !bytes.Equal(body, want) {
		t.Error("a retained body was overwritten")
	}
	r.Release()
}

func TestFileRangesAreSentAndReleased(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	content := make([]byte, 3*sendChunk+77)
	for i := range content {
		content[i] = byte(i * 7)
	}
	c.send(1, metadata())
	r := <-b.requests
	released := make(chan struct{})
	r.Reply(records{bytes.NewReader(content), 5, len(content) - 5, func() { close(released) }})
	body := c.wantID(1)
	want := append(append([]byte("\x00head"), content[5:]...), "tail"...)
	if !bytes.Equal(body, want) {
		t.Errorf("a response of %d bytes, want %d, or other bytes", len(body), len(want))
	}
	<-released
}

// The size is on its way when a file turns out unreadable: the connection ends,
// and nothing is made up.
func TestAFailedReadClosesTheConnection(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	c.send(1, metadata())
	r := <-b.requests
	released := make(chan struct{})
	r.Reply(records{brokenFile{bytes.NewReader(make([]byte, 100))}, 0, 200, func() { close(released) }})
	got, err := io.ReadAll(c)
	if len(got) >= 200 {
		t.Errorf("%d bytes came, error %v", len(got), err)
	}
	<-released
}

func TestAnswersToGoneClientsAreDiscarded(t *testing.T) {
	b := newBench(t, Options{StallLimit: time.Millisecond})
	c := b.dial(t)
	c.send(1, produce())
	r := <-b.requests
	c.Close()
	<-r.Conn.Closed()
	released := make(chan struct{})
	r.Reply(records{released: func() { close(released) }})
	<-released
}

// A reset says that nobody reads, whatever the client waited for.
func TestAResetEndsAConnectionThatOwesAnswers(t *testing.T) {
	for name, req := range map[string]kmsg.Request{"produce": produce(), "metadata": metadata()} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{StallLimit: time.Hour})
			c := b.dial(t)
			c.send(1, req)
			r := <-b.requests
			c.Conn.(*net.TCPConn).SetLinger(0)
			c.Close()
			<-r.Conn.Closed()
		})
	}
}

func TestAClientThatEndedItsOwnSideGetsItsAnswers(t *testing.T) {
	for name, req := range map[string]kmsg.Request{"produce": produce(), "metadata": metadata()} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{})
			c := b.dial(t)
			c.send(1, req)
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			r := <-b.requests
			r.Reply(answerOf(r))
			c.wantID(1)
			c.wantEnd()
		})
	}
}

func TestAnsweringTwicePanics(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	c.send(1, produce())
	r := <-b.requests
	r.ReplyNone()
	defer func() {
		if recover() == nil {
			t.Error("a second answer was taken")
		}
	}()
	r.ReplyNone()
}

// Close answers what was handed over, then ends the connections (case B254).
func TestCloseWaitsForTheAnswersThatAreOwed(t *testing.T) {
	b := newBench(t, Options{})
	c, idle := b.dial(t), b.dial(t)
	c.send(1, metadata())
	r := <-b.requests
	closed := make(chan error)
	go func() { closed <- b.Close(context.Background()) }()
	idle.wantEnd()
	r.Reply(answerOf(r))
	c.wantID(1)
	c.wantEnd()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", b.Addr().String()); !Refused(err) {
		t.Errorf("a dial after Close: %v", err)
	}
}

func TestCloseCutsWhenItsTimeIsUp(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial(t)
	c.send(1, metadata())
	r := <-b.requests
	if err := b.Close(canceled(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	c.wantEnd()
	r.ReplyNone()
}

// 500 idle connections of a test cluster must not cost much.
func TestIdleConnectionsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("opens 500 connections")
	}
	b := newBench(t, Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 500
	for range n {
		c := b.dial(t)
		c.send(1, metadata())
		r := <-b.requests
		r.Reply(answerOf(r))
		c.wantID(1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := (int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)) / n
	t.Logf("%d bytes for each connection, the client's side included", per)
	if per > 24<<10 {
		t.Errorf("%d bytes for each idle connection", per)
	}
}

func TestListenSaysWhichAddressFailed(t *testing.T) {
	b := newBench(t, Options{})
	_, err := Listen(b.Addr().String(), Options{})
	if err == nil || !strings.Contains(err.Error(), b.Addr().String()) {
		t.Errorf("error %v", err)
	}
}

func TestClientSoftwareIsRemembered(t *testing.T) {
	b := newBench(t, Options{Name: "INTERNAL"})
	c := b.dial(t)
	c.send(1, metadata())
	r := <-b.requests
	if got := r.Conn.Client(); got != (ClientSoftware{}) {
		t.Errorf("software %v before it was told", got)
	}
	r.Conn.SetClient(ClientSoftware{"librdkafka", "2.10.0"})
	if got := r.Conn.Client().Name; got != "librdkafka" || r.Conn.Listener() != "INTERNAL" {
		t.Errorf("software %q on listener %q", got, r.Conn.Listener())
	}
	r.Reply(answerOf(r))
	c.wantID(1)
}
