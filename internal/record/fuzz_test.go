package record_test

import (
	"bytes"
	"encoding/binary"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// What one check and one walk may allocate: the body is held whole only to be
// walked or packed anew, and grows by doubling up to 128 MiB then.
const (
	mostChecked = 64 << 20
	mostHeld    = 640 << 20
)

// FuzzBatch gives the broker's check and the reader's walk whatever a producer
// may send. The lowest bits of kind say what b is: a batch as it is, a batch that
// gets a right checksum, or a body behind a header that is right; the next ones
// are the codec of that body, and that of the topic.
func FuzzBatch(f *testing.F) {
	for _, codec := range codecs {
		for _, b := range [][]byte{varied(codec), plain(codec, now, now-1)} {
			f.Add(uint8(0), b)
			f.Add(uint8(1), b)
			f.Add(2|uint8(codec)<<2, append([]byte{0, 12}, b[record.HeaderSize:]...))
		}
		f.Add(uint8(1), bomb(codec))
		f.Add(2|uint8(codec)<<2, append([]byte{0, 1}, bomb(codec)[record.HeaderSize:]...))
	}
	for i, b := range fixtures(f) {
		if i%50 == 0 {
			f.Add(uint8(0), b)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		batch, rules := fuzzedBatch(kind, b), anything()
		rules.Compacted, rules.Codec = kind>>5&1 == 1, record.Codec(int(kind>>5)%6-1)
		fuzzSplit(t, batch)
		record.ProducerOf(batch)
		var r record.CheckResult
		used := allocated(func() { r = record.Check(slices.Clone(batch), now, rules) })
		h, _ := record.ParseHeader(batch)
		if most := uint64(mostHeld); used > most || used > mostChecked+uint64(len(b)) && streamed(h, rules, batch) {
			t.Fatalf("checking %d bytes of %v took %d MiB", len(batch), h.Codec(), used>>20)
		}
		if len(batch) < 1<<20 {
			same(t, batch, *rules, func() int { return len(batch)/3 + int(kind) })
		}
		n, err := int32(0), error(nil)
		if used := allocated(func() { err = record.Records(batch, func(*record.Record) bool { n++; return true }) }); used > mostHeld {
			t.Fatalf("walking %d bytes took %d MiB", len(batch), used>>20)
		}
		if r.Err == model.None {
			fuzzAccepted(t, r, n, err)
		} else if r.Message == "" {
			t.Fatalf("%v without a word", r.Err)
		}
	})
}

// fuzzedBatch makes a batch of what the fuzzer gives.
func fuzzedBatch(kind uint8, b []byte) []byte {
	switch kind & 3 {
	case 0:
		return b
	case 1:
		if b = slices.Clone(b); len(b) > record.HeaderSize {
			seal(b) // let the checksum pass, it hides all else
		}
		return b
	}
	count := uint16(1)
	if len(b) >= 2 {
		count, b = binary.BigEndian.Uint16(b), b[2:]
	}
	out := append(plain(record.CodecNone, now)[:record.HeaderSize:record.HeaderSize], b...)
	binary.BigEndian.PutUint32(out[8:], uint32(len(out)-12))
	out[22] = kind >> 2 & 7
	binary.BigEndian.PutUint32(out[23:], uint32(count)-1)
	binary.BigEndian.PutUint32(out[57:], uint32(count))
	return seal(out)
}

// streamed says that nothing makes the check hold the whole body: no other codec
// for the topic, no record to renumber, no zstd frame with a large window.
func streamed(h record.Header, rules *record.CheckRules, batch []byte) bool {
	return h.Codec() != record.CodecZstd && (rules.Codec == record.CodecProducer || rules.Codec == h.Codec()) && !renumbered(batch)
}

func renumbered(batch []byte) bool {
	h, _ := record.ParseHeader(batch)
	want, other := h.Base, false
	_ = record.Records(batch, func(r *record.Record) bool {
		other = other || r.Offset != want
		want++
		return !other
	})
	return other
}

func fuzzSplit(t *testing.T, set []byte) {
	at := 0
	for h, b := range record.Split(set) {
		if h.Size() != len(b) || !bytes.Equal(b, set[at:at+len(b)]) {
			t.Fatalf("a batch of %d bytes at %d says %d", len(b), at, h.Size())
		}
		at += len(b)
	}
}

// fuzzAccepted checks what was let in: n records were read of what came.
func fuzzAccepted(t *testing.T, r record.CheckResult, n int32, err error) {
	if !record.Valid(r.Batch) || r.Header.Count != r.Header.LastOffsetDelta+1 {
		t.Fatalf("accepted a bad batch: %+v", r.Header)
	}
	if err != nil || n != r.Header.Count {
		t.Fatalf("accepted %d records, read %d: %v", r.Header.Count, n, err)
	}
	again := record.Check(slices.Clone(r.Batch), now, anything())
	if again.Err != model.None || !bytes.Equal(again.Batch, r.Batch) {
		t.Fatalf("what was accepted is judged otherwise: %v %s", again.Err, again.Message)
	}
	want := r.Header.Base
	err = record.Records(r.Batch, func(x *record.Record) bool {
		if x.Offset != want {
			t.Fatalf("a record has offset %d, not %d", x.Offset, want)
		}
		want++
		return true
	})
	if err != nil || want != r.Header.Next() {
		t.Fatalf("the records end at %d, not %d: %v", want, r.Header.Next(), err)
	}
}

// varied is a small batch with every kind of key, value and header.
func varied(codec record.Codec) []byte {
	b := record.NewBuilder(record.BatchOptions{Codec: codec, ProducerID: 77, ProducerEpoch: 3, BaseSequence: 1<<31 - 3})
	for i, key := range [][]byte{nil, {}, []byte("k")} {
		for j, value := range [][]byte{nil, {}, []byte("v"), []byte("tidetidetide")} {
			b.Add(now+model.Millis(100*i-j), key, value, record.HeaderField{Key: "a", Value: value}, record.HeaderField{Key: "a"})
		}
	}
	return slices.Clone(b.Bytes())
}

// bomb is a small batch of one large record.
func bomb(codec record.Codec) []byte {
	o := record.PlainOptions()
	if o.Codec = codec; codec == record.CodecNone {
		return plain(codec, now)
	}
	b := record.NewBuilder(o)
	b.Add(now, []byte("k"), make([]byte, 1<<20))
	return slices.Clone(b.Bytes())
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
