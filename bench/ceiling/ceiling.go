// Package ceiling is what the machine itself can do: the most that any broker
// could reach on it.
package ceiling

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Ceilings are rates in MB/s, of 10^6 bytes.
type Ceilings struct {
	Loopback float64 `json:"loopback_mb_per_second"` // one TCP connection from a buffer to nowhere
	Write    float64 `json:"write_mb_per_second"`    // to a file in the data directory, synced at the end
	Sendfile float64 `json:"sendfile_mb_per_second"` // from that file through one TCP connection to nowhere
	Copy     float64 `json:"copy_mb_per_second"`     // from that file through one TCP connection to another file, by plain reads and writes
}

const chunk = 1 << 20

// Measure moves the megabytes four ways. The files in the directory are removed.
func Measure(dir string, megs int) (Ceilings, error) {
	var c Ceilings
	var err error
	buf := pattern()
	if c.Loopback, err = send(megs, io.Discard, func(to net.Conn) error {
		for range megs {
			if _, err := to.Write(buf); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return c, fmt.Errorf("measure loopback: %w", err)
	}
	f, err := os.CreateTemp(dir, "ceiling-")
	if err != nil {
		return c, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if c.Write, err = write(f, buf, megs); err != nil {
		return c, fmt.Errorf("measure writes: %w", err)
	}
	c.Sendfile, err = send(megs, io.Discard, func(to net.Conn) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.Copy(to, f) // a file to a TCP connection: the kernel copies
		return err
	})
	if err != nil {
		return c, fmt.Errorf("measure sendfile: %w", err)
	}
	took, err := CopyFiles(dir, f.Name())
	if err != nil {
		return c, fmt.Errorf("measure a copy: %w", err)
	}
	c.Copy = perSecond(megs, took)
	return c, nil
}

func pattern() []byte {
	buf := make([]byte, chunk)
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	return buf
}

func write(f *os.File, buf []byte, megs int) (float64, error) {
	start := time.Now()
	for range megs {
		if _, err := f.Write(buf); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return rate(megs, start), nil
}

// CopyFiles reads files, sends them through one TCP connection over loopback and
// writes them to one file in the directory, which is removed again. It returns how
// long that took.
func CopyFiles(dir string, files ...string) (time.Duration, error) {
	size := int64(0)
	for _, name := range files {
		st, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		size += st.Size()
	}
	other, err := os.CreateTemp(dir, "copy-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(other.Name())
	defer other.Close()
	return transfer(size, other, func(to net.Conn) error {
		for _, name := range files {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			_, err = drain(f, to)
			f.Close()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// send tells how fast a reader got what from sent and wrote it to into.
func send(megs int, into io.Writer, from func(net.Conn) error) (float64, error) {
	took, err := transfer(int64(megs)*chunk, into, from)
	return perSecond(megs, took), err
}

// transfer tells how long it took until size bytes came.
func transfer(size int64, into io.Writer, from func(net.Conn) error) (time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		to, err := l.Accept()
		if err == nil {
			err = from(to)
			to.Close()
		}
		sent <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		l.Close()
		<-sent
		return 0, err
	}
	defer conn.Close()
	start := time.Now()
	got, err := drain(conn, into)
	if sendErr := <-sent; err == nil {
		err = sendErr
	}
	if err == nil && got != size {
		err = fmt.Errorf("%d bytes of %d arrived", got, size)
	}
	return time.Since(start), err
}

// drain reads as a client does, into memory, and writes it on from there.
func drain(from io.Reader, to io.Writer) (int64, error) {
	buf, sum := make([]byte, chunk), int64(0)
	for {
		n, err := from.Read(buf)
		sum += int64(n)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return sum, err
			}
		}
		if err == io.EOF {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
	}
}

func rate(megs int, start time.Time) float64 { return perSecond(megs, time.Since(start)) }

// perSecond is in MB/s.
func perSecond(megs int, took time.Duration) float64 {
	return float64(megs) * chunk / 1e6 / took.Seconds()
}
