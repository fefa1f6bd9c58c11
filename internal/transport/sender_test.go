package transport

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

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
		if err := s.send(&out, nil, l, func() { writes++ }); err != nil {
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

// connected returns two ends of a connection over loopback.
func connected(t testing.TB) (from, to net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if to, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if from, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close(); to.Close() })
	return from, to
}

// stored returns a file with the content.
func stored(t testing.TB, content []byte) *os.File {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	return f
}

// Ranges of files that the kernel moves arrive as those that are read first do,
// between whatever is sent with them.
func TestFilesReachAConnectionWholeAndInOrder(t *testing.T) {
	content := make([]byte, 8<<20)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	f := stored(t, content)
	from, to := connected(t)
	direct := routeTo(from)
	rapid.Check(t, func(t *rapid.T) {
		l, want := &Layout{}, []byte{}
		for range rapid.IntRange(1, 20).Draw(t, "pieces") {
			n := rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{directMin - 1, directMin, sendChunk, 3*sendChunk + 1, 2 << 20})).Draw(t, "size")
			at := rapid.IntRange(0, len(content)-n).Draw(t, "at")
			if rapid.Bool().Draw(t, "file") {
				l.File(f, int64(at), n, nil)
			} else {
				l.Bytes(content[at : at+n])
			}
			want = append(want, content[at:at+n]...)
		}
		l.flush()
		sent := make(chan error, 1)
		go func() {
			s := &sender{chunk: make([]byte, sendChunk)}
			sent <- s.send(from, direct, l, func() {})
		}()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(to, got); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes arrived other than they were, error %v", len(got), err)
		}
	})
}

// A file that ends before the range does is an error, not a shorter answer.
func TestAFileThatEndsEarlyIsAnError(t *testing.T) {
	for _, there := range []int{0, directMin, 3 * sendChunk} {
		f := stored(t, make([]byte, there))
		from, to := connected(t)
		go io.Copy(io.Discard, to)
		l := &Layout{}
		l.Bytes([]byte("head"))
		l.File(f, 0, 4*sendChunk, nil)
		s := &sender{chunk: make([]byte, sendChunk)}
		if err := s.send(from, routeTo(from), l, func() {}); err == nil {
			t.Errorf("of %d bytes, %d were sent, and nobody minds", 4*sendChunk, there)
		}
	}
}

// A connection that takes nothing any more ends by its deadline, also while a file
// is on its way.
func TestAFileStopsAtTheDeadline(t *testing.T) {
	f := stored(t, make([]byte, 32<<20))
	from, _ := connected(t)
	l := &Layout{}
	l.File(f, 0, 32<<20, nil)
	s := &sender{chunk: make([]byte, sendChunk)}
	err := s.send(from, routeTo(from), l, func() { from.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)) })
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
}
