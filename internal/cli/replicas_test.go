package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-log/tidemark/internal/explain"
)

func TestReplicasAreShownAsTheirLeaderKnowsThem(t *testing.T) {
	detail := kadm.PartitionDetail{Topic: "orders", Partition: 0, Leader: 1, LeaderEpoch: 5, Replicas: []int32{1, 2, 3, 4}, ISR: []int32{1, 2}}
	v := view{
		topics: kadm.TopicDetails{"orders": {Topic: "orders", Partitions: kadm.PartitionDetails{0: detail}}},
		silent: map[int32]string{3: "connection refused"},
		answers: map[int32]*explain.Replicas{
			1: {Broker: 1, Partitions: []explain.Partition{{
				Topic: "orders", Role: "leader", Leader: 1, LeaderEpoch: 5, HW: 10, LEO: 12,
				ISR: []int32{1, 2}, MaximalISR: []int32{1, 2, 3}, MinISR: 2, PendingISR: true, HoldsHW: "b2 has LEO 10",
				Remotes: []explain.Remote{
					{ID: 2, LEO: 10, LastFetchMs: 12, InISR: true},
					{ID: 3, LEO: 4, LastFetchMs: 31500, Why: "lags for 31 s"},
					{ID: 4, LEO: -1, LastFetchMs: -1, Why: "never fetched"},
				},
			}}},
			2: {Broker: 2, Partitions: []explain.Partition{{Topic: "orders", Role: "follower", HW: 10, LEO: 11}}},
		},
	}
	want := strings.TrimPrefix(`
orders-0: leader 1, epoch 5, ISR {1,2}, OSR {3,4}, min ISR 2, asks the controller for {1,2,3}
  broker  role      start  HW  LEO  RemoteLEO  lag  fetched     ISR  why
  b1      leader    0      10  12                               in
  b2      follower  0      10  11   10         2    12 ms ago   in
  b3      ?         ?      ?   ?    4          8    31.5 s ago  out  does not answer: connection refused; lags for 31 s
  b4      ?         ?      ?   ?    ?               never       out  is not in the cluster; never fetched
  HW 10: b2 has LEO 10

`, "\n")
	if diff := cmp.Diff(want, v.render()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (&view{}).render(); got != "there are no topics\n" {
		t.Errorf("an empty cluster shows %q", got)
	}
}

// serveOnce accepts one connection and hands it to talk.
func serveOnce(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		talk(conn)
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// readRequest reads a framed request and returns it without its size.
func readRequest(t *testing.T, conn net.Conn) []byte {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		t.Error(err)
		return nil
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(conn, frame); err != nil {
		t.Error(err)
	}
	return frame
}

func frame(id uint32, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(4+len(body)))
	return append(binary.BigEndian.AppendUint32(out, id), body...)
}

func TestABrokerIsAskedOverTheWire(t *testing.T) {
	address := serveOnce(t, func(conn net.Conn) {
		req := readRequest(t, conn)
		if key := binary.BigEndian.Uint16(req); key != explain.APIKey {
			t.Errorf("API key %d", key)
		}
		var asked explain.ReplicasRequest
		if err := explain.Decode(req[10:], &asked); err != nil || len(asked.Topics) != 1 || asked.Topics[0] != "orders" {
			t.Errorf("asked for %v: %v", asked, err)
		}
		body, _ := explain.Encode(explain.Replicas{Broker: 7})
		_, _ = conn.Write(frame(correlation, body))
	})
	got, err := askReplicas(context.Background(), address, []string{"orders"})
	if err != nil || got.Broker != 7 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestABrokerThatCannotAnswerIsSaidSo(t *testing.T) {
	refusal, _ := explain.Encode(explain.Replicas{Error: "the broker is fenced"})
	for name, c := range map[string]struct {
		answer []byte
		want   string
	}{
		"another make":     {nil, errNotTidemark.Error()},
		"half an answer":   {frame(correlation, refusal)[:9], errNotTidemark.Error()},
		"an error":         {frame(correlation, refusal), "the broker is fenced"},
		"another request":  {frame(9, refusal), "makes no sense"},
		"a hostile length": {[]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1}, "makes no sense"},
		"no JSON":          {frame(correlation, []byte{0, 0, 0, 1, '{'}), "decode"},
	} {
		address := serveOnce(t, func(conn net.Conn) {
			readRequest(t, conn)
			_, _ = conn.Write(c.answer)
		})
		if _, err := askReplicas(context.Background(), address, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := askReplicas(context.Background(), "127.0.0.1:1", nil); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestASilentBrokerDoesNotHoldUpTheUser(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	address := serveOnce(t, func(conn net.Conn) {
		readRequest(t, conn)
		cancel()
		_, _ = io.Copy(io.Discard, conn) // until the client goes
	})
	_, err := askReplicas(ctx, address, nil)
	if err == nil || errors.Is(err, errNotTidemark) {
		t.Errorf("error %v after the user gave up", err)
	}
}

func TestTimesAndOffsetsOfTheCommandLine(t *testing.T) {
	for s, want := range map[string]int64{"@1700000000000": 1700000000000, "@2023-11-14T22:13:20Z": 1700000000000} {
		if ms, ok := parseTime(s); !ok || ms != want {
			t.Errorf("%s is %d, %v", s, ms, ok)
		}
	}
	for _, s := range []string{"@", "@-5", "17", "@yesterday"} {
		if ms, ok := parseTime(s); ok {
			t.Errorf("%s is a time, %d", s, ms)
		}
	}
	for ms, want := range map[int64]string{-1: "never", 999: "999 ms ago", 61500: "61.5 s ago"} {
		if got := ago(ms); got != want {
			t.Errorf("%d ms is %q, want %q", ms, got, want)
		}
	}
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := newProgress(&out, "produced", now)
	p.show(now.Add(time.Second), 10, 100)
	p.end(now.Add(2*time.Second), 20, 200)
	if out.Len() > 0 {
		t.Errorf("a file got %q", out.String())
	}
	p.w = &out
	p.show(now.Add(progressEvery/2), 5, 50)
	p.show(now.Add(progressEvery), 10, 100)
	p.end(now.Add(2*time.Second), 20, 2_000_000)
	want := "\r\x1b[Kproduced 10 records, 0.0 MB, 100 records/s\r\x1b[Kproduced 20 records, 2.0 MB, 10 records/s\n"
	if out.String() != want {
		t.Errorf("drew %q, want %q", out.String(), want)
	}
}
