package transport

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func connect(t *testing.T, b *bench, opts ClientOptions) *Client {
	t.Helper()
	c, err := Dial(context.Background(), b.Addr().String(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// echo answers every Metadata request with its first topic as the cluster id.
func echo(b *bench, n int) {
	for range n {
		r := <-b.requests
		req := metadata()
		if err := req.ReadFrom(r.Body); err != nil {
			r.CloseConn(err)
			continue
		}
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		resp.ClusterID = req.Topics[0].Topic
		r.Reply(Message(resp))
	}
}

func metadataOf(topic string) *kmsg.MetadataRequest {
	req := metadata()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	return req
}

func TestCallsArePipelinedAndMatched(t *testing.T) {
	b := newBench(t, Options{})
	c := connect(t, b, ClientOptions{ClientID: "peer", MaxInFlight: 8})
	const n = 200
	go echo(b, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			want := string(rune('a' + i))
			resp, err := c.Do(context.Background(), metadataOf(want))
			if err != nil {
				t.Error(err)
				return
			}
			if got := *resp.(*kmsg.MetadataResponse).ClusterID; got != want {
				t.Errorf("the answer for %q, want %q", got, want)
			}
		})
	}
	all.Wait()
}

// Byte fields of an answer are still the same when its frame holds another one.
func TestAnAnswerIsTheCallers(t *testing.T) {
	b := newBench(t, Options{})
	c := connect(t, b, ClientOptions{})
	const n = 50
	go func() {
		for i := range n {
			r := <-b.requests
			resp := kmsg.NewPtrSyncGroupResponse()
			resp.MemberAssignment = bytes.Repeat([]byte{byte('a' + i)}, 300)
			r.Reply(Message(resp))
		}
	}()
	var answers []*kmsg.SyncGroupResponse
	for range n {
		resp, err := c.Do(context.Background(), kmsg.NewPtrSyncGroupRequest())
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, resp.(*kmsg.SyncGroupResponse))
	}
	for i, a := range answers {
		if want := bytes.Repeat([]byte{byte('a' + i)}, 300); !bytes.Equal(a.MemberAssignment, want) {
			t.Errorf("answer %d became %.8q", i, a.MemberAssignment)
		}
	}
}

func TestDoFrameHandsTheBodyOut(t *testing.T) {
	b := newBench(t, Options{})
	c := connect(t, b, ClientOptions{})
	go echo(b, 1)
	frame, err := c.DoFrame(context.Background(), metadataOf("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer frame.Release()
	resp := metadata().ResponseKind().(*kmsg.MetadataResponse)
	if err := resp.ReadFrom(frame.Body()); err != nil || *resp.ClusterID != "x" {
		t.Errorf("cluster id %v, error %v", resp.ClusterID, err)
	}
}

func TestSendExpectsNoAnswer(t *testing.T) {
	b := newBench(t, Options{})
	c := connect(t, b, ClientOptions{})
	if err := c.Send(context.Background(), produce()); err != nil {
		t.Fatal(err)
	}
	(<-b.requests).ReplyNone()
	go echo(b, 1)
	if _, err := c.Do(context.Background(), metadataOf("x")); err != nil {
		t.Error(err)
	}
}

// The end of a peer is seen at once, without a request (R13.6).
func TestTheEndOfAPeerIsSeenAtOnce(t *testing.T) {
	b := newBench(t, Options{})
	c := connect(t, b, ClientOptions{})
	waits := make(chan error)
	go func() {
		_, err := c.Do(context.Background(), metadataOf("x"))
		waits <- err
	}()
	(<-b.requests).CloseConn(errors.New("dies"))
	<-c.Closed()
	if err := <-waits; err == nil {
		t.Error("a call succeeded")
	}
	if c.Err() == nil {
		t.Error("no reason")
	}
	if _, err := c.Do(context.Background(), metadataOf("x")); err == nil {
		t.Error("a later call succeeded")
	}
}

func TestRefusedTellsADeadProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, err = Dial(context.Background(), addr, ClientOptions{})
	if !Refused(err) {
		t.Errorf("error %v", err)
	}
	if Refused(context.DeadlineExceeded) || Refused(nil) || !Refused(syscall.ECONNREFUSED) {
		t.Error("other errors are taken for a refusal")
	}
}

func TestACallThatIsGivenUpDoesNotDisturbOthers(t *testing.T) {
	b := newBench(t, Options{})
	c := connect(t, b, ClientOptions{MaxInFlight: 1})
	ctx, cancel := context.WithCancel(context.Background())
	given := make(chan error)
	go func() {
		_, err := c.Do(ctx, metadataOf("late"))
		given <- err
	}()
	r := <-b.requests
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := c.Do(canceled(t), metadataOf("full")); !errors.Is(err, context.Canceled) {
		t.Errorf("a call beyond the bound: %v", err)
	}
	r.Reply(answerOf(r))
	go echo(b, 1)
	resp, err := c.Do(context.Background(), metadataOf("next"))
	if err != nil {
		t.Fatal(err)
	}
	if got := *resp.(*kmsg.MetadataResponse).ClusterID; got != "next" {
		t.Errorf("the answer for %q", got)
	}
}

func TestWrongAnswersEndTheConnection(t *testing.T) {
	for name, answer := range map[string][]byte{
		"unasked":       {0, 0, 0, 5, 0, 0, 0, 9, 0},
		"oversized":     {0x7f, 0, 0, 0, 0, 0, 0, 0, 0},
		"negative size": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0},
		"cut header":    {0, 0, 0, 4, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			c := NewClient(here, ClientOptions{})
			defer c.Close()
			go func() {
				there.Read(make([]byte, 1000))
				there.Write(answer)
			}()
			if _, err := c.Do(context.Background(), metadataOf("x")); err == nil {
				t.Error("the answer was taken")
			}
			<-c.Closed()
		})
	}
}

func TestCloseFailsTheCallsThatWait(t *testing.T) {
	b := newBench(t, Options{})
	c := connect(t, b, ClientOptions{})
	waits := make(chan error)
	go func() {
		_, err := c.Do(context.Background(), metadataOf("x"))
		waits <- err
	}()
	r := <-b.requests
	c.Close()
	if err := <-waits; !errors.Is(err, ErrClientClosed) {
		t.Errorf("error %v", err)
	}
	r.ReplyNone() // the reader looks at the socket again
	<-r.Conn.Closed()
}

// Calls beyond the bound get their places in the order in which they came, and
// fail with the connection while they stand.
func TestCallsThatWaitForAPlaceGetItInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		b := startBench(t, l, Options{})
		c := NewClient(l.dial(t).Conn, ClientOptions{MaxInFlight: 1})
		defer c.Close()
		const n = 5
		ends := make(chan error, n)
		for i := range n {
			go func() {
				_, err := c.Do(context.Background(), metadataOf(string(rune('a'+i))))
				ends <- err
			}()
			synctest.Wait()
		}
		for i := range n - 2 {
			r := <-b.requests
			req := metadata()
			if err := req.ReadFrom(r.Body); err != nil || *req.Topics[0].Topic != string(rune('a'+i)) {
				t.Fatalf("the call of %q came as number %d, error %v", *req.Topics[0].Topic, i, err)
			}
			r.Reply(answerOf(r))
			if err := <-ends; err != nil {
				t.Fatal(err)
			}
		}
		(<-b.requests).CloseConn(errors.New("dies"))
		for range 2 {
			if err := <-ends; err == nil {
				t.Error("a call succeeded")
			}
		}
	})
}
