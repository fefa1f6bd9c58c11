package api

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// exchange writes one frame and reads one response, without its size.
func exchange(t *testing.T, c net.Conn, frame []byte) []byte {
	t.Helper()
	if _, err := c.Write(frame); err != nil {
		t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatal(err)
	}
	return body
}

func apiVersions(version int16, name, software string) *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = version, name, software
	return req
}

// Case B1: a request that is too new is answered in version 0, and the
// connection goes on.
func TestApiVersionsOfTheFutureAreAnsweredInVersionZero(t *testing.T) {
	w := newWorld(t, nil)
	c := w.dialRaw()
	for _, version := range []int16{6, 99} {
		frame := kmsg.NewRequestFormatter().AppendRequest(nil, apiVersions(3, "new", "9"), 77)
		binary.BigEndian.PutUint16(frame[6:], uint16(version))
		want := []byte{0, 0, 0, 77, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5}
		if got := exchange(t, c, frame); !bytes.Equal(got, want) {
			t.Errorf("v%d: answer %x, want %x", version, got, want)
		}
	}
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, apiVersions(0, "", ""), 78)
	if got := exchange(t, c, frame); got[4] != 0 || got[5] != 0 || len(got) < 100 {
		t.Errorf("version 0 afterwards: %x", got)
	}
}

// Case B3: by hand, for every version.
func TestApiVersionsKeepsTheOldResponseHeader(t *testing.T) {
	w := newWorld(t, nil)
	c := w.dialRaw()
	for version := int16(0); version <= 5; version++ {
		got := exchange(t, c, kmsg.NewRequestFormatter().AppendRequest(nil, apiVersions(version, "tool", "1.0"), 5))
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.Version = version
		if err := resp.ReadFrom(got[4:]); err != nil || resp.ErrorCode != 0 {
			t.Fatalf("v%d: code %d, error %v", version, resp.ErrorCode, err)
		}
		if again := resp.AppendTo(nil); !bytes.Equal(again, got[4:]) {
			t.Errorf("v%d: the answer has other bytes than it decodes to", version)
		}
		if len(resp.ApiKeys) != len(wire.BrokerVersions.Advertised()) {
			t.Errorf("v%d: %d keys", version, len(resp.ApiKeys))
		}
	}
}

func TestClientSoftwareIsValidated(t *testing.T) { // case B4
	w := newWorld(t, nil)
	for _, c := range []struct {
		name, version string
		want          model.Error
	}{
		{"a b", "1.0", model.ErrInvalidRequest},
		{"", "1.0", model.ErrInvalidRequest},
		{"-x", "1", model.ErrInvalidRequest},
		{"x", "1.", model.ErrInvalidRequest},
		{"apache-kafka-java", "3.9.0-rc1", model.None},
		{"librdkafka", "2.10.0", model.None},
	} {
		resp := do[*kmsg.ApiVersionsResponse](w, apiVersions(3, c.name, c.version))
		if got := model.Error(resp.ErrorCode); got != c.want {
			t.Errorf("%q %q: %v, want %v", c.name, c.version, got, c.want)
		}
	}
}

// KIP-1242: a client that was routed to another broker or cluster is told.
func TestApiVersionsKnowsWhoIsMeant(t *testing.T) {
	w := newWorld(t, nil)
	own, other := clusterID, "other"
	for _, c := range []struct {
		cluster *string
		node    int32
		want    model.Error
	}{
		{nil, -1, model.None},
		{&own, 1, model.None},
		{&own, -1, model.ErrInvalidRequest},
		{nil, 1, model.ErrInvalidRequest},
		{&other, 1, model.ErrRebootstrapRequired},
		{&own, 2, model.ErrRebootstrapRequired},
	} {
		req := apiVersions(5, "tool", "1")
		req.ClusterID, req.NodeID = c.cluster, c.node
		if got := model.Error(do[*kmsg.ApiVersionsResponse](w, req).ErrorCode); got != c.want {
			t.Errorf("cluster %v node %d: %v, want %v", c.cluster, c.node, got, c.want)
		}
	}
}

// KIP-584, KIP-1022: old clients do not see supported features from level 0 on.
func TestFeaturesTravelInTags(t *testing.T) {
	w := newWorld(t, nil)
	for version, want := range map[int16]int{2: 0, 3: 1, 4: 2, 5: 2} {
		resp := do[*kmsg.ApiVersionsResponse](w, apiVersions(version, "tool", "1"))
		if got := len(resp.SupportedFeatures); got != want {
			t.Errorf("v%d: %d supported features, want %d", version, got, want)
		}
		if version < 3 {
			continue
		}
		if len(resp.FinalizedFeatures) != 1 || resp.FinalizedFeatures[0].Name != "metadata.version" || resp.FinalizedFeatures[0].MaxVersionLevel != 25 {
			t.Errorf("v%d: finalized %+v", version, resp.FinalizedFeatures)
		}
		if got, want := resp.FinalizedFeaturesEpoch, int64(w.Image().End())-1; got != want {
			t.Errorf("v%d: epoch %d, want %d", version, got, want)
		}
	}
}

// Case B6: every advertised version of every key answers a minimal request with
// an answer that decodes. Produce and Fetch have tests of their own.
func TestEveryAdvertisedVersionIsAnswered(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	for _, r := range wire.BrokerVersions.Advertised() {
		if r.Key <= 1 {
			continue
		}
		for version := r.Min; version <= r.Max; version++ {
			req := wire.NewRequest(r.Key, version)
			if v, ok := req.(*kmsg.ApiVersionsRequest); ok {
				v.ClientSoftwareName, v.ClientSoftwareVersion = "tool", "1"
			}
			if d, ok := req.(kmsg.SetTimeoutRequest); ok {
				d.SetTimeout(100)
			}
			if _, err := w.client.Do(t.Context(), req); err != nil {
				t.Fatalf("%s v%d: %v", kmsg.NameForKey(r.Key), version, err)
			}
		}
	}
}

func TestGroupRequestsGoToTheCoordinator(t *testing.T) {
	w := newWorld(t, nil)
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = 9
	if got := do[*kmsg.JoinGroupResponse](w, req).MemberID; got != "test/127.0.0.1" {
		t.Errorf("the coordinator saw client and host %q", got)
	}
}

// Case B16: cut and garbled bodies are answered or close the connection; the
// handlers do not panic.
func TestGarbledBodiesAreSurvived(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	for _, r := range wire.BrokerVersions.Advertised() {
		if r.Key <= 1 {
			continue
		}
		req := wire.NewRequest(r.Key, r.Max)
		good := kmsg.NewRequestFormatter(kmsg.FormatterClientID("x")).AppendRequest(nil, req, 1)
		for i := 12; i < len(good); i++ {
			cut := bytes.Clone(good[:i])
			binary.BigEndian.PutUint32(cut, uint32(i-4))
			w.survive(cut)
			for _, bit := range []byte{0x01, 0x80} {
				flipped := bytes.Clone(good)
				flipped[i] ^= bit
				w.survive(flipped)
			}
		}
	}
	do[*kmsg.MetadataResponse](w, wire.NewRequest(3, 12))
}

// survive sends a frame and waits for an answer or the end.
func (w *world) survive(frame []byte) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(frame); err != nil {
		return
	}
	c.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, c)
}
