package record_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
	"github.com/tidemark-log/tidemark/internal/record"
)

func records(t testing.TB, batch []byte) iter.Seq[*record.Record] {
	return func(yield func(*record.Record) bool) {
		if err := record.Records(batch, yield); err != nil {
			t.Error(err)
		}
	}
}

// dump is the content of a batch in words, nulls told from empty.
func dump(t testing.TB, batch []byte) string {
	var s strings.Builder
	h, _ := record.ParseHeader(batch)
	fmt.Fprintf(&s, "producer %d/%d/%d\n", h.ProducerID, h.ProducerEpoch, h.BaseSequence)
	for r := range records(t, batch) {
		fmt.Fprintf(&s, "%d@%d seq %d %s=%s", r.Offset, r.Timestamp, r.Sequence, text(r.Key), text(r.Value))
		for _, f := range r.Headers {
			fmt.Fprintf(&s, " [%s %s]", f.Key, text(f.Value))
		}
		s.WriteByte('\n')
	}
	return s.String()
}

func text(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%.20q/%d", b, len(b))
}

// rich is a batch with every kind of key, value and header.
func rich(codec record.Codec) []byte {
	b := record.NewBuilder(record.BatchOptions{Codec: codec, ProducerID: 77, ProducerEpoch: 3, BaseSequence: 1<<31 - 3})
	for i, key := range [][]byte{nil, {}, []byte("k")} {
		for j, value := range [][]byte{nil, {}, []byte("v"), []byte(strings.Repeat("tide", 40_000))} {
			b.Add(now+model.Millis(100*i-j), key, value,
				record.HeaderField{Key: "a"}, record.HeaderField{Key: "a", Value: []byte{}},
				record.HeaderField{Key: "", Value: []byte{0, 255}})
		}
	}
	return slices.Clone(b.Bytes())
}

func TestWhatIsBuiltIsReadBack(t *testing.T) {
	want := ""
	for _, codec := range codecs {
		for level := range 4 {
			b := record.NewBuilder(record.BatchOptions{Codec: codec, Level: level * 3, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1})
			b.Add(now, nil, []byte(strings.Repeat("tide ", 30_000)))
			b.Add(now-5, []byte("k"), nil, record.HeaderField{Key: "h"})
			batch := b.Bytes()
			if !record.Valid(batch) {
				t.Fatalf("%s level %d is not valid", codec, level)
			}
			got := dump(t, batch)
			if want == "" {
				want = got
			}
			if got != want || !strings.Contains(got, "null") {
				t.Errorf("%s level %d: %s", codec, level, got)
			}
		}
	}
}

func TestSequencesOfRecordsWrap(t *testing.T) {
	var got []int32
	for r := range records(t, rich(record.CodecGzip)) {
		got = append(got, r.Sequence)
	}
	if !slices.Equal(got[:5], []int32{1<<31 - 3, 1<<31 - 2, 1<<31 - 1, 0, 1}) {
		t.Errorf("sequences %v", got)
	}
}

func TestAMarkerTellsHowItsTransactionEnds(t *testing.T) {
	for _, commit := range []bool{true, false} {
		m := record.Marker{Producer: 9, ProducerEpoch: 4, Commit: commit, CoordinatorEpoch: 6}
		got := record.ProducerOf(m.Batch(100, 2, now))
		want := producers.Batch{ID: 9, Epoch: 4, BaseSequence: -1, Records: 1, Base: 100, MaxTimestamp: now,
			Transactional: true, Control: true, Commit: commit, CoordinatorEpoch: 6}
		if got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

func TestOtherControlBatchesHaveNoProducer(t *testing.T) {
	b := record.NewBuilder(record.BatchOptions{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Control: true})
	b.Add(now, []byte{0, 0, 0, record.ControlLeaderChange}, []byte{0, 0})
	if p := record.ProducerOf(b.Bytes()); p.ID != model.NoProducerID || !p.Control {
		t.Errorf("%+v", p)
	}
}

func TestSplitStopsAtAPartialBatch(t *testing.T) {
	set := slices.Concat(plain(record.CodecNone, now), plain(record.CodecGzip, now, now), plain(record.CodecNone, now)[:70])
	n, bytes := 0, 0
	for h, b := range record.Split(set) {
		if h.Size() != len(b) || len(b) != cap(b) {
			t.Errorf("batch of %d in %d bytes", h.Size(), len(b))
		}
		n, bytes = n+1, bytes+len(b)
	}
	if n != 2 || len(set)-bytes != 70 {
		t.Errorf("%d batches, %d bytes left", n, len(set)-bytes)
	}
}

func TestCodecNamesAreThoseOfTheConfig(t *testing.T) {
	for _, name := range []string{"producer", "none", "gzip", "snappy", "lz4", "zstd"} {
		if c, ok := record.ParseCodec(name); !ok || c.String() != name {
			t.Errorf("%s: %v %v", name, c, ok)
		}
	}
	if c, ok := record.ParseCodec("uncompressed"); !ok || c != record.CodecNone {
		t.Errorf("uncompressed: %v", c)
	}
	if _, ok := record.ParseCodec("brotli"); ok {
		t.Error("brotli is no codec of Kafka")
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, codec := range codecs {
		b.Run(codec.String(), func(b *testing.B) {
			bld := record.NewBuilder(record.BatchOptions{Codec: codec, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1})
			for i := range 1000 {
				bld.Add(now, nil, fmt.Appendf(nil, "%0100d", i*i))
			}
			batch, rules := bld.Bytes(), anything()
			b.SetBytes(int64(bld.Size()))
			b.ReportAllocs()
			for b.Loop() {
				if r := record.Check(batch, now, rules); r.Err != model.None {
					b.Fatal(r.Err)
				}
			}
		})
	}
}
