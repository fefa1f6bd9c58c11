package record_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

const now model.Millis = 1_800_000_000_000

// anything are rules that refuse nothing that is well formed.
func anything() *record.CheckRules {
	return &record.CheckRules{BeforeMax: record.NoTimeLimit, AfterMax: record.NoTimeLimit, Codec: record.CodecProducer}
}

// seal writes the right checksum after a test edited the batch.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func plain(codec record.Codec, times ...model.Millis) []byte {
	o := record.PlainOptions()
	o.Codec = codec
	b := record.NewBuilder(o)
	for i, t := range times {
		b.Add(t, fmt.Appendf(nil, "key-%d", i), []byte("value"))
	}
	return slices.Clone(b.Bytes())
}

var codecs = []record.Codec{record.CodecNone, record.CodecGzip, record.CodecSnappy, record.CodecLZ4, record.CodecZstd}

// fixtures yields every batch that a real Kafka wrote.
func fixtures(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("../storage/testdata/kafka-4.4/node1/*/*.log")
	if err != nil || len(files) < 4 {
		t.Fatalf("fixtures: %v %v", files, err)
	}
	var out [][]byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, b := range record.Split(data) {
			out = append(out, b)
			n += len(b)
		}
		if n != len(data) {
			t.Fatalf("%s: %d of %d bytes are batches", f, n, len(data))
		}
	}
	return out
}

func TestBatchesOfARealKafkaPassUnchanged(t *testing.T) {
	for _, b := range fixtures(t) {
		if !record.Valid(b) {
			t.Fatalf("batch at %d is not valid", binary.BigEndian.Uint64(b))
		}
		h, _ := record.ParseHeader(b)
		rules := anything()
		rules.Internal = true
		before := slices.Clone(b)
		r := record.Check(b, now, rules)
		if r.Err != model.None || !bytes.Equal(r.Batch, before) || r.Header != h {
			t.Fatalf("batch at %d: %v %s", h.Base, r.Err, r.Message)
		}
		next := h.Base
		err := record.Records(b, func(rec *record.Record) bool {
			if rec.Offset != next {
				t.Fatalf("offset %d, want %d", rec.Offset, next)
			}
			next++
			return true
		})
		if err != nil || next != h.Next() {
			t.Fatalf("batch at %d: records end at %d, %v", h.Base, next, err)
		}
	}
}

func TestStampKeepsTheChecksum(t *testing.T) {
	b := plain(record.CodecLZ4, now)
	record.Stamp(b, 1<<40, 7)
	h, ok := record.ParseHeader(b)
	if !ok || h.Base != 1<<40 || h.LeaderEpoch != 7 || !record.Valid(b) {
		t.Fatalf("after Stamp: %+v", h)
	}
}

func TestCheckRefuses(t *testing.T) {
	edit := func(b []byte, at int, v ...byte) []byte { return seal(slices.Replace(b, at, at+len(v), v...)) }
	three := func() []byte { return plain(record.CodecNone, now, now, now) }
	cases := []struct {
		name  string
		batch []byte
		rules func(*record.CheckRules)
		err   model.Error
	}{
		{"nothing", nil, nil, model.ErrInvalidRecord},
		{"a header only", three()[:40], nil, model.ErrInvalidRecord},
		{"a cut batch", three()[:100], nil, model.ErrInvalidRecord},
		{"two batches", append(three(), three()...), nil, model.ErrInvalidRecord},
		{"stray bytes", append(three(), 0), nil, model.ErrInvalidRecord},
		{"an old format", edit(three(), 16, 1), nil, model.ErrInvalidRecord},
		{"a length below the header", edit(three(), 8, 0, 0, 0, 5), nil, model.ErrInvalidRecord},
		{"zstd in an old request", plain(record.CodecZstd, now), func(r *record.CheckRules) { r.NoZstd = true }, model.ErrUnsupportedCompressionType},
		{"a byte too many", three(), func(r *record.CheckRules) { r.MaxBytes = int32(len(three()) - 1) }, model.ErrMessageTooLarge},
		{"more than a segment", three(), func(r *record.CheckRules) { r.SegmentBytes = int32(len(three()) - 1) }, model.ErrRecordListTooLarge},
		{"a wrong checksum", slices.Replace(three(), 70, 71, 0xff), nil, model.ErrCorruptMessage},
		{"a base offset", edit(three(), 6, 3, 0xe8), nil, model.ErrInvalidRecord},
		{"delta above count", edit(three(), 23, 0, 0, 0, 5), nil, model.ErrInvalidRecord},
		{"count above delta", edit(edit(three(), 57, 0, 0, 0, 5), 23, 0, 0, 0, 4), nil, model.ErrInvalidRecord},
		{"delta 0 of three", edit(three(), 23, 0, 0, 0, 0), nil, model.ErrInvalidRecord},
		{"count 0", edit(edit(three(), 57, 0, 0, 0, 0), 23, 0xff, 0xff, 0xff, 0xff), nil, model.ErrInvalidRecord},
		{"count below the records", edit(edit(three(), 57, 0, 0, 0, 2), 23, 0, 0, 0, 1), nil, model.ErrInvalidRecord},
		{"a control batch", edit(three(), 21, 0, 0x20), nil, model.ErrInvalidRecord},
		{"a producer without sequence", edit(three(), 43, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0), nil, model.ErrInvalidRecord},
		{"a transaction without producer", edit(three(), 21, 0, 0x10), nil, model.ErrInvalidRecord},
		{"codec 5", edit(three(), 21, 0, 5), nil, model.ErrInvalidRecord},
		{"a body that is no gzip", edit(three(), 21, 0, 1), nil, model.ErrInvalidRecord},
		{"a body that is no snappy", edit(three(), 21, 0, 2), nil, model.ErrInvalidRecord},
		{"a body that is no lz4", edit(three(), 21, 0, 3), nil, model.ErrInvalidRecord},
		{"a body that is no zstd", edit(three(), 21, 0, 4), nil, model.ErrInvalidRecord},
		{"a record longer than the body", edit(three(), 61, 0xfe, 0x7f), nil, model.ErrInvalidRecord},
		{"a negative record", edit(three(), 61, 1), nil, model.ErrInvalidRecord},
	}
	for _, c := range cases {
		rules := anything()
		if c.rules != nil {
			c.rules(rules)
		}
		r := record.Check(c.batch, now, rules)
		if r.Err != c.err || r.Message == "" || r.Batch != nil {
			t.Errorf("%s: %v %q, want %v", c.name, r.Err, r.Message, c.err)
		}
	}
}

func TestTheSizeLimitIsExact(t *testing.T) {
	b := plain(record.CodecNone, now)
	rules := anything()
	rules.MaxBytes, rules.SegmentBytes = int32(len(b)), int32(len(b))
	if r := record.Check(b, now, rules); r.Err != model.None {
		t.Fatalf("%v %s", r.Err, r.Message)
	}
}

func TestBadRecordsAreNamed(t *testing.T) {
	for _, codec := range codecs {
		o := record.PlainOptions()
		o.Codec = codec
		b := record.NewBuilder(o)
		b.Add(now, []byte("k"), nil)
		b.Add(now, nil, []byte("v"))
		b.Add(now, []byte{}, []byte("v"))
		b.Add(now-11, nil, []byte("v"))
		b.Add(now-11, []byte("k"), nil)
		rules := anything()
		rules.Compacted = true
		r := record.Check(slices.Clone(b.Bytes()), now, rules)
		if r.Err != model.ErrInvalidRecord || indexes(r.Bad) != "[1 3]" {
			t.Errorf("%s: %v %v", codec, r.Err, r.Bad)
		}
		rules.BeforeMax = 10
		r = record.Check(slices.Clone(b.Bytes()), now, rules)
		if r.Err != model.ErrInvalidTimestamp || indexes(r.Bad) != "[1 3 4]" {
			t.Errorf("%s: a bad time wins, got %v %v", codec, r.Err, r.Bad)
		}
		rules.LogAppendTime, rules.Compacted = true, false
		if r = record.Check(slices.Clone(b.Bytes()), now, rules); r.Err != model.None {
			t.Errorf("%s: the broker's own time is never bad: %v", codec, r.Err)
		}
	}
}

func indexes(bad []record.BadRecord) string {
	var out []int32
	for _, b := range bad {
		out = append(out, b.Index)
	}
	return fmt.Sprint(out)
}

func TestTimesAreBoundOnBothSides(t *testing.T) {
	cases := []struct {
		time          model.Millis
		before, after model.Millis
		ok            bool
	}{
		{now - 10, 10, 10, true},
		{now - 11, 10, 10, false},
		{now + 10, 10, 10, true},
		{now + 11, 10, 10, false},
		{now, 0, 0, true},
		{-1, 10, 10, true}, // no time
		{-1 << 62, record.NoTimeLimit, 10, true},
		{1<<63 - 1, 10, 1 << 40, false},
		{-1 << 63, 1 << 62, 10, false},
	}
	for _, c := range cases {
		rules := anything()
		rules.BeforeMax, rules.AfterMax = c.before, c.after
		r := record.Check(plain(record.CodecNone, c.time), now, rules)
		if ok := r.Err == model.None; ok != c.ok {
			t.Errorf("time %d within %d, %d: %v", c.time, c.before, c.after, r.Err)
		}
	}
}

func TestAWrongMaxTimestampIsRepaired(t *testing.T) {
	for _, codec := range codecs {
		for _, wrong := range []uint64{1<<64 - 1, 1e15} {
			b := plain(codec, 100, 300, 200)
			binary.BigEndian.PutUint64(b[35:], wrong)
			r := record.Check(seal(b), now, anything())
			if r.Err != model.None || r.Header.MaxTimestamp != 300 || !record.Valid(r.Batch) || r.AppendTime != -1 {
				t.Errorf("%s: %v max %d", codec, r.Err, r.Header.MaxTimestamp)
			}
		}
	}
}

func TestLogAppendTimeOverridesTheClient(t *testing.T) {
	rules := anything()
	rules.LogAppendTime = true
	r := record.Check(plain(record.CodecZstd, 1000, 1000), now, rules)
	if r.Err != model.None || r.AppendTime != now || !r.Header.LogAppendTime() || r.Header.MaxTimestamp != now || !record.Valid(r.Batch) {
		t.Fatalf("%v %+v", r.Err, r.Header)
	}
	for rec := range records(t, r.Batch) {
		if rec.Timestamp != now {
			t.Errorf("record time %d", rec.Timestamp)
		}
	}
	// The same bytes sent back to a topic with CreateTime lose the bit again.
	r = record.Check(r.Batch, now, anything())
	if r.Err != model.None || r.Header.LogAppendTime() || r.Header.MaxTimestamp != 1000 || !record.Valid(r.Batch) {
		t.Fatalf("%v %+v", r.Err, r.Header)
	}
}

func TestATopicsCodecRepacksTheBatch(t *testing.T) {
	for _, from := range codecs {
		for _, to := range codecs {
			b := rich(from)
			want := dump(t, b)
			rules := anything()
			rules.Codec = to
			r := record.Check(slices.Clone(b), now, rules)
			if r.Err != model.None || r.Header.Codec() != to || !record.Valid(r.Batch) {
				t.Errorf("%s to %s: %v %s", from, to, r.Err, r.Message)
				continue
			}
			if got := dump(t, r.Batch); got != want {
				t.Errorf("%s to %s changed the records:\n%s\n%s", from, to, got, want)
			}
			if from == to && !bytes.Equal(r.Batch, b) {
				t.Errorf("%s was repacked for nothing", from)
			}
		}
	}
}

func TestARepackedBatchIsMeasuredAgain(t *testing.T) {
	o := record.PlainOptions()
	o.Codec = record.CodecZstd
	b := record.NewBuilder(o)
	b.Add(now, nil, make([]byte, 10_000))
	rules := anything()
	rules.Codec, rules.MaxBytes = record.CodecNone, 5000
	if r := record.Check(slices.Clone(b.Bytes()), now, rules); r.Err != model.ErrMessageTooLarge {
		t.Errorf("max.message.bytes: %v", r.Err)
	}
	rules.MaxBytes, rules.SegmentBytes = 0, 5000
	if r := record.Check(slices.Clone(b.Bytes()), now, rules); r.Err != model.ErrRecordListTooLarge {
		t.Errorf("segment.bytes: %v", r.Err)
	}
}

func TestOffsetDeltasAreRenumbered(t *testing.T) {
	b := plain(record.CodecNone, now, now, now)
	// Every record is 16 bytes here: length, attributes, time, delta, ...
	size := (len(b) - record.HeaderSize) / 3
	for i := range 3 {
		b[record.HeaderSize+i*size+3] = 0
	}
	r := record.Check(seal(b), now, anything())
	if r.Err != model.None {
		t.Fatal(r.Err, r.Message)
	}
	if got, want := dump(t, r.Batch), dump(t, plain(record.CodecNone, now, now, now)); got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestHostileSizesCostNoMemory(t *testing.T) {
	zeros := make([]byte, 64<<20)
	for _, codec := range codecs[1:] {
		o := record.PlainOptions()
		o.Codec = codec
		b := record.NewBuilder(o)
		b.Add(now, nil, zeros)
		batch := slices.Clone(b.Bytes())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := record.Check(batch, now, anything())
		runtime.ReadMemStats(&after)
		if r.Err != model.None {
			t.Errorf("%s: %v %s", codec, r.Err, r.Message)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
			t.Errorf("%s: checking %d bytes took %d MiB", codec, len(batch), used>>20)
		}
	}
	// A zstd frame that claims a window of 128 MiB for a few bytes.
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(128<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	p := plain(record.CodecNone, now)
	var packed bytes.Buffer
	enc.Reset(&packed)
	_, err = enc.Write(p[record.HeaderSize:])
	if err != nil || enc.Flush() != nil || enc.Close() != nil {
		t.Fatal(err)
	}
	b := append(slices.Clone(p[:record.HeaderSize]), packed.Bytes()...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	b[22] = byte(record.CodecZstd)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := record.Check(seal(b), now, anything())
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; r.Err != model.None || used > 8<<20 {
		t.Errorf("large window: %v %s, %d MiB", r.Err, r.Message, used>>20)
	}
}

func TestCheckAllocatesNothingPerRecord(t *testing.T) {
	for _, codec := range codecs {
		o := record.PlainOptions()
		o.Codec = codec
		b := record.NewBuilder(o)
		for range 2000 {
			b.Add(now, []byte("key"), []byte("some value of a record"))
		}
		batch, rules := slices.Clone(b.Bytes()), anything()
		record.Check(batch, now, rules)
		n := testing.AllocsPerRun(20, func() { record.Check(batch, now, rules) })
		if n > 4 {
			t.Errorf("%s: %v allocations for 2000 records", codec, n)
		}
	}
}
