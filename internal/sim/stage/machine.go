package stage

import (
	"fmt"
	"time"

	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// origin is when all clocks started.
var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Machine is a host: a disk, a clock, an address, and the process that runs on it.
type Machine struct {
	Name   string
	Number int
	IP     string
	Disk   *Disk

	stage     *Stage
	process   *Process
	lives     uint64
	on        bool
	wallAhead time.Duration // of its wall clock

	// The monotonic clock read baseLocal at the stage's time base; from there on
	// it runs ppm millionths faster.
	base, baseLocal time.Duration
	ppm             int64
}

// NewMachine sets up a machine with an empty disk. Its address is 10.0.0.N.
func (s *Stage) NewMachine(name string, n int) *Machine {
	m := &Machine{Name: name, Number: n, IP: fmt.Sprintf("10.0.0.%d", n), stage: s, on: true}
	m.Disk = &Disk{machine: m, mem: vfs.NewMem()}
	s.Net.hosts[m.IP] = m
	return m
}

// Skew has the machine's clocks run faster, by millionths, from now on.
func (m *Machine) Skew(ppm int64) {
	m.baseLocal = m.local(m.stage.now)
	m.base, m.ppm = m.stage.now, ppm
}

// JumpWall moves the wall clock.
func (m *Machine) JumpWall(by time.Duration) { m.wallAhead += by }

// local is the machine's monotonic reading at a time of the stage.
func (m *Machine) local(at time.Duration) time.Duration {
	d := at - m.base
	return m.baseLocal + d + d/1e6*time.Duration(m.ppm)
}

// when is a time of the stage at which the machine reads local, and hardly later
// than the first.
func (m *Machine) when(local time.Duration) time.Duration {
	d := local - m.baseLocal
	at := m.base + d - d/1e6*time.Duration(m.ppm)
	for m.local(at) < local {
		at += 1 + (local-m.local(at))/2
	}
	return at
}

// Start starts the machine's next process, which runs f. Power comes back with it.
func (m *Machine) Start(name string, f func(*Process)) *Process {
	if m.process != nil && m.process.Alive() {
		panic("stage: " + m.Name + " already runs a process")
	}
	m.on = true
	m.lives++
	p := &Process{Machine: m, Life: m.lives, stage: m.stage}
	p.Runtime = task.New(p)
	m.process = p
	p.Go(name, func() { f(p) })
	return p
}

// Process is the process that runs, or the last one that did.
func (m *Machine) Process() *Process { return m.process }

// Running says whether a process lives on the machine.
func (m *Machine) Running() bool { return m.process != nil && m.process.Alive() }

// Kill ends the process as SIGKILL does; what it wrote stays.
func (m *Machine) Kill() {
	if m.process != nil {
		m.process.end(true)
	}
	m.Disk.mem = m.Disk.mem.Clone()
}

// PowerCut ends the process, and with it what was not synced may go: of each
// file's writes a prefix stays. Nobody is told of it.
func (m *Machine) PowerCut() {
	if m.process != nil {
		m.process.end(false)
	}
	m.on = false
	m.Disk.mem = m.Disk.mem.CrashClone(vfs.CrashOptions{Rand: m.stage.Rand})
}

// Wipe replaces the disk with an empty one. The process must have ended.
func (m *Machine) Wipe() { m.Disk.mem = vfs.NewMem() }
