package group

import (
	"encoding/binary"
	"fmt"
	"maps"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// A log of group records as the fuzzer writes it, one step after the other: the
// kind of the step, then for a record the key behind its length of one byte, and
// its value behind its length of two.
const (
	fuzzPlain     = iota // a record
	fuzzTombstone        // a record without a value
	fuzzInTxn            // a record of the transaction of producer 1
	fuzzCommit           // that transaction's end
	fuzzAbort
	fuzzKinds
)

func fuzzStep(dst []byte, kind byte, r Record) []byte {
	dst = append(dst, kind)
	if kind >= fuzzCommit {
		return dst
	}
	dst = append(append(dst, byte(len(r.Key))), r.Key...)
	if kind == fuzzTombstone {
		return dst
	}
	return append(binary.BigEndian.AppendUint16(dst, uint16(len(r.Value))), r.Value...)
}

// FuzzGroup replays logs that hold anything: no record changes the shard unless
// it is read, what was read survives being written and replayed again, and the
// shard that comes of it lives on.
func FuzzGroup(f *testing.F) {
	addGroupLogs(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := fresh()
		for len(b) > 0 {
			b = fuzzReplay(t, s, b)
		}
		s.EndTransaction(1, true)
		want, heir := content(s), fresh()
		for _, g := range s.sorted() {
			for _, r := range append(offsetsOf(g), g.record(g.since, nil)) {
				if err := heir.Replay(r, model.NoProducerID); err != nil {
					t.Fatalf("what was written is not read: %v", err)
				}
			}
		}
		if got := content(heir); got != want {
			t.Fatalf("%s\nbecame %s", want, got)
		}
		s.Loaded(0, origin)
		checkCounts(t, s)
		s.Tick(1<<40, origin+1<<20)
		checkCounts(t, s)
		s.Close(1<<41, origin)
	})
}

func addGroupLogs(f *testing.F) {
	tp := topicPartition{"t", 0}
	g := newGroup("g", 0)
	for _, id := range []string{"a", "b"} {
		g.add(&member{id: id, instance: &id, clientID: "c", host: "/h", sessionTimeout: millis(10_000), rebalanceTimeout: millis(20),
			protocols: []protocol{{name: "range", metadata: []byte("\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff")}}, assignment: []byte("x")}, consumerProtocol)
	}
	g.protocol, g.generation = "range", 3
	for _, r := range []Record{
		offsetRecord("g", tp, offset{expires: 9}), offsetRecord("g", tp, offset{leaderEpoch: 1, metadata: "m"}),
		newGroup("g", 0).record(0, nil), g.record(0, nil),
	} {
		var b []byte
		for kind := range byte(fuzzKinds) {
			f.Add(fuzzStep(b, kind, r))
			b = fuzzStep(b, kind, r)
		}
		f.Add(b)
		f.Add(fuzzStep(fuzzStep(nil, fuzzPlain, r), fuzzTombstone, r))
		f.Add(fuzzStep(fuzzStep(nil, fuzzPlain, g.record(0, nil)), fuzzPlain, r))
	}
}

// fuzzReplay takes one step and returns the rest.
func fuzzReplay(t *testing.T, s *Shard, b []byte) []byte {
	kind := b[0] % fuzzKinds
	b = b[1:]
	if kind >= fuzzCommit {
		s.EndTransaction(1, kind == fuzzCommit)
		return b
	}
	var r Record
	r.Key, b = fuzzBytes(b, 1)
	if kind != fuzzTombstone {
		r.Value, b = fuzzBytes(b, 2)
	}
	id := model.NoProducerID
	if kind == fuzzInTxn {
		id = 1
	}
	before, err := content(s), error(nil)
	used := allocated(func() { err = s.Replay(r, id) })
	if most := uint64(4<<20 + 500*(len(r.Key)+len(r.Value))); used > most {
		t.Fatalf("key %x value %x: %d bytes took %d of memory", r.Key, r.Value, len(r.Key)+len(r.Value), used)
	}
	if err != nil && content(s) != before {
		t.Fatalf("key %x value %x: %v, but the groups changed from %s to %s", r.Key, r.Value, err, before, content(s))
	}
	return b
}

// fuzzBytes reads a length of so many bytes and what it counts, as far as it is
// there.
func fuzzBytes(b []byte, size int) (v, rest []byte) {
	n := 0
	for ; size > 0 && len(b) > 0; size-- {
		n, b = n<<8|int(b[0]), b[1:]
	}
	n = min(n, len(b))
	return append([]byte{}, b[:n]...), b[n:]
}

func offsetsOf(g *group) (recs []Record) {
	keys := slices.SortedFunc(maps.Keys(g.offsets), func(a, b topicPartition) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	for _, tp := range keys {
		recs = append(recs, offsetRecord(g.id, tp, g.offsets[tp]))
	}
	return recs
}

// content is all that a shard knows, in words.
func content(s *Shard) string {
	var b strings.Builder
	for _, g := range s.sorted() {
		fmt.Fprintf(&b, "%q %s since %d offsets %v\n", g.id, facts(g), g.since, g.offsets)
	}
	return b.String() + fmt.Sprint(s.txns)
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
