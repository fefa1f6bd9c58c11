package transport

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/wire"
)

// scripted is a response of bytes, buffered bytes and file ranges in any order.
type scripted struct {
	content []byte
	cuts    []int // lengths of the pieces
	kinds   []int
}

func (p scripted) Layout(l *Layout) error {
	at := 0
	for i, n := range p.cuts {
		part := p.content[at : at+n]
		switch p.kinds[i] {
		case 0:
			l.SetBuffer(append(l.Buffer(), part...))
		case 1:
			l.Bytes(part)
		case 2:
			l.File(bytes.NewReader(p.content), int64(at), n, nil)
		}
		at += n
	}
	return nil
}

// Whatever a response is made of, it leaves whole, in order and in writes of a
// bounded size.
func TestAnyLayoutIsSentWhole(t *testing.T) {
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	rapid.Check(t, func(t *rapid.T) {
		p := scripted{}
		total := 0
		for range rapid.IntRange(0, 700).Draw(t, "pieces") {
			n := rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{sendChunk - 1, sendChunk, sendChunk + 1})).Draw(t, "size")
			if total+n > len(content) {
				break
			}
			p.cuts = append(p.cuts, n)
			p.kinds = append(p.kinds, rapid.IntRange(0, 2).Draw(t, "kind"))
			total += n
		}
		p.content = content[:total]
		l := &Layout{}
		if err := l.add(3, 12, 7, p); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		writes := 0
		s := &sender{chunk: make([]byte, sendChunk)}
		if err := s.send(&out, l, func() { writes++ }); err != nil {
			t.Fatal(err)
		}
		id, body, err := wire.ParseResponse(out.Bytes()[4:], true)
		if err != nil || id != 7 || !bytes.Equal(body, p.content) {
			t.Fatalf("%d bytes arrived, error %v; want %d", len(body), err, total)
		}
		if most := out.Len()/sendChunk + len(p.cuts)/(maxVectors/2) + 2; writes > most {
			t.Fatalf("%d writes of %d bytes in %d pieces", writes, out.Len(), len(p.cuts))
		}
	})
}
