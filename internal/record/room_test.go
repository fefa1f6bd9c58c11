package record

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// ledger is a room that notes what was taken. It is full when its limit is reached.
type ledger struct {
	limit, held, most int64
	takes             []int64
}

func (l *ledger) Hold(n int64) bool {
	l.takes = append(l.takes, n)
	if l.held+n > l.limit {
		return false
	}
	l.held += n
	l.most = max(l.most, l.held)
	return true
}

func (l *ledger) Drop(n int64) { l.held -= n }

// roomy are rules with a room.
func roomy(target Codec, limit int64) (*CheckRules, *ledger) {
	l := &ledger{limit: limit}
	return &CheckRules{Codec: target, BeforeMax: NoTimeLimit, AfterMax: NoTimeLimit, Room: l}, l
}

// packed is a batch whose one record has so many bytes of zeros, which hardly count
// when they are packed.
func packed(codec Codec, size int) []byte {
	o := PlainOptions()
	o.Codec = codec
	b := NewBuilder(o)
	b.Add(1000, nil, make([]byte, size))
	return slices.Clone(b.Bytes())
}

// withBody is a batch of the codec with another body, sealed.
func withBody(batch []byte, codec Codec, body []byte) []byte {
	out := append(slices.Clone(batch[:HeaderSize]), body...)
	binary.BigEndian.PutUint32(out[atLength:], uint32(len(out)-frameSize))
	binary.BigEndian.PutUint16(out[atAttributes:], uint16(codec))
	seal(out)
	return out
}

// frame packs a body by zstd with options of its own.
func frame(t *testing.T, body []byte, stream bool, opts ...zstd.EOption) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if !stream {
		return w.EncodeAll(body, nil)
	}
	if _, err = w.Write(body); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const big = 12 << 20

// Sixteen batches of 15 KB that unpack to 125 MB each took 4 GB.
func TestWhatIsHeldUnpackedIsAccountedFor(t *testing.T) {
	plain := packed(CodecNone, big)
	body := plain[HeaderSize:]
	n := int64(len(body))
	window := zstd.WithWindowSize(16 << 20)
	bare := withBody(plain, CodecSnappy, snappy.Encode(nil, body))
	for _, c := range []struct {
		name   string
		batch  []byte
		target Codec
		takes  []int64
	}{
		{"kept as it is", packed(CodecGzip, big), CodecProducer, nil},
		{"small", packed(CodecGzip, smallHold/2-100), CodecLZ4, nil},
		{"repacked", packed(CodecGzip, big), CodecLZ4, []int64{2 * n}},
		{"unpacked", packed(CodecLZ4, big), CodecNone, []int64{2 * n}},
		{"packed anew", plain, CodecZstd, []int64{2 * n}},
		{"one block of snappy", bare, CodecProducer, []int64{n}},
		{"one block of snappy, repacked", bare, CodecGzip, []int64{n, 3 * n}},
		{"a frame that tells its size", withBody(plain, CodecZstd, frame(t, body, false, window)), CodecProducer, []int64{n}},
		{"the same, repacked", withBody(plain, CodecZstd, frame(t, body, false, window)), CodecGzip, []int64{n, 3 * n}},
		{"a frame behind an empty one", withBody(plain, CodecZstd, append(slices.Clone(emptyFrame), frame(t, body, false, window)...)), CodecProducer, []int64{n}},
		{"framed blocks of snappy", withBody(plain, CodecSnappy, xerial(body[:2*smallHold], body[2*smallHold:])), CodecProducer, []int64{n - 2*smallHold}},
		{"a single segment", withBody(plain, CodecZstd, frame(t, body, false, zstd.WithSingleSegment(true))), CodecProducer, []int64{n}},
	} {
		rules, l := roomy(c.target, 1<<40)
		if r := Check(c.batch, 1000, rules); r.Err != model.None {
			t.Errorf("%s: %v %s", c.name, r.Err, r.Message)
		}
		if !slices.Equal(l.takes, c.takes) || l.held != 0 {
			t.Errorf("%s: room was taken for %v, not %v, and is kept for %d", c.name, l.takes, c.takes, l.held)
		}
	}
}

// emptyFrame is a frame of zstd with a window of 16 MiB, a content of 0 bytes, and an
// empty block.
var emptyFrame = []byte{0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x70, 0, 0, 0, 0, 1, 0, 0}

// xerial packs each part into a block of snappy.
func xerial(parts ...[]byte) []byte {
	out := deflateSnappy(nil, nil)
	for _, p := range parts {
		block := snappy.Encode(nil, p)
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(block))), block...)
	}
	return out
}

// Frames need not tell what they hold, there may be several, and some to be skipped. What
// is held for them is never less than what they unpack to, and hardly more if their blocks
// are full.
func TestFramesAreMeasuredByTheirBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(rng.IntN(1 + i>>16))
	}
	for range 50 {
		var body []byte
		total, frames := 0, 1+rng.IntN(4)
		for range frames {
			part := noise[:rng.IntN(len(noise))]
			total += len(part)
			body = append(body, frame(t, part, rng.IntN(2) == 0, zstd.WithEncoderCRC(rng.IntN(2) == 0), zstd.WithSingleSegment(rng.IntN(2) == 0),
				zstd.WithWindowSize(1<<(16+rng.IntN(8))))...)
			if rng.IntN(2) == 0 {
				body = append(body, 0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3)
			}
		}
		if got := wholeZstd(body); got < int64(total) || got > int64(total+frames*zstdBlock) {
			t.Fatalf("%d frames of %d bytes are measured as %d", frames, total, got)
		}
		wholeZstd(body[:rng.IntN(len(body))]) // cut anywhere
	}
}

// A thousand frames of 14 bytes, each of 128 KiB: not each of them makes a new buffer.
func TestManyFramesAreUnpackedIntoOneBuffer(t *testing.T) {
	one := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x70, 0, 0, 2, 0}
	one = append(one, 1|1<<1|0, 0, 0x10, 7) // the last block: 128 KiB of one byte
	body := slices.Concat(emptyFrame, bytes.Repeat(one, 1000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := inflate(make([]byte, 0, 1000*zstdBlock+1), CodecZstd, body)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != 1000*zstdBlock {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 3*1000*zstdBlock {
		t.Errorf("%d MB were allocated for %d", made>>20, len(got)>>20)
	}
}

// Times sees what Records sees, also of what is packed.
func TestTimesAreThoseOfTheRecords(t *testing.T) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		for _, appended := range []bool{false, true} {
			o := PlainOptions()
			o.Codec = codec
			b := NewBuilder(o)
			for i := range 3000 {
				b.Add(model.Millis(1000+i*7%500), nil, []byte("value"))
			}
			batch := slices.Clone(b.Bytes())
			Stamp(batch, 40, 3)
			if appended {
				batch[atAttributes+1] |= logAppendTimeBit
			}
			type at struct {
				o model.Offset
				t model.Millis
			}
			var want, got []at
			err := Records(batch, func(r *Record) bool { want = append(want, at{r.Offset, r.Timestamp}); return true })
			also := Times(batch, func(o model.Offset, t model.Millis) bool { got = append(got, at{o, t}); return true })
			if err != nil || also != nil || len(got) != 3000 || !slices.Equal(got, want) {
				t.Errorf("%v, appended %v: %d of %d, %v %v", codec, appended, len(got), len(want), err, also)
			}
			if Times(batch[:len(batch)-1], func(model.Offset, model.Millis) bool { return true }) == nil {
				t.Errorf("%v: a batch that is cut short has times", codec)
			}
		}
	}
}

func TestWhateverFailsGivesItsRoomBack(t *testing.T) {
	plain := packed(CodecNone, big)
	whole := frame(t, plain[HeaderSize:], false, zstd.WithWindowSize(16<<20))
	broken := slices.Clone(whole)
	broken[len(broken)-1] ^= 1 // of the sum of its content
	for _, c := range []struct {
		name   string
		batch  []byte
		change func(*CheckRules)
		err    model.Error
		says   string
	}{
		{"a wrong frame", withBody(plain, CodecZstd, broken), func(*CheckRules) {}, model.ErrInvalidRecord, "cannot be unpacked"},
		{"a record too many", withBody(plain, CodecZstd, frame(t, append(slices.Clone(plain[HeaderSize:]), 1, 2), false, zstd.WithWindowSize(16<<20))),
			func(*CheckRules) {}, model.ErrInvalidRecord, "bytes follow"},
		{"too large when repacked", packed(CodecZstd, big), func(r *CheckRules) { r.Codec, r.MaxBytes = CodecSnappy, 20_000 }, model.ErrMessageTooLarge, "repacked batch"},
		{"more than may be held", packed(CodecZstd, maxHeld+1), func(r *CheckRules) { r.Codec = CodecGzip }, model.ErrInvalidRecord, "cannot be repacked"},
	} {
		rules, l := roomy(CodecProducer, 1<<40)
		c.change(rules)
		if r := Check(c.batch, 1000, rules); r.Err != c.err || !strings.Contains(r.Message, c.says) {
			t.Errorf("%s: %v %s", c.name, r.Err, r.Message)
		}
		if l.held != 0 {
			t.Errorf("%s: room is kept for %d bytes", c.name, l.held)
		}
	}
}

// A size that is known before is judged before: no room is asked for.
func TestWhatWillBeTooLargeIsNotRepacked(t *testing.T) {
	for codec := CodecGzip; codec <= CodecZstd; codec++ {
		for _, size := range []int{2 * smallHold, maxHeld + 1} {
			if size > maxHeld && codec != CodecZstd {
				continue
			}
			rules, l := roomy(CodecNone, 0)
			rules.MaxBytes = smallHold
			if r := Check(packed(codec, size), 1000, rules); r.Err != model.ErrMessageTooLarge || len(l.takes) != 0 {
				t.Errorf("%v, max.message.bytes: %v %s, room for %v", codec, r.Err, r.Message, l.takes)
			}
			rules.MaxBytes, rules.SegmentBytes = 0, smallHold
			if r := Check(packed(codec, size), 1000, rules); r.Err != model.ErrRecordListTooLarge || len(l.takes) != 0 {
				t.Errorf("%v, segment.bytes: %v %s, room for %v", codec, r.Err, r.Message, l.takes)
			}
		}
	}
}

// Numbered anew, records get shorter: what was too large may fit.
func TestASizeIsNotForeseenWhereRecordsAreNumberedAnew(t *testing.T) {
	const count = 100
	var body []byte
	b := NewBuilder(PlainOptions())
	for range count {
		rec := []byte{0, 0}                   // attributes, timestamp delta
		rec = binary.AppendVarint(rec, 1<<30) // offset delta, five bytes
		rec = append(rec, 1, 2, 'v', 0)       // no key, a value, no headers
		body = append(binary.AppendVarint(body, int64(len(rec))), rec...)
		b.Add(1000, nil, []byte("v"))
	}
	fits, err := renumber(body, count)
	if err != nil {
		t.Fatal(err)
	}
	rules, _ := roomy(CodecNone, 1<<40)
	rules.MaxBytes = int32(HeaderSize + len(fits))
	r := Check(withBody(b.Bytes(), CodecGzip, deflate(nil, CodecGzip, 0, body)), 1000, rules)
	if r.Err != model.None || r.Header.Size() != int(rules.MaxBytes) {
		t.Errorf("%v %s: %d bytes of %d", r.Err, r.Message, r.Header.Size(), rules.MaxBytes)
	}
}

func TestNothingIsUnpackedWithoutRoom(t *testing.T) {
	plain := packed(CodecNone, big)
	for name, batch := range map[string][]byte{
		"to repack": packed(CodecGzip, big), "to look at": withBody(plain, CodecZstd, frame(t, plain[HeaderSize:], false, zstd.WithWindowSize(16<<20))),
	} {
		rules, l := roomy(CodecLZ4, 0)
		if r := Check(batch, 1000, rules); r.Err != model.ErrRequestTimedOut || l.held != 0 || r.Batch != nil {
			t.Errorf("%s: %v %s", name, r.Err, r.Message)
		}
	}
}
