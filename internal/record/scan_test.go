package record

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// oddRecord writes a record, whole or not, as it may come: small and large numbers,
// null fields, headers, lengths that are wrong, bytes that changed.
func oddRecord(rng *rand.Rand) []byte {
	number := func(b []byte) []byte {
		n := [...]int64{0, 1, -1, 63, 64, -65, 8191, 8192, -8193, rng.Int64()}[rng.IntN(10)]
		return binary.AppendVarint(b, n)
	}
	field := func(b []byte) []byte {
		n := [...]int{0, 1, 20, 63, 64, 200, 9000}[rng.IntN(7)]
		if rng.IntN(4) == 0 {
			return binary.AppendVarint(b, -1)
		}
		return append(binary.AppendVarint(b, int64(n)), make([]byte, n)...)
	}
	body := field(field(number(number([]byte{0}))))
	if rng.IntN(4) == 0 {
		body = field(field(binary.AppendVarint(body, 1)))
	} else {
		body = append(body, 0)
	}
	size := len(body)
	if rng.IntN(4) == 0 {
		size += rng.IntN(5) - 2
	}
	out := append(binary.AppendVarint(nil, int64(size)), body...)
	if rng.IntN(3) == 0 {
		out[rng.IntN(min(len(out), 12))] ^= 1 << rng.IntN(8)
	}
	return append(out[:len(out)-rng.IntN(2)*rng.IntN(len(out))], make([]byte, rng.IntN(3))...)
}

// What is read in short is what is read in full.
func TestAPlainRecordIsReadAsAnyOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	short := 0
	for i := range 200_000 {
		before := rng.IntN(3)
		buf := append(make([]byte, before), oddRecord(rng)...)
		f, end := plain(buf, before)
		if end == 0 {
			continue
		}
		short++
		s := scan{buf: buf, pos: before}
		if want, ok := s.full(); !ok || f != want || s.pos != end {
			t.Fatalf("record %d, % x: %+v up to %d in short, %+v up to %d in full, %v", i, buf, f, end, want, s.pos, ok)
		}
	}
	if short < 20_000 {
		t.Errorf("only %d records were read in short", short)
	}
}

func TestWhatMostRecordsAreIsReadInShort(t *testing.T) {
	b := NewBuilder(PlainOptions())
	for i := range 1000 {
		b.Add(1, [][]byte{nil, []byte("key")}[i%2], make([]byte, i))
	}
	body := b.Bytes()[HeaderSize:]
	for at, n := 0, 0; at < len(body); n++ {
		if _, at = plain(body, at); at == 0 {
			t.Fatalf("record %d is read in full", n)
		}
	}
}
