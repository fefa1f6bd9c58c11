package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// serveOn serves h until the benchmark ends.
func serveOn(b *testing.B, h Handler) net.Addr {
	s, err := Listen("127.0.0.1:0", Options{})
	if err != nil {
		b.Fatal(err)
	}
	go s.Serve(h)
	b.Cleanup(func() { s.Close(context.Background()) })
	return s.Addr()
}

// Round trips of a small request, one at a time.
func BenchmarkRoundTrip(b *testing.B) {
	addr := serveOn(b, HandlerFunc(func(r *Request) { r.Reply(answerOf(r)) }))
	c, err := Dial(context.Background(), addr.String(), ClientOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	req := metadata()
	b.ReportAllocs()
	for b.Loop() {
		frame, err := c.DoFrame(context.Background(), req)
		if err != nil {
			b.Fatal(err)
		}
		frame.Release()
	}
}

// Produce requests, a few in flight on one connection.
func BenchmarkProduce(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			resp := produce().ResponseKind()
			addr := serveOn(b, HandlerFunc(func(r *Request) { r.Reply(Message(resp)) }))
			c, err := net.Dial("tcp", addr.String())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { c.Close() })
			frame := frameOf(1, produceOf(size))
			answers := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, c)
				answers <- err
			}()
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if _, err := c.Write(frame); err != nil {
					b.Fatal(err)
				}
			}
			c.(*net.TCPConn).CloseWrite()
			<-answers
		})
	}
}

// Fetch responses of ranges of a file in memory.
func BenchmarkFetch(b *testing.B) {
	for _, shape := range []struct{ parts, size int }{{1, 64 << 10}, {1, 1 << 20}, {64, 16 << 10}} {
		b.Run(fmt.Sprintf("%dx%d", shape.parts, shape.size), func(b *testing.B) {
			file := bytes.NewReader(make([]byte, shape.size))
			resp := &wire.FetchResponse{Version: 17, Topics: make([]wire.FetchTopic, 1)}
			for i := range int32(shape.parts) {
				p := wire.NewFetchPartition(i, model.None)
				p.Records = wire.Records{File: file, Len: shape.size}
				resp.Topics[0].Partitions = append(resp.Topics[0].Partitions, p)
			}
			answer := Fetch(resp)
			addr := serveOn(b, HandlerFunc(func(r *Request) { r.Reply(answer) }))
			c, err := Dial(context.Background(), addr.String(), ClientOptions{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { c.Close() })
			req := wire.NewRequest(1, 17)
			b.ReportAllocs()
			b.SetBytes(int64(shape.parts * shape.size))
			for b.Loop() {
				frame, err := c.DoFrame(context.Background(), req)
				if err != nil {
					b.Fatal(err)
				}
				frame.Release()
			}
		})
	}
}
