// Package least is the least broker: the shortest program that serves the client of
// bench/load, for what this client and the machine leave of a floor. It receives, sums
// and writes what is produced, piece by piece, and sends it by sendfile, each
// connection on a thread of its own. It keeps nothing over a restart, copies nothing to
// other nodes and checks nothing but sums. It is not a strict bound: the thread that
// receives may wake for each segment of a piece.
package least

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Partitions is how many every topic has; any name is one. Partition p is led by
// node p mod the number of nodes.
const Partitions = 6

const (
	piece      = 128 << 10 // of a read and a write
	sendBuffer = 102400    // of a socket, as both systems have it
)

// Cluster is all nodes: listeners of one process.
type Cluster struct {
	dir       string
	listeners []*net.TCPListener

	mu    sync.Mutex
	logs  map[place]*partition
	conns map[*os.File]bool // of all connections that have not ended
	ids   int64             // of producers, the last one
	ended bool
}

type place struct {
	topic     string
	partition int32
}

// partition is a file of whole batches.
type partition struct {
	mu   sync.Mutex
	file *os.File
	size int64
	next int64 // offset
	// batches are the offset and the position of each.
	batches []batch
}

type batch struct{ offset, at int64 }

// Listen opens a port for each node; 0 as the first one lets the kernel choose all.
func Listen(dir string, nodes, port int) (*Cluster, error) {
	c := &Cluster{dir: dir, logs: map[place]*partition{}, conns: map[*os.File]bool{}}
	for i := range nodes {
		at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
		if port != 0 {
			at.Port += i
		}
		l, err := net.ListenTCP("tcp", at)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.listeners = append(c.listeners, l)
	}
	return c, nil
}

// Addresses are where the nodes listen.
func (c *Cluster) Addresses() []string {
	var out []string
	for _, l := range c.listeners {
		out = append(out, l.Addr().String())
	}
	return out
}

// Serve returns when the cluster is closed, or with what went wrong.
func (c *Cluster) Serve() error {
	// A thread that comes back from the kernel finds a processor of the runtime free.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(16, runtime.NumCPU())))
	var all errgroup.Group
	for _, l := range c.listeners {
		all.Go(func() error {
			defer c.Close()
			return c.accept(l, &all)
		})
	}
	err := all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.logs {
		p.file.Close()
	}
	return err
}

func (c *Cluster) accept(l *net.TCPListener, all *errgroup.Group) error {
	for {
		tcp, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		tcp.SetWriteBuffer(sendBuffer)
		f, err := blocking(tcp)
		if err != nil {
			return err
		}
		if !c.keep(f) {
			f.Close()
			return nil
		}
		all.Go(func() error {
			runtime.LockOSThread()
			defer c.forget(f)
			err := (&conn{c: c, f: f, buf: make([]byte, piece)}).run()
			if c.closed() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
				return nil // it ended, or its client left
			}
			return err
		})
	}
}

// blocking takes a connection out of the runtime's poller.
func blocking(tcp *net.TCPConn) (*os.File, error) {
	defer tcp.Close()
	f, err := tcp.File()
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(int(f.Fd()), false); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (c *Cluster) keep(f *os.File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.conns[f] = true
	}
	return !c.ended
}

// forget closes a connection, so that Close finds only open ones.
func (c *Cluster) forget(f *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, f)
	f.Close()
}

func (c *Cluster) closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// Close ends all connections and removes the files, which Serve closes when no
// connection uses them any more.
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	for _, l := range c.listeners {
		l.Close()
	}
	for f := range c.conns {
		if raw, err := f.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
		}
	}
	for _, p := range c.logs {
		os.Remove(p.file.Name())
	}
}

// at returns the log of a partition. Once the cluster has ended it makes none.
func (c *Cluster) at(topic string, p int32) (*partition, error) {
	if p < 0 || p >= Partitions {
		return nil, fmt.Errorf("there is no partition %d", p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, errors.New("the cluster has ended")
	}
	key := place{topic, p}
	if l := c.logs[key]; l != nil {
		return l, nil
	}
	f, err := os.Create(filepath.Join(c.dir, fmt.Sprintf("%s-%d.log", topic, p)))
	if err != nil {
		return nil, err
	}
	l := &partition{file: f}
	c.logs[key] = l
	return l, nil
}

// conn is one connection, which is read through a buffer of a piece.
type conn struct {
	c        *Cluster
	f        *os.File
	buf      []byte
	from, to int // what was read and not used
	out      []byte
}

// need reads until n bytes, at most a piece, are there and returns them.
func (c *conn) need(n int) ([]byte, error) {
	if n > len(c.buf) {
		return nil, fmt.Errorf("%d bytes are more than a piece", n)
	}
	for c.to-c.from < n {
		if c.from > 0 {
			c.to, c.from = copy(c.buf, c.buf[c.from:c.to]), 0
		}
		got, err := c.f.Read(c.buf[c.to:])
		if err != nil {
			return nil, err
		}
		c.to += got
	}
	return c.buf[c.from : c.from+n], nil
}

// next uses up n bytes.
func (c *conn) next(n int) ([]byte, error) {
	b, err := c.need(n)
	c.from += len(b)
	return b, err
}

func (c *conn) int16() (int16, error) {
	b, err := c.next(2)
	if err != nil {
		return 0, err
	}
	return int16(binary.BigEndian.Uint16(b)), nil
}

func (c *conn) int32() (int32, error) {
	b, err := c.next(4)
	if err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(b)), nil
}

// text reads a string; null is "".
func (c *conn) text() (string, error) {
	n, err := c.int16()
	if err != nil || n < 0 {
		return "", err
	}
	b, err := c.next(int(n))
	return string(b), err
}

// run serves requests until the connection ends.
func (c *conn) run() error {
	for {
		head, err := c.need(12)
		if err != nil {
			return err
		}
		size := int(int32(binary.BigEndian.Uint32(head)))
		r := request{key: int16(binary.BigEndian.Uint16(head[4:])), version: int16(binary.BigEndian.Uint16(head[6:])),
			id: int32(binary.BigEndian.Uint32(head[8:]))}
		c.from += 12
		if err := r.check(size); err != nil {
			return err
		}
		if r.key == keyProduce {
			err = c.produce(r)
		} else {
			var body []byte
			if body, err = c.next(size - 8); err == nil {
				err = c.answer(r, body)
			}
		}
		if err != nil {
			return err
		}
	}
}

// request is the fixed part of a request's header.
type request struct {
	key, version int16
	id           int32
}

// check refuses what is not served, and a size without the header. An unknown version
// of ApiVersions has an answer.
func (r request) check(size int) error {
	v, ok := served[r.key]
	switch {
	case size < 8:
		return fmt.Errorf("a request of %d bytes has no header", size)
	case !ok || r.key != keyVersions && (r.version < v.oldest || r.version > v.newest):
		return fmt.Errorf("key %d version %d is not served", r.key, r.version)
	}
	return nil
}

// begin starts an answer; its size is filled in by finish.
func (c *conn) begin(r request) {
	c.out = binary.BigEndian.AppendUint32(append(c.out[:0], 0, 0, 0, 0), uint32(r.id))
}

// finish sends the answer, of which more bytes follow.
func (c *conn) finish(more int) error {
	binary.BigEndian.PutUint32(c.out, uint32(len(c.out)-4+more))
	return c.send(c.out)
}

func (c *conn) send(b []byte) error {
	_, err := c.f.Write(b)
	return err
}
