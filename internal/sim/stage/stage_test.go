package stage

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
)

func newStage(seed uint64) *Stage { return New(rand.New(rand.NewPCG(seed, 0))) }

func turn(t *testing.T, s *Stage, until func() bool) {
	t.Helper()
	for range 1_000_000 {
		if until() {
			return
		}
		if !s.Step() {
			break
		}
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	if !until() {
		t.Fatalf("nothing happens any more after %d steps, at %v", s.Steps(), s.Now())
	}
}

// echo answers every connection with what it gets.
func echo(t *testing.T) func(*Process) {
	return func(p *Process) {
		l, err := p.Listen("0.0.0.0:9092")
		if err != nil {
			t.Error(err)
			return
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.Go("conn", func() {
				defer c.Close()
				io.Copy(c, struct{ io.Reader }{c})
			})
		}
	}
}

func ask(p *Process, word string) (string, error) {
	ctx, cancel := p.Runtime.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := p.Dial(ctx, "10.0.0.1:9092")
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(p.Runtime.Now().Add(time.Second))
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	b := make([]byte, len(word))
	_, err = io.ReadFull(c, b)
	return string(b), err
}

// conversation runs a few clients against one server and returns the digest.
func conversation(t *testing.T, seed uint64) uint64 {
	s := newStage(seed)
	server, client := s.NewMachine("server", 1), s.NewMachine("client", 2)
	s.Net.Link(client, server).Loss = 200
	server.Start("echo", echo(t))
	open := 10
	client.Start("clients", func(p *Process) {
		for range open {
			p.Go("client", func() {
				word := strings.Repeat("tide", 1+s.Rand.IntN(100_000))
				for {
					got, err := ask(p, word)
					if err == nil && got != word {
						t.Errorf("%d bytes came back as %d others", len(word), len(got))
					}
					if err == nil {
						break
					}
					p.Runtime.Sleep(nil, 10*time.Millisecond)
				}
				open--
			})
		}
	})
	turn(t, s, func() bool { return open == 0 })
	return s.Digest()
}

func TestTheSameSeedGoesTheSameWay(t *testing.T) {
	digests := map[uint64]bool{}
	for seed := range uint64(20) {
		first := conversation(t, seed)
		if again := conversation(t, seed); again != first {
			t.Fatalf("seed %d went two ways", seed)
		}
		digests[first] = true
	}
	if len(digests) != 20 {
		t.Fatalf("20 seeds went %d ways", len(digests))
	}
}

// outcome runs f on the client of a server and returns f's error.
func outcome(t *testing.T, prepare func(s *Stage, server, client *Machine), f func(*Process) error) error {
	t.Helper()
	s := newStage(1)
	server, client := s.NewMachine("server", 1), s.NewMachine("client", 2)
	server.Start("echo", echo(t))
	s.After(time.Millisecond, func() { prepare(s, server, client) })
	var err error
	done := false
	s.After(10*time.Millisecond, func() {
		client.Start("client", func(p *Process) { err = f(p); done = true })
	})
	turn(t, s, func() bool { return done })
	return err
}

func TestConnectionsTellWhatHappened(t *testing.T) {
	dial := func(p *Process) error { _, err := ask(p, "word"); return err }
	for _, c := range []struct {
		name    string
		prepare func(s *Stage, server, client *Machine)
		want    error
	}{
		{"nothing is wrong", func(*Stage, *Machine, *Machine) {}, nil},
		{"the process was killed", func(_ *Stage, m, _ *Machine) { m.Kill() }, syscall.ECONNREFUSED},
		{"the power is off", func(_ *Stage, m, _ *Machine) { m.PowerCut() }, os.ErrDeadlineExceeded},
		{"the way there is cut", func(s *Stage, m, c *Machine) { s.Net.Link(c, m).Cut = true }, os.ErrDeadlineExceeded},
		{"the way back is cut", func(s *Stage, m, c *Machine) { s.Net.Link(m, c).Cut = true }, os.ErrDeadlineExceeded},
		{"the process stands still", func(_ *Stage, m, _ *Machine) { m.Process().Pause() }, os.ErrDeadlineExceeded},
		{"killed later", func(s *Stage, m, _ *Machine) {
			s.Net.Jitter = 0
			s.After(9*time.Millisecond+500*time.Microsecond, m.Kill)
		}, io.EOF},
	} {
		if err := outcome(t, c.prepare, dial); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", c.name, err, c.want)
		}
	}
}

func TestKilledProcessUnwindsItsTasks(t *testing.T) {
	s := newStage(1)
	m := s.NewMachine("one", 1)
	unwound, went := 0, 0
	m.Start("main", func(p *Process) {
		never := p.Runtime.NewSignal()
		g := p.Runtime.NewGroup()
		for range 3 {
			g.Go("waits", func() {
				defer func() { unwound++; p.Runtime.Wait(nil, task.Forever, never) }()
				p.Runtime.Wait(nil, task.Forever, never)
				went++
			})
		}
		g.Wait()
		went++
	})
	s.After(time.Second, m.Kill)
	for s.Step() {
	}
	if s.Err() != nil || unwound != 3 || went != 0 || m.Running() {
		t.Fatalf("unwound %d, went on %d, %v", unwound, went, s.Err())
	}
}

func TestPanicOfAProcessStopsTheStage(t *testing.T) {
	s := newStage(1)
	s.NewMachine("one", 1).Start("main", func(*Process) { panic("at the disco") })
	for s.Step() {
	}
	if s.Err() == nil || !strings.Contains(s.Err().Error(), "at the disco") {
		t.Fatal(s.Err())
	}
}

func TestClocksRunAtTheirOwnPace(t *testing.T) {
	s := newStage(1)
	m := s.NewMachine("one", 1)
	m.Skew(100_000) // a tenth faster
	var slept time.Duration
	m.Start("main", func(p *Process) {
		before := s.Now()
		p.Runtime.Sleep(nil, 11*time.Second)
		slept = s.Now() - before
		m.JumpWall(-time.Hour)
		if d := p.Runtime.Wall().Sub(p.Runtime.Now()); d != -time.Hour {
			t.Errorf("the wall clock is %v ahead", d)
		}
	})
	for s.Step() {
	}
	if d := slept - 10*time.Second; d < -time.Millisecond || d > time.Millisecond {
		t.Fatalf("11 s by a clock that runs a tenth faster took %v", slept)
	}
}

func TestPowerCutKeepsWhatWasSynced(t *testing.T) {
	s := newStage(1)
	m := s.NewMachine("one", 1)
	m.Disk.Latency = time.Millisecond
	m.Start("main", func(p *Process) {
		fs := m.Disk.FS(p)
		f, _ := fs.Create("a")
		f.WriteAt([]byte("synced"), 0)
		f.Sync()
		fs.SyncDir(".")
		f.WriteAt([]byte("not so"), 6)
		p.Runtime.Wait(nil, task.Forever, p.Runtime.NewSignal())
	})
	s.After(time.Second, m.PowerCut)
	for s.Step() {
	}
	f, err := m.Disk.Files().Open("a")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 6)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "synced" {
		t.Fatalf("%q, %v", b, err)
	}
}

var _ net.Listener = (*listener)(nil)

func BenchmarkStep(b *testing.B) {
	s := newStage(1)
	m := s.NewMachine("one", 1)
	for range 20 {
		if m.process == nil {
			m.Start("main", func(p *Process) {})
		}
		m.process.Go("spin", func() {
			for {
				m.process.Runtime.Sleep(nil, time.Millisecond)
			}
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Step()
	}
}
