package record

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

const someTime model.Millis = 1_800_000_000_000

func allTimes() *CheckRules {
	return &CheckRules{BeforeMax: NoTimeLimit, AfterMax: NoTimeLimit, Codec: CodecProducer}
}

// batchWith is a batch of count records in a body as it is.
func batchWith(codec Codec, count int32, body []byte) []byte {
	b := NewBuilder(PlainOptions())
	b.Add(someTime, nil, nil)
	h, _ := ParseHeader(b.Bytes())
	h.Attributes, h.Count, h.LastOffsetDelta = int16(codec), count, count-1
	h.Length = int32(HeaderSize + len(body) - frameSize)
	out := append(make([]byte, HeaderSize), body...)
	h.put(out)
	seal(out)
	return out
}

// bodyOf is the body of a batch of records of these values.
func bodyOf(values ...[]byte) []byte {
	b := NewBuilder(PlainOptions())
	for _, v := range values {
		b.Add(someTime, nil, v)
	}
	return slices.Clone(b.Bytes()[HeaderSize:])
}

// A record of very many headers that comes in very many pieces would be walked anew
// with each of them.
func TestASurveyLeavesARecordAloneUntilItIsWhole(t *testing.T) {
	record := []byte{0, 0, 0, 1, 1, 100, 0x7f} // so many headers, and the key of the first is shorter than null
	record = append(record, make([]byte, 10_000)...)
	batch := batchWith(CodecNone, 1, append(binary.AppendVarint(nil, int64(len(record))), record...))
	var s Survey
	s.Begin(0, len(batch))
	for came := range len(batch) {
		s.Extend(batch[:came])
		if came >= HeaderSize && !s.walk {
			t.Fatalf("the record was looked at when %d of %d bytes had come", came, len(batch))
		}
	}
	if s.Extend(batch); s.walk {
		t.Error("a malformed record passes")
	}
}

func TestManyBadRecordsAreCountedAndNotListed(t *testing.T) {
	const n = 1_000_000
	body := make([]byte, 0, 9*n)
	for i := range int64(n) {
		r := binary.AppendVarint([]byte{0, 0}, i)
		r = append(r, 1, 1, 0)
		body = append(binary.AppendVarint(body, int64(len(r))), r...)
	}
	batch := batchWith(CodecZstd, n, deflate(nil, CodecZstd, 0, body))
	rules := &CheckRules{BeforeMax: 1000, AfterMax: 1000, Codec: CodecProducer}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := Check(batch, someTime-model.Millis(1e9), rules)
	runtime.ReadMemStats(&after)
	if r.Err != model.ErrInvalidTimestamp || len(r.Bad) != maxBad || r.Bad[maxBad-1].Index != maxBad-1 {
		t.Errorf("%v, %d records named", r.Err, len(r.Bad))
	}
	if want := "1000000 of 1000000 records are refused; record 0: the timestamp is too far from the broker's clock"; r.Message != want {
		t.Errorf("%q", r.Message)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("a batch of %d bytes took %d MiB", len(batch), used>>20)
	}
}

// lz4Sum is the checksum byte of an lz4 frame's two bytes of flags: of xxHash32.
func lz4Sum(flags []byte) byte {
	const p1, p2, p3, p5 = 2654435761, 2246822519, 3266489917, 374761393
	h := uint32(p5) + uint32(len(flags))
	for _, b := range flags {
		h = bits.RotateLeft32(h+uint32(b)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return byte((h ^ h>>16) >> 8)
}

func lz4Packed(t *testing.T, body []byte, opts ...lz4.Option) []byte {
	t.Helper()
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	if err := w.Apply(opts...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Kafka's clients read one frame of version 1, with independent blocks and without a
// dictionary; what they would not read must not get into a log.
func TestLZ4IsWhatKafkaReads(t *testing.T) {
	body := bodyOf([]byte("a value"), make([]byte, 100_000))
	flags := func(set, clear byte) []byte {
		f := lz4Packed(t, body)
		f[4] = f[4]&^clear | set
		f[6] = lz4Sum(f[4:6])
		return f
	}
	frame := lz4Packed(t, body)
	sums := lz4Packed(t, body, lz4.BlockChecksumOption(true), lz4.ChecksumOption(true), lz4.SizeOption(uint64(len(body))))
	for name, c := range map[string]struct {
		packed []byte
		want   model.Error
	}{
		"as most write it":       {frame, model.None},
		"with all sums":          {sums, model.None},
		"with others behind it":  {append(slices.Clone(sums), frame...), model.None},
		"with nonsense behind":   {append(slices.Clone(frame), "nonsense"...), model.None},
		"blocks that are linked": {flags(0, 1<<5), model.ErrInvalidRecord},
		"another version":        {flags(1<<7, 1<<6), model.ErrInvalidRecord},
		"a reserved flag":        {flags(1<<1, 0), model.ErrInvalidRecord},
		"legacy":                 {lz4Packed(t, body, lz4.LegacyOption(true)), model.ErrInvalidRecord},
		"behind a frame to skip": {append([]byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0}, frame...), model.ErrInvalidRecord},
		"with an empty block":    {slices.Concat(frame[:7], []byte{1, 0, 0, 0, 0}, frame[7:]), model.ErrInvalidRecord},
		"with another empty one": {slices.Concat(frame[:7], []byte{1, 0, 0, 0, 15}, frame[7:]), model.ErrInvalidRecord},
		"cut off":                {frame[:len(frame)/2], model.ErrInvalidRecord},
		"a header":               {frame[:7], model.ErrInvalidRecord},
		"half a header":          {frame[:5], model.ErrInvalidRecord},
	} {
		if r := Check(batchWith(CodecLZ4, 2, c.packed), someTime, allTimes()); r.Err != c.want {
			t.Errorf("a frame %s: %v %s", name, r.Err, r.Message)
		}
	}
	half := lz4Packed(t, bodyOf([]byte("a value"), nil)[:10])
	rest := lz4Packed(t, bodyOf([]byte("a value"), nil)[10:])
	if r := Check(batchWith(CodecLZ4, 2, append(half, rest...)), someTime, allTimes()); r.Err == model.None {
		t.Error("records in two frames pass, of which clients read one")
	}
}

// A decoder that knows more than snappy must not let it pass.
func TestSnappyIsWhatOthersRead(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	repeats := 0
	for i := range 2000 {
		value := make([]byte, rng.IntN(1+1<<(i%17)))
		for j := range value {
			if value[j] = byte(rng.IntN(1 + i%7)); j > 40 && rng.IntN(3) > 0 {
				value[j] = value[j-37]
			}
		}
		body := bodyOf(value)
		if r := Check(batchWith(CodecSnappy, 1, snappy.Encode(nil, body)), someTime, allTimes()); r.Err != model.None {
			t.Fatalf("%d bytes of snappy: %v %s", len(body), r.Err, r.Message)
		}
		beyond := s2.EncodeBest(nil, body)
		if standardSnappy(beyond) {
			continue
		}
		repeats++
		if r := Check(batchWith(CodecSnappy, 1, beyond), someTime, allTimes()); r.Err != model.ErrInvalidRecord {
			t.Fatalf("%d bytes of what is no snappy: %v", len(body), r.Err)
		}
	}
	if repeats < 100 {
		t.Errorf("only %d blocks had repeats", repeats)
	}
	if standardSnappy([]byte{8, 0, 'a', 0b000_000_01, 0}) {
		t.Error("a repeat was not seen")
	}
}

func TestALargeSnappyBlockIsNotKept(t *testing.T) {
	f := new(inflater)
	f.snap.reset(snappy.Encode(nil, make([]byte, 8<<20)))
	if _, err := f.snap.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if f.put(); cap(f.snap.block) > keptBlock {
		t.Errorf("%d bytes are kept", cap(f.snap.block))
	}
}

// long writes a number in more bytes than it needs.
func long(n int64, size int) []byte {
	b := binary.AppendVarint(nil, n)
	for len(b) < size {
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	return b
}

func TestNumbersAreAsLongAsKafkaReadsThem(t *testing.T) {
	fields := []string{"timestamp", "offset", "key", "value", "headers", "header key", "header value"}
	for at, field := range append(fields, "size") {
		for size := 1; size <= 12; size++ {
			width := func(f string) int {
				if f == field {
					return size
				}
				return 1
			}
			rec := []byte{0}
			rec = append(rec, long(0, width("timestamp"))...)
			rec = append(rec, long(0, width("offset"))...)
			rec = append(rec, long(0, width("key"))...)
			rec = append(rec, long(0, width("value"))...)
			rec = append(rec, long(1, width("headers"))...)
			rec = append(rec, long(0, width("header key"))...)
			rec = append(rec, long(-1, width("header value"))...)
			body := append(long(int64(len(rec)), width("size")), rec...)
			most := maxVarint
			if field == "timestamp" {
				most = maxVarlong
			}
			batch := batchWith(CodecNone, 1, body)
			r := Check(batch, someTime, allTimes())
			if ok := r.Err == model.None; ok != (size <= most) {
				t.Errorf("%d: a %s of %d bytes: %v", at, field, size, r.Err)
			}
			if err := Records(batch, func(*Record) bool { return true }); (err == nil) != (size <= most) {
				t.Errorf("%d: a %s of %d bytes is read: %v", at, field, size, err)
			}
		}
	}
}

func TestBothReadersOfNumbersAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 100_000 {
		b := make([]byte, rng.IntN(12))
		for i := range b {
			if b[i] = byte(rng.Uint32()); rng.IntN(3) > 0 {
				b[i] |= 0x80
			}
		}
		for _, c := range []struct {
			of  func([]byte) (int64, int)
			s   func(*scan) (int64, bool)
			max int
		}{{varint, (*scan).varint, maxVarint}, {varlong, (*scan).varlong, maxVarlong}} {
			v, n := c.of(b)
			s := scan{buf: b}
			if w, ok := c.s(&s); ok != (n > 0) || ok && (w != v || s.pos != n) || n > c.max {
				t.Fatalf("% x: %d in %d bytes, or %d in %d, %v", b, v, n, w, s.pos, ok)
			}
		}
	}
	for _, n := range []int64{0, 1, -1, 63, -64, 1<<31 - 1, -1 << 31} {
		if v, _ := varint(binary.AppendVarint(nil, n)); v != n {
			t.Errorf("%d is read as %d", n, v)
		}
	}
}

func TestGzipsDefaultLevelHasTwoNames(t *testing.T) {
	body := bodyOf(bytes.Repeat([]byte("some text that packs well, in a way; "), 500))
	if a, b, c := deflate(nil, CodecGzip, 0, body), deflate(nil, CodecGzip, -1, body), deflate(nil, CodecGzip, 1, body); !bytes.Equal(a, b) || bytes.Equal(a, c) {
		t.Errorf("%d bytes at level 0, %d at -1, %d at 1", len(a), len(b), len(c))
	}
}

// The limit is about records that unpack to more than came; of others the size of the
// batch is the limit.
func TestARecordUnpacksToNoMoreThanIsAllowed(t *testing.T) {
	for _, n := range []int{10, 5000, 9000, 100_000} {
		rec := append(binary.AppendVarint([]byte{0, 0, 0, 1}, int64(n)), make([]byte, n+1)...)
		body := append(binary.AppendVarint(nil, int64(len(rec))), rec...)
		for _, codec := range []Codec{CodecNone, CodecGzip, CodecSnappy, CodecLZ4, CodecZstd} {
			batch := batchWith(codec, 1, deflate(nil, codec, 0, body))
			for _, less := range []int{0, 1} {
				rules := allTimes()
				rules.MaxRecord = int32(len(rec) - less)
				want := model.None
				if less > 0 && codec != CodecNone {
					want = model.ErrInvalidRecord
				}
				if r := Check(batch, someTime, rules); r.Err != want {
					t.Errorf("%s: a record of %d bytes where %d are allowed: %v %s", codec, len(rec), rules.MaxRecord, r.Err, r.Message)
				}
			}
		}
	}
}

func TestAFrameToSkipDoesNotHideALargeWindow(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(16<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	packed.WriteString("\x50\x2a\x4d\x18\x05\x00\x00\x00hello")
	enc.Reset(&packed)
	if _, err := enc.Write(bodyOf([]byte("a value"))); err != nil || enc.Flush() != nil || enc.Close() != nil {
		t.Fatal(err)
	}
	if r := Check(batchWith(CodecZstd, 1, packed.Bytes()), someTime, allTimes()); r.Err != model.None {
		t.Errorf("%v %s", r.Err, r.Message)
	}
}
