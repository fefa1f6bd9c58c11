package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/explain"
)

// dialects is every version of every API that a node of ours speaks.
func dialects() (out []Header) {
	for _, table := range []*Versions{BrokerVersions, ControllerVersions} {
		for _, r := range table.Advertised() {
			for v := r.Min; v <= r.Max; v++ {
				if h := (Header{Key: r.Key, Version: v}); !slices.Contains(out, h) {
					out = append(out, h)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Header) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Version, b.Version)) })
	return out
}

// FuzzResponse decodes what a node may get for an answer: which chooses API and
// version; a number beyond them makes a report of another broker's replicas of
// the frame. The frame is a response header and a body. What is decoded survives
// its own encoding, and the memory it takes follows the bytes that came.
func FuzzResponse(f *testing.F) {
	all := dialects()
	addAnswers(f, all)
	f.Fuzz(func(t *testing.T, which uint16, frame []byte) {
		if int(which) >= len(all) {
			fuzzReport(t, frame)
			return
		}
		fuzzAnswer(t, all[which], frame)
	})
}

func addAnswers(f *testing.F, all []Header) {
	for i, h := range all {
		head := AppendResponseHeader(nil, h.Key, h.Version, 7)
		empty := NewRequest(h.Key, h.Version).ResponseKind()
		empty.SetVersion(h.Version)
		f.Add(uint16(i), empty.AppendTo(head))
		if i+1 == len(all) || all[i+1].Key != h.Key {
			full := rapid.Custom(func(t *rapid.T) kmsg.Response {
				resp := NewRequest(h.Key, h.Version).ResponseKind()
				fill(t, reflect.ValueOf(resp).Elem())
				resp.SetVersion(h.Version)
				return resp
			})
			for seed := range 2 {
				f.Add(uint16(i), full.Example(seed+1).AppendTo(head))
			}
		}
	}
	report, err := explain.Encode(explain.Replicas{Broker: 2, Partitions: []explain.Partition{{Topic: "t", ISR: []int32{2}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(len(all)), report)
}

func fuzzAnswer(t *testing.T, h Header, frame []byte) {
	_, body, err := ParseResponse(frame, FlexibleResponseHeader(h.Key, h.Version))
	if err != nil {
		return
	}
	resp := NewRequest(h.Key, h.Version).ResponseKind()
	resp.SetVersion(h.Version)
	used := allocated(func() { err = resp.ReadFrom(body) })
	if most := uint64(4<<20 + mostDecoded*len(body)); used > most {
		t.Fatalf("%s v%d: %d bytes took %d of memory", kmsg.NameForKey(h.Key), h.Version, len(body), used)
	}
	if err != nil {
		return
	}
	first := resp.AppendTo(nil)
	again := NewRequest(h.Key, h.Version).ResponseKind()
	again.SetVersion(h.Version)
	if err := again.ReadFrom(first); err != nil {
		t.Fatalf("%s v%d: %x became %x: %v", kmsg.NameForKey(h.Key), h.Version, body, first, err)
	}
	if second := again.AppendTo(nil); !bytes.Equal(first, second) {
		t.Fatalf("%s v%d: %x became %x", kmsg.NameForKey(h.Key), h.Version, first, second)
	}
}

// mostDecoded is how many bytes of memory a byte of a message may take.
const mostDecoded = 200

func fuzzReport(t *testing.T, body []byte) {
	var v, again explain.Replicas
	if explain.Decode(body, &v) != nil {
		return
	}
	text, err := explain.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := explain.Decode(text, &again); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(v)
	if b, _ := json.Marshal(again); !bytes.Equal(a, b) {
		t.Fatalf("%s became %s", a, b)
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
