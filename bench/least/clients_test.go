package least

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// dial connects without a client.
func dial(t *testing.T, c *Cluster) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", c.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc.(*net.TCPConn)
}

func wire(req kmsg.Request) []byte { return kmsg.NewRequestFormatter().AppendRequest(nil, req, 1) }

// Pieces of the batch that was left are in the file by then, behind the log's end.
func TestAClientThatLeavesInMidBatchLeavesNothing(t *testing.T) {
	c := serving(t, 1)
	whole := wire(produceOf(8, -1, batchOf(t, strings.Repeat("left", piece))))
	leaver := dial(t, c)
	if _, err := leaver.Write(whole[:3*piece]); err != nil {
		t.Fatal(err)
	}
	if err := leaver.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(leaver); len(got) > 0 || err != nil {
		t.Fatalf("%d bytes came back, %v", len(got), err)
	}
	cl := client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(0)}}))
	r, err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("stays")}).First()
	if err != nil || r.Offset != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	fetches := cl.PollFetches(t.Context())
	if got := fetches.Records(); len(got) != 1 || got[0].Offset != 0 || string(got[0].Value) != "stays" || fetches.Err() != nil {
		t.Errorf("%+v, %v", got, fetches.Err())
	}
}

// badRequests are what no client of a load sends, by what is wrong.
func badRequests(batch []byte) map[string][]byte {
	head := func(size int32, key, version int16, behind ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(size))
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, uint16(key)), uint16(version))
		return append(append(b, 0, 0, 0, 1), behind...)
	}
	tooNew := wire(produceOf(8, -1, batch))
	tooNew[7] = 9
	return map[string][]byte{
		"no header":            head(7, 3, 8),
		"a negative size":      head(-1, 3, 8),
		"no id of the client":  head(8, 3, 8),
		"an id beyond its end": head(10, 3, 8, 0, 1),
		"no such key":          head(8, 99, 0),
		"a negative version":   head(8, 3, -1),
		"Produce too old":      wire(produceOf(2, -1, batch)),
		"Produce too new":      tooNew,
		"Produce with acks=0":  wire(produceOf(8, 0, batch)),
		"Produce of no batch":  wire(produceOf(8, -1, batch[:headerSize-1])),
		"Fetch too old":        wire(&kmsg.FetchRequest{Version: 10}),
	}
}

func TestABadRequestEndsItsConnectionAndNothingElse(t *testing.T) {
	c, end := started(t, 1)
	cl := client(t, c)
	for name, bad := range badRequests(batchOf(t, "a value")) {
		nc := dial(t, c)
		if _, err := nc.Write(bad); err != nil {
			t.Fatal(err)
		}
		if n, err := nc.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%s: an answer came", name)
		}
		if err := cl.Ping(t.Context()); err != nil {
			t.Errorf("%s: another client got %v", name, err)
		}
	}
	if l, err := c.at("t", 0); err != nil || l.next != 0 {
		t.Errorf("the log ends at %d, %v", l.next, err)
	}
	if err := end(); err == nil {
		t.Error("nobody is told")
	}
}

func TestItTellsTheVersionsThatItServes(t *testing.T) {
	cl := client(t, serving(t, 1))
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1"
	resp, err := cl.Broker(1).Request(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int16]span{}
	for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
		got[k.ApiKey] = span{k.MinVersion, k.MaxVersion}
	}
	if len(got) != len(served) || got[keyProduce] != (span{3, 8}) || got[1] != (span{11, 11}) {
		t.Errorf("%v", got)
	}
}

func TestAConnectionThatEndedIsForgotten(t *testing.T) {
	c := serving(t, 1)
	for range 3 {
		nc := dial(t, c)
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(nc); !bytes.Equal(got, nil) || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) > 0 {
		t.Errorf("%d connections are kept", len(c.conns))
	}
}
