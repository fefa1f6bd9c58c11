package ceiling

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Floors are the least processor time in seconds that the server's side of a
// transfer costs for 10^9 bytes: the shortest program that makes the same system
// calls, each side on a thread of its own. What the client spends is not in it.
type Floors struct {
	ProduceRF1 float64 `json:"produce_rf1_cpu_s_per_gb"` // receive, CRC32C, write to a file
	ProduceRF3 float64 `json:"produce_rf3_cpu_s_per_gb"` // that three times, and the leader sends to two followers
	Sendfile   float64 `json:"sendfile_cpu_s_per_gb"`    // a file in the page cache to a connection, by sendfile
	Mapped     float64 `json:"mmap_cpu_s_per_gb"`        // by a memory map and write
	Copied     float64 `json:"pread_cpu_s_per_gb"`       // by a read into a buffer and write
	Memory     float64 `json:"memory_cpu_s_per_gb"`      // from a buffer, whatever it costs to fill it
}

// Way is one of the floors.
type Way int

// The ways, as the fields of Floors.
const (
	ProduceRF1 Way = iota
	ProduceRF3
	Sendfile
	Mapped
	Copied
	Memory
)

// Consume is the least of the ways to send what is in the page cache.
func (f Floors) Consume() float64 { return min(f.Sendfile, f.Mapped) }

// pieces are the sizes of the reads and writes that are tried; the cheapest counts.
var pieces = []int{64 << 10, 128 << 10, 256 << 10}

// MeasureFloors moves the megabytes in each way through files in the directory,
// which are removed. Ways that are not among those given, if any are, stay infinite.
func MeasureFloors(dir string, megs int, only ...Way) (Floors, error) {
	// A thread that comes back from the kernel finds a processor of the runtime free:
	// no time goes into the runtime's own scheduling.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(8, runtime.NumCPU())))
	f := Floors{ProduceRF1: math.Inf(1), ProduceRF3: math.Inf(1), Sendfile: math.Inf(1), Mapped: math.Inf(1),
		Copied: math.Inf(1), Memory: math.Inf(1)}
	for _, piece := range pieces {
		m := mover{dir: dir, bytes: int64(megs) << 20, piece: piece}
		for _, way := range []struct {
			way   Way
			name  string
			least *float64
			run   func() (time.Duration, error)
		}{
			{ProduceRF1, "produce to one replica", &f.ProduceRF1, func() (time.Duration, error) { return m.produce(0) }},
			{ProduceRF3, "produce to three replicas", &f.ProduceRF3, func() (time.Duration, error) { return m.produce(2) }},
			{Sendfile, "consume by sendfile", &f.Sendfile, func() (time.Duration, error) { return m.consume(m.sendfile) }},
			{Mapped, "consume by a memory map", &f.Mapped, func() (time.Duration, error) { return m.consume(m.mapped) }},
			{Copied, "consume by a read and a write", &f.Copied, func() (time.Duration, error) { return m.consume(m.copied) }},
			{Memory, "consume from memory", &f.Memory, func() (time.Duration, error) { return m.consume(m.memory) }},
		} {
			if len(only) > 0 && !slices.Contains(only, way.way) {
				continue
			}
			cpu, err := way.run()
			if err != nil {
				return f, fmt.Errorf("measure the floor of %s: %w", way.name, err)
			}
			*way.least = min(*way.least, cpu.Seconds()/(float64(m.bytes)/1e9))
		}
	}
	return f, nil
}

// mover moves bytes in pieces.
type mover struct {
	dir   string
	bytes int64
	piece int
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// result is what one thread spent.
type result struct {
	cpu time.Duration
	err error
}

// pair returns two ends of a TCP connection over loopback.
func pair() (from, to *os.File, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		return nil, nil, err
	}
	defer b.Close()
	if from, err = blocking(a); err != nil {
		return nil, nil, err
	}
	if to, err = blocking(b); err != nil {
		from.Close()
		return nil, nil, err
	}
	return from, to, nil
}

// blocking takes a connection out of the runtime's poller: a thread that waits for
// it waits in the kernel.
func blocking(c net.Conn) (*os.File, error) {
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	return f, syscall.SetNonblock(int(f.Fd()), false)
}

// produce sends to a server that has so many followers, and returns what the
// server and they spent.
func (m mover) produce(followers int) (time.Duration, error) {
	var senders, receivers []*os.File
	defer func() {
		for _, f := range senders {
			f.Close()
		}
	}()
	for range 1 + followers {
		from, to, err := pair()
		if err != nil {
			return 0, err
		}
		senders, receivers = append(senders, from), append(receivers, to)
	}
	results := make(chan result, len(receivers))
	for _, to := range receivers[1:] {
		go m.store(to, nil, results)
	}
	go m.store(receivers[0], senders[1:], results)
	err := m.fill(senders[0])
	senders[0].Close() // so that the server ends, whatever happened
	return sum(err, results, len(receivers))
}

// sum adds what the threads spent.
func sum(err error, results chan result, threads int) (time.Duration, error) {
	total := time.Duration(0)
	for range threads {
		r := <-results
		total += r.cpu
		err = errors.Join(err, r.err)
	}
	return total, err
}

// fill sends everything.
func (m mover) fill(to *os.File) error {
	buf := make([]byte, m.piece)
	for left := m.bytes; left > 0; {
		n, err := to.Write(buf[:min(left, int64(len(buf)))])
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// store receives everything, writes it to a file and hands it on.
func (m mover) store(from *os.File, to []*os.File, results chan result) {
	defer from.Close()
	defer func() {
		for _, next := range to {
			next.Close()
		}
	}()
	f, err := os.CreateTemp(m.dir, "floor-")
	if err != nil {
		results <- result{0, err}
		return
	}
	defer os.Remove(f.Name())
	defer f.Close()
	cpu, err := spent(func() error { return m.take(from, f, to) })
	results <- result{cpu, err}
}

func (m mover) take(from, f *os.File, to []*os.File) error {
	buf, crc := make([]byte, m.piece), uint32(0)
	for left := m.bytes; left > 0; {
		n, err := from.Read(buf)
		if err != nil {
			return err
		}
		left -= int64(n)
		crc = crc32.Update(crc, castagnoli, buf[:n])
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		for _, next := range to {
			if _, err := next.Write(buf[:n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// consume writes a file, sends it in some way to a reader, and returns what the
// sender spent.
func (m mover) consume(send func(f, to *os.File) error) (time.Duration, error) {
	f, err := os.CreateTemp(m.dir, "floor-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := m.fill(f); err != nil {
		return 0, err
	}
	server, client, err := pair()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	results := make(chan result, 1)
	go func() {
		defer server.Close()
		cpu, err := spent(func() error { return send(f, server) })
		results <- result{cpu, err}
	}()
	n, err := drain(client, io.Discard)
	if err == nil && n != m.bytes {
		err = fmt.Errorf("%d bytes of %d arrived", n, m.bytes)
	}
	return sum(err, results, 1)
}

// copied reads each piece into a buffer and sends it.
func (m mover) copied(f, to *os.File) error {
	buf := make([]byte, m.piece)
	for at := int64(0); at < m.bytes; {
		n, err := f.ReadAt(buf[:min(m.bytes-at, int64(len(buf)))], at)
		if err != nil {
			return err
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

func (m mover) memory(_, to *os.File) error { return m.fill(to) }
