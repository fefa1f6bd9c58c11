package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/wire"
	"github.com/tidemark-log/tidemark/tidetest"
)

// versionsRequest is an ApiVersions of a version, by software with a good name.
func versionsRequest(version int16) *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = version, "case", "1.0"
	return req
}

// advertised is what a broker says it serves.
func (s *socket) advertised() []kmsg.ApiVersionsResponseApiKey {
	s.t.Helper()
	return s.exchange(versionsRequest(0)).(*kmsg.ApiVersionsResponse).ApiKeys
}

// B1: an ApiVersions that is too new is answered in the oldest form, and the
// connection goes on.
func TestATooNewApiVersionsIsAnsweredInTheOldestForm(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		s := w.socket(1)
		newest := int16(0)
		for _, k := range s.advertised() {
			if k.ApiKey == 18 {
				newest = k.MaxVersion
			}
		}
		for _, version := range []int16{newest + 1, 99, 1<<15 - 1} {
			request := requestBytes(versionsRequest(3), 5)
			binary.BigEndian.PutUint16(request[2:], uint16(version))
			s.put(request)
			c := &cursor{t, s.mustTake(5)}
			code(t, fmt.Sprint("version ", version), c.int16(), model.ErrUnsupportedVersion)
			own := false
			for range c.int32() {
				key, least, most := c.int16(), c.int16(), c.int16()
				own = own || key == 18 && least == 0 && most == newest
			}
			if !own || len(c.b) != 0 {
				t.Errorf("version %d: the range of ApiVersions is told: %v; %d bytes too many", version, own, len(c.b))
			}
			if n := len(s.advertised()); n < 30 {
				t.Errorf("version 0 on the same connection tells of %d keys", n)
			}
		}
	})
}

// B3: the answer to ApiVersions keeps the old response header in all versions.
func TestApiVersionsKeepsTheOldResponseHeader(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		s := w.socket(1)
		known := len(s.advertised())
		for version := range int16(6) {
			s.put(requestBytes(versionsRequest(version), 9))
			c := &cursor{t, s.mustTake(9)}
			code(t, fmt.Sprint("version ", version), c.int16(), model.None)
			n := 0
			if version < 3 {
				n = int(c.int32())
			} else {
				n = c.uvarint() - 1
			}
			for range n {
				if c.skip(6); version >= 3 {
					c.tags()
				}
			}
			if version >= 1 && c.int32() != 0 {
				t.Errorf("version %d: a throttle time", version)
			}
			if version >= 3 {
				c.tags()
			}
			if n != known || len(c.b) != 0 {
				t.Errorf("version %d: %d keys of %d, %d bytes are left", version, n, known, len(c.b))
			}
		}
	})
}

// B4: what a client calls itself is checked.
func TestTheNameOfAClientIsChecked(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		s := w.socket(1)
		for _, c := range []struct {
			name, version string
			want          model.Error
		}{
			{"a b", "1.0", model.ErrInvalidRequest}, {"", "1.0", model.ErrInvalidRequest}, {"-x", "1", model.ErrInvalidRequest},
			{"x", "", model.ErrInvalidRequest}, {"x", "1.", model.ErrInvalidRequest}, {"x\n", "1", model.ErrInvalidRequest},
			{"apache-kafka-java", "3.9.0-rc1", model.None}, {"librdkafka", "2.10.0", model.None}, {"x", "1", model.None},
		} {
			req := versionsRequest(3)
			req.ClientSoftwareName, req.ClientSoftwareVersion = c.name, c.version
			resp := s.exchange(req).(*kmsg.ApiVersionsResponse)
			code(t, fmt.Sprintf("%q %q", c.name, c.version), resp.ErrorCode, c.want)
		}
		if len(s.advertised()) == 0 {
			t.Error("the connection is of no use any more")
		}
	})
}

// B6: the ranges keep the features of old librdkafka on. Those that are not
// there are deviation 12.
func TestRangesKeepOldClientsFeatures(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		ranges := map[int16][2]int16{}
		for _, k := range w.socket(1).advertised() {
			if _, twice := ranges[k.ApiKey]; twice || k.MinVersion > k.MaxVersion || k.MinVersion < 0 {
				t.Errorf("key %d: versions %d to %d, twice: %v", k.ApiKey, k.MinVersion, k.MaxVersion, twice)
			}
			ranges[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
		}
		for key, versions := range map[kmsg.Key][]int16{
			kmsg.Produce: {0, 2, 3, 7}, kmsg.Fetch: {4, 10}, kmsg.ListOffsets: {1}, kmsg.FindCoordinator: {0},
			kmsg.OffsetCommit: {2}, kmsg.OffsetFetch: {1}, kmsg.JoinGroup: {0}, kmsg.SyncGroup: {0}, kmsg.Heartbeat: {0},
			kmsg.LeaveGroup: {0}, kmsg.InitProducerID: {0}, kmsg.ApiVersions: {0},
		} {
			r, there := ranges[int16(key)]
			for _, v := range versions {
				if !there || v < r[0] || v > r[1] {
					t.Errorf("%s v%d is not among %v", key.Name(), v, r)
				}
			}
		}
	})
}

// B6: every advertised version of every key answers, but the Produce versions that
// old clients only look for.
func TestEveryAdvertisedVersionAnswers(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		for _, k := range w.socket(1).advertised() {
			for v := k.MinVersion; v <= k.MaxVersion; v++ {
				req := w.sound(k.ApiKey, v)
				if k.ApiKey == 0 && v < 3 {
					s := w.socket(1)
					s.put(requestBytes(req, 1))
					s.ends(fmt.Sprint("Produce v", v), time.Second)
					continue
				}
				s := w.socket(1)
				s.exchange(req)
				s.Close()
			}
		}
	})
}

// sound is a request that makes sense and asks for little.
func (w *world) sound(key, version int16) kmsg.Request {
	w.t.Helper()
	switch req := kmsg.RequestForKey(key).(type) {
	case *kmsg.ProduceRequest:
		req = produceRequest("t", 0, -1, time.Second, batch("x"))
		req.Version, req.Topics[0].TopicID = version, w.topicID("t")
		return req
	case *kmsg.FetchRequest:
		f := at("t", 0)
		f.version = version
		req = f.request()
		req.Topics[0].TopicID = w.topicID("t")
		return req
	case *kmsg.ApiVersionsRequest:
		return versionsRequest(version)
	case *kmsg.UnregisterBrokerRequest:
		req.Version, req.BrokerID = version, 99
		return req
	default:
		req.SetVersion(version)
		return fillIn(req)
	}
}

// fillIn gives a request of an administrator or a group its one element.
func fillIn(req kmsg.Request) kmsg.Request {
	switch req := req.(type) {
	case *kmsg.ListOffsetsRequest:
		req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: -1}}}}
	case *kmsg.MetadataRequest:
		name := "t"
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
	case *kmsg.OffsetCommitRequest:
		req.Group, req.Generation = "g", -1
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}}}
	case *kmsg.OffsetFetchRequest:
		req.Group = "g"
	case *kmsg.FindCoordinatorRequest:
		req.CoordinatorKey, req.CoordinatorKeys = "g", []string{"g"}
	case *kmsg.JoinGroupRequest:
		req.Group, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis, req.ProtocolType = "g", 6000, 6000, "consumer"
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0}}}
	case *kmsg.CreateTopicsRequest:
		req.TimeoutMillis, req.ValidateOnly = 1000, true
		req.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "u", NumPartitions: 1, ReplicationFactor: 1}}
	case *kmsg.DescribeConfigsRequest:
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: "t"}}
	case *kmsg.OffsetForLeaderEpochRequest:
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: -1}}}}
	}
	return req
}

// counter counts the lines of a log.
type counter struct {
	lines chan struct{}
	out   io.Writer
}

func (c counter) Write(b []byte) (int, error) {
	c.lines <- struct{}{}
	return c.out.Write(b)
}

// B8: a request that nobody serves ends its own connection, and no other.
func TestARequestThatNobodyServesEndsItsConnectionOnly(t *testing.T) {
	log := counter{make(chan struct{}, 1000), io.Discard}
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		before := len(log.lines)
		others := w.socket(1)
		n := 0
		for _, r := range others.advertised() {
			for _, v := range []int16{r.MaxVersion + 1, r.MinVersion - 1, 99, -1} {
				if r.ApiKey == 18 && v > 0 || v >= r.MinVersion && v <= r.MaxVersion {
					continue
				}
				n++
				w.unserved(r.ApiKey, v)
			}
			if len(others.advertised()) == 0 {
				t.Fatal("another connection suffers")
			}
		}
		for _, key := range []int16{9999, -1, 1 << 14, -1 << 15} {
			n++
			w.unserved(key, 0)
		}
		w.mustProduce("t", "x")
		if lines := len(log.lines) - before; lines == 0 || lines > n {
			t.Errorf("%d lines in the log tell of %d bad requests", lines, n)
		}
	}, tidetest.Log(slog.New(slog.NewTextHandler(log, nil))))
}

// unserved checks that a broker closes a connection that asks for a key and
// version which it does not serve.
func (w *world) unserved(key, version int16) {
	w.t.Helper()
	s := w.socket(1)
	request := requestBytes(versionsRequest(0), 3)
	binary.BigEndian.PutUint16(request, uint16(key))
	binary.BigEndian.PutUint16(request[2:], uint16(version))
	s.put(request)
	s.ends(fmt.Sprintf("key %d version %d", key, version), time.Second)
}

// B9: answers leave a connection in the order of its requests.
func TestAnswersLeaveInTheOrderOfTheRequests(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		leader := w.Leader("t", 0)
		for _, f := range w.followers("t") {
			w.Pause(f)
		}
		s := w.socket(leader)
		start := time.Now()
		requests := []kmsg.Request{produceRequest("t", 0, -1, 2*time.Second, batch("x")), w.sound(3, 12), versionsRequest(0), w.sound(2, 7)}
		for i, req := range requests {
			s.put(requestBytes(req, int32(i)))
		}
		if b, err := s.take(1900 * time.Millisecond); err == nil {
			t.Errorf("%d bytes came before the first request was answered", len(b))
		}
		p := decoded(t, requests[0], s.mustTake(0)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		code(t, "acks=all", p.ErrorCode, model.ErrRequestTimedOut, model.ErrNotEnoughReplicasAfterAppend)
		about(t, "the first answer", time.Since(start), 2*time.Second, 200*time.Millisecond)
		for i := 1; i < len(requests); i++ {
			decoded(t, requests[i], s.mustTake(int32(i)))
		}
		about(t, "all answers", time.Since(start), 2*time.Second, 300*time.Millisecond)
	}, steady()...)
}

// B11: the client id is a plain nullable string in every header, and nothing
// depends on it.
func TestNothingDependsOnTheClientID(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		w.mustProduce("t", "x")
		w.WaitHW("t", 0, 1)
		s := w.socket(1)
		for _, r := range [][2]int16{{3, 1}, {3, 12}, {2, 1}, {2, 7}, {1, 4}, {1, 13}} {
			req := w.sound(r[0], r[1])
			s.put(requestBytes(req, 1))
			want := s.mustTake(1)
			decoded(t, req, want)
			for _, id := range []string{"", "é", strings.Repeat("c", 1000), strings.Repeat("c", 1<<15-1)} {
				s.put(requestFrom(&id, req, 1))
				if got := s.mustTake(1); !bytes.Equal(got, want) {
					t.Errorf("%v from a client with %d bytes of id: another answer", r, len(id))
				}
			}
			s.put(requestFrom(nil, req, 1))
			if got := s.mustTake(1); !bytes.Equal(got, want) {
				t.Errorf("%v from a client with a null id: another answer", r)
			}
		}
	})
}

// B12: tags that nobody knows are skipped wherever they stand.
func TestUnknownTagsAreSkipped(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		w.mustProduce("t", "x")
		w.WaitHW("t", 0, 1)
		s := w.socket(1)
		for _, k := range s.advertised() {
			for v := k.MinVersion; v <= k.MaxVersion; v++ {
				req := w.sound(k.ApiKey, v)
				if !req.IsFlexible() {
					continue
				}
				s.put(requestBytes(req, 1))
				want := s.mustTake(1)
				tag(reflect.ValueOf(req).Elem())
				x := "x"
				request := wire.AppendRequestHeader(nil, wire.Header{Key: k.ApiKey, Version: v, CorrelationID: 1, ClientID: &x}, false)
				request = append(request, 1, 77, 5, 'h', 'e', 'l', 'l', 'o')
				s.put(req.AppendTo(request))
				got := s.mustTake(1)
				decoded(t, req, got)
				switch k := kmsg.Key(k.ApiKey); k {
				case kmsg.Metadata, kmsg.Fetch, kmsg.ListOffsets, kmsg.DescribeConfigs, kmsg.OffsetForLeaderEpoch:
					if !bytes.Equal(got, want) {
						t.Errorf("%s v%d: another answer with tags", k.Name(), v)
					}
				}
			}
		}
	})
}

// tag gives a request and all its elements tags that nobody knows.
func tag(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Type() == reflect.TypeFor[kmsg.Tags]():
			tags := f.Addr().Interface().(*kmsg.Tags)
			tags.Set(9999, []byte("abc"))
			tags.Set(10000, nil)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			for j := range f.Len() {
				tag(f.Index(j))
			}
		}
	}
}

// B14: what is not Kafka costs nothing and is shown the door.
func TestForeignProtocolsAreShownTheDoor(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		hello := append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, make([]byte, 508)...)
		foreign := [][]byte{hello, []byte("GET / HTTP/1.1\r\nHost: k\r\n\r\n"), []byte("SSH-2.0-OpenSSH_9.9\r\n"),
			{0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}, {0x80, 0, 0, 0}, {0, 0, 0, 4, 1, 2, 3, 4}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var all []*socket
		for i := range 200 {
			s := w.socket(1)
			if _, err := s.Write(foreign[i%len(foreign)]); err != nil {
				t.Fatalf("write: %v", err)
			}
			all = append(all, s)
			if i%10 == 0 {
				w.mustProduce("t", "x")
			}
		}
		for i, s := range all {
			s.ends(fmt.Sprintf("%q", foreign[i%len(foreign)][:4]), time.Second)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 50<<20 {
			t.Errorf("%d bytes were allocated", grown)
		}
	})
}

// B16: a request with a cut or garbled body is answered or ends its connection,
// and nothing else happens.
func TestAGarbledRequestHarmsNobodyElse(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		for _, k := range w.socket(1).advertised() {
			for v := k.MinVersion; v <= k.MaxVersion; v++ {
				if !*full && v != k.MinVersion && v != k.MaxVersion {
					continue
				}
				good := requestBytes(w.sound(k.ApiKey, v), 1)
				for cut := range len(good) {
					w.endure(fmt.Sprintf("%s v%d cut to %d bytes", kmsg.NameForKey(k.ApiKey), v, cut), good[:cut])
				}
				for i := range min(64, len(good)) {
					bad := bytes.Clone(good)
					bad[i] ^= 0xff
					w.endure(fmt.Sprintf("%s v%d with byte %d flipped", kmsg.NameForKey(k.ApiKey), v, i), bad)
				}
			}
		}
		w.mustProduce("t", "still here")
	})
}

// endure has a broker answer or end a connection with one request. A long poll
// whose limit was garbled may wait; a Produce with acks=0 has no answer.
func (w *world) endure(what string, request []byte) {
	w.t.Helper()
	s := w.socket(1)
	defer s.Close()
	s.put(request)
	_, err := s.take(2 * time.Second)
	if err != errQuiet {
		return
	}
	key := int16(binary.BigEndian.Uint16(request))
	if key == int16(kmsg.Produce) {
		s.put(requestBytes(versionsRequest(0), 2))
		s.mustTake(2)
	} else if key != int16(kmsg.Fetch) && key != int16(kmsg.JoinGroup) {
		w.t.Errorf("%s: neither an answer nor an end", what)
	}
}

// B17: an empty list of topics means none, but in version 0, where it means all.
func TestAnEmptyListOfTopicsMeansNone(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("a", 1, 1, nil)
		w.CreateTopic("b", 1, 1, nil)
		s := w.socket(1)
		for _, c := range []struct {
			version int16
			topics  []kmsg.MetadataRequestTopic
			want    int
		}{{0, []kmsg.MetadataRequestTopic{}, 2}, {1, nil, 2}, {1, []kmsg.MetadataRequestTopic{}, 0}, {9, nil, 2},
			{9, []kmsg.MetadataRequestTopic{}, 0}, {12, nil, 2}, {12, []kmsg.MetadataRequestTopic{}, 0}} {
			req := kmsg.NewPtrMetadataRequest()
			req.Version, req.Topics = c.version, c.topics
			resp := s.exchange(req).(*kmsg.MetadataResponse)
			if len(resp.Topics) != c.want || len(resp.Brokers) != 1 {
				t.Errorf("v%d, null: %v: %d topics, %d brokers", c.version, c.topics == nil, len(resp.Topics), len(resp.Brokers))
			}
			if c.version >= 1 && resp.ControllerID != 1 || c.version >= 2 && (resp.ClusterID == nil || *resp.ClusterID == "") {
				t.Errorf("v%d: controller %d, cluster id %v", c.version, resp.ControllerID, resp.ClusterID)
			}
		}
	})
}
