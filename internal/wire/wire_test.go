package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// apacheTable reads what kafka-broker-api-versions printed.
func apacheTable(t *testing.T, file string) map[int16]Range {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	row := regexp.MustCompile(`^\w+\((\d+)\): (\d+)(?: to (\d+))?$`)
	table := map[int16]Range{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := row.FindStringSubmatch(lines.Text())
		if m == nil {
			continue // a key that it knows and does not serve
		}
		num := func(s string) int16 { n, _ := strconv.Atoi(s); return int16(n) }
		r := Range{Key: num(m[1]), Min: num(m[2]), Max: num(m[2])}
		if m[3] != "" {
			r.Max = num(m[3])
		}
		table[r.Key] = r
	}
	return table
}

// absent are Apache Kafka's keys that we do not serve, so that nothing goes
// missing by accident.
var absent = map[string][]int16{
	"broker": {
		17, 36, // SaslHandshake, SaslAuthenticate
		24, 25, 26, 27, 28, 65, 66, // transactions
		29, 30, 31, // ACLs
		34,             // AlterReplicaLogDirs: one log directory
		38, 39, 40, 41, // delegation tokens
		48, 49, // quotas
		50, 51, // SCRAM
		68, 69, // KIP-848 groups
		76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92, // share groups
		80, 81, 94, // voter changes
		88, 89, 93, // streams groups
	},
	"controller": {
		17, 36, 29, 30, 31, 32, 38, 39, 40, 41, 49, 50, 51,
		52, 53, 54, // KRaft's own elections: etcd raft under private keys
		58, // Envelope: brokers forward the plain request
		80, 81, 82, 94,
	},
}

// The ranges that we advertise are Apache's, key by key.
func TestVersionsAreApaches(t *testing.T) {
	for name, ours := range map[string]*Versions{"broker": BrokerVersions, "controller": ControllerVersions} {
		t.Run(name, func(t *testing.T) {
			apache := apacheTable(t, "testdata/api-versions-"+name+".txt")
			for _, r := range ours.Advertised() {
				if a := apache[r.Key]; a.Min != r.Min || a.Max != r.Max {
					t.Errorf("key %d: we say %d to %d, Apache Kafka 4.4 says %d to %d", r.Key, r.Min, r.Max, a.Min, a.Max)
				}
				delete(apache, r.Key)
			}
			for _, key := range absent[name] {
				if _, ok := apache[key]; !ok {
					t.Errorf("key %d is named absent and is not missing", key)
				}
				delete(apache, key)
			}
			for key, r := range apache {
				t.Errorf("key %d, versions %d to %d of Apache Kafka, is neither served nor named absent", key, r.Min, r.Max)
			}
		})
	}
}

func TestOnlyProduceIsAdvertisedBelowWhatIsServed(t *testing.T) {
	for _, r := range BrokerVersions.Advertised() {
		if (r.Parse != r.Min) != (r.Key == 0) {
			t.Errorf("key %d: advertised from %d, served from %d", r.Key, r.Min, r.Parse)
		}
	}
	for version, want := range map[int16]bool{2: false, 3: true, 13: true, 14: false, -1: false} {
		if got := BrokerVersions.Serves(0, version); got != want {
			t.Errorf("Produce v%d served: %v", version, got)
		}
	}
}

func TestPrivateKeysAreServedAndNotAdvertised(t *testing.T) {
	v := ControllerVersions.With(Range{Key: FirstPrivateKey, Min: 0, Max: 3})
	if !v.Serves(FirstPrivateKey, 3) || v.Serves(FirstPrivateKey, 4) {
		t.Error("the private key's range is not kept")
	}
	if got, want := len(v.Advertised()), len(ControllerVersions.Advertised()); got != want {
		t.Errorf("%d keys advertised, want %d", got, want)
	}
	if Flexible(FirstPrivateKey, 3) {
		t.Error("a private key is flexible")
	}
}

// kmsg's own formatter writes the headers that we read, for every key and
// version, whatever the client id (case B11).
func TestRequestHeadersOfAllVersions(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 1000))
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		known := kmsg.RequestForKey(key)
		if known == nil || key == keyControlledShutdown { // kmsg does not format its version 0
			continue
		}
		for version := int16(0); version <= known.MaxVersion(); version++ {
			for _, id := range []*string{nil, kmsg.StringPtr(""), kmsg.StringPtr("é"), &long} {
				req := NewRequest(key, version)
				formatter := kmsg.NewRequestFormatter()
				if id != nil {
					formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID(*id))
				}
				frame := formatter.AppendRequest(nil, req, 77)[4:]
				h, body, err := ParseRequest(frame)
				if err != nil {
					t.Fatalf("key %d version %d: %v", key, version, err)
				}
				if h.Key != key || h.Version != version || h.CorrelationID != 77 {
					t.Fatalf("key %d version %d: header %+v", key, version, h)
				}
				if (h.ClientID == nil) != (id == nil) || id != nil && *h.ClientID != *id {
					t.Fatalf("key %d version %d: client id %v, want %v", key, version, h.ClientID, id)
				}
				if want := req.AppendTo(nil); !bytes.Equal(body, want) {
					t.Fatalf("key %d version %d: body %x, want %x", key, version, body, want)
				}
				again := append(AppendRequestHeader(nil, h, req.IsFlexible()), body...)
				if !bytes.Equal(again, frame) {
					t.Fatalf("key %d version %d: our header %x, kmsg's %x", key, version, again, frame)
				}
			}
		}
	}
}

func TestRequestHeaderTagsAreSkipped(t *testing.T) {
	frame := AppendRequestHeader(nil, Header{Key: 3, Version: 12}, false)
	frame = append(frame, 1, 77, 5, 1, 2, 3, 4, 5) // one tag, 77, of 5 bytes
	frame = append(frame, "body"...)
	if _, body, err := ParseRequest(frame); err != nil || string(body) != "body" {
		t.Errorf("body %q, error %v", body, err)
	}
}

func TestCutRequestHeadersAreErrors(t *testing.T) {
	whole := AppendRequestHeader(nil, Header{Key: 3, Version: 12, ClientID: kmsg.StringPtr("client")}, false)
	whole = append(whole, 1, 200, 1, 2, 'a', 'b')
	for n := range whole {
		if _, _, err := ParseRequest(whole[:n]); err == nil {
			t.Errorf("a header cut after %d of %d bytes was accepted", n, len(whole))
		}
	}
}

func TestSameClientIDIsNotAllocatedAgain(t *testing.T) {
	frame := AppendRequestHeader(nil, Header{Key: 1, Version: 17, ClientID: kmsg.StringPtr("consumer-1")}, true)
	var h Header
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := h.Parse(frame); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations per request", allocs)
	}
}

// ApiVersions keeps the header of version 0 for ever (case B3).
func TestResponseHeaders(t *testing.T) {
	for _, c := range []struct {
		key, version int16
		size         int
	}{{18, 0, 4}, {18, 3, 4}, {18, 5, 4}, {3, 8, 4}, {3, 9, 5}, {1, 11, 4}, {1, 12, 5}, {FirstPrivateKey, 0, 4}} {
		head := AppendResponseHeader(nil, c.key, c.version, 9)
		if len(head) != c.size {
			t.Errorf("key %d version %d: a header of %d bytes, want %d", c.key, c.version, len(head), c.size)
		}
		id, body, err := ParseResponse(append(head, "body"...), FlexibleResponseHeader(c.key, c.version))
		if id != 9 || string(body) != "body" || err != nil {
			t.Errorf("key %d version %d: read back %d %q %v", c.key, c.version, id, body, err)
		}
	}
}

// Every request and response that we serve survives encoding, decoding and
// encoding again, in every version.
func TestCodecRoundTrips(t *testing.T) {
	for _, table := range []*Versions{BrokerVersions, ControllerVersions} {
		for _, r := range table.Advertised() {
			for version := r.Min; version <= r.Max; version++ {
				if NewRequest(r.Key, version) == nil {
					t.Fatalf("kmsg does not know key %d version %d", r.Key, version)
				}
				t.Run(fmt.Sprintf("%s-v%d", kmsg.NameForKey(r.Key), version), func(t *testing.T) {
					rapid.Check(t, func(rt *rapid.T) { roundTrip(rt, r.Key, version) })
				})
			}
		}
	}
}
