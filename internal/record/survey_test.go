package record_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// surveyed checks a batch that arrives in pieces behind other bytes.
func surveyed(batch []byte, rules record.CheckRules, piece func() int) record.CheckResult {
	const before = 37
	buf := make([]byte, before+len(batch))
	var s record.Survey
	s.Begin(before, len(buf))
	for came := 0; came < len(buf); {
		n := min(max(1, piece()), len(buf)-came)
		copy(buf[max(came, before):max(came+n, before)], batch[max(0, came-before):])
		came += n
		if whole := s.Extend(buf[:came]); whole != (came == len(buf)) {
			panic("the survey does not know when the batch is whole")
		}
	}
	data := buf[before:]
	if len(data) > 0 && s.At(buf, data) {
		rules.Seen = &s
	}
	return record.Check(data, now, &rules)
}

// same fails if a survey changes what a check says.
func same(t *testing.T, batch []byte, rules record.CheckRules, piece func() int) {
	t.Helper()
	want := record.Check(slices.Clone(batch), now, &rules)
	if got := surveyed(batch, rules, piece); !reflect.DeepEqual(got, want) {
		t.Fatalf("a survey changes the verdict on %d bytes:\n%+v\n%+v", len(batch), got, want)
	}
}

// Whatever comes, and however it comes in pieces, a survey changes no verdict and no
// byte of what is appended.
func TestASurveyChangesNoVerdict(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 7))
	var batches [][]byte
	for _, codec := range codecs {
		batches = append(batches, varied(codec), plain(codec, now, now-1), plain(codec, -1, -1), plain(codec, now+90_000, -1, now))
	}
	for i, b := range fixtures(t) {
		if i%20 == 0 {
			batches = append(batches, b)
		}
	}
	big := record.NewBuilder(record.PlainOptions())
	for range 300 {
		big.Add(now, []byte("key"), make([]byte, rng.IntN(1500)))
	}
	trailed := append(plain(record.CodecNone, now), 0)
	trailed[11]++ // its length, by the byte that follows the last record
	batches = append(batches, big.Bytes(), plain(record.CodecNone, now-300, now), plain(record.CodecNone, now, now+300), seal(trailed))
	for range 4000 {
		b := slices.Clone(batches[rng.IntN(len(batches))])
		for range rng.IntN(3) {
			b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
		}
		if rng.IntN(2) == 0 && len(b) > record.HeaderSize {
			b = seal(b)
		}
		if rng.IntN(8) == 0 {
			b = b[:rng.IntN(len(b)+1)]
		}
		rules := *anything()
		rules.Compacted, rules.LogAppendTime = rng.IntN(3) == 0, rng.IntN(3) == 0
		if rng.IntN(2) == 0 {
			rules.BeforeMax, rules.AfterMax = model.Millis(rng.IntN(1000)), model.Millis(rng.IntN(100_000))
		}
		size := 1 + rng.IntN(1+len(b))
		same(t, b, rules, func() int { return rng.IntN(size) })
	}
}

// A survey of other bytes, or of some of them, is not taken for one of these.
func TestASurveyVouchesForItsBytesOnly(t *testing.T) {
	b := plain(record.CodecNone, now)
	buf := append(slices.Clone(b), b...)
	var s record.Survey
	s.Begin(0, len(b))
	if s.Extend(buf[:len(b)-1]) || s.At(buf, buf[:len(b)]) {
		t.Error("it is whole before all came")
	}
	if !s.Extend(buf) || !s.At(buf, buf[:len(b)]) {
		t.Error("it does not know its own bytes")
	}
	for _, other := range [][]byte{buf[len(b):], buf[:len(b)-1], buf, b, nil} {
		if s.At(buf, other) {
			t.Errorf("it vouches for other %d bytes", len(other))
		}
	}
}

// A batch that was looked at while it came is not summed again, nor are its records read
// again if they are not packed: what changed since is not noticed. It is in one that was
// not looked at, or not to its end.
func TestWhatWasSurveyedIsNotLookedAtAgain(t *testing.T) {
	for _, c := range []struct {
		codec  record.Codec
		unseen int // bytes that the survey did not get
		want   model.Error
	}{
		{record.CodecNone, 0, model.None},
		{record.CodecLZ4, 0, model.ErrInvalidRecord}, // it has to be unpacked to be judged
		{record.CodecNone, 1, model.ErrCorruptMessage},
		{record.CodecLZ4, 1, model.ErrCorruptMessage},
		{record.CodecNone, 1000, model.ErrCorruptMessage},
	} {
		b := plain(c.codec, now, now, now)
		rules := anything()
		rules.Seen = &record.Survey{}
		rules.Seen.Begin(0, len(b))
		rules.Seen.Extend(b[:max(0, len(b)-c.unseen)])
		for i := record.HeaderSize; i < len(b); i++ {
			b[i] = 0xff
		}
		if got := record.Check(b, now, rules).Err; got != c.want {
			t.Errorf("%v, all but %d bytes surveyed: %v, not %v", c.codec, c.unseen, got, c.want)
		}
	}
}
