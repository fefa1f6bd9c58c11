package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Sample is what processes cost up to a moment, added up.
type Sample struct {
	CPU         time.Duration // user and system
	RSS         int64         // resident now, bytes
	PeakRSS     int64         // resident at most, bytes; each process at its own time
	Read        int64         // bytes that read calls returned, of files and sockets
	Written     int64         // bytes that were given to write calls
	DiskRead    int64         // bytes that storage had to deliver
	DiskWritten int64         // bytes that were dirtied for storage; none for files in memory

	threads map[string]switches // those that lived at the end, by their directories in /proc
}

// switches are context switches of a thread.
type switches struct {
	waited    int64 // to wait
	preempted int64 // at the scheduler's will
}

// Take reads the sample of the processes.
func Take(pids ...int) (Sample, error) {
	sum := Sample{threads: map[string]switches{}}
	for _, pid := range pids {
		if err := sum.add(pid); err != nil {
			return Sample{}, fmt.Errorf("read the cost of process %d: %w", pid, err)
		}
	}
	return sum, nil
}

// Switches is how often the processes left the processor. What threads that ended did
// is lost with them.
func (s Sample) Switches() int64 {
	n := int64(0)
	for _, t := range s.threads {
		n += t.waited + t.preempted
	}
	return n
}

// Since returns what was spent since an earlier sample. Memory stays as it is.
func (s Sample) Since(before Sample) Sample {
	s.CPU -= before.CPU
	s.Read -= before.Read
	s.Written -= before.Written
	s.DiskRead -= before.DiskRead
	s.DiskWritten -= before.DiskWritten
	s.threads = maps.Clone(s.threads)
	for name, t := range s.threads {
		if old := before.threads[name]; old.waited <= t.waited && old.preempted <= t.preempted { // else its number had another thread
			s.threads[name] = switches{t.waited - old.waited, t.preempted - old.preempted}
		}
	}
	return s
}

func (s *Sample) add(pid int) error {
	dir := fmt.Sprintf("/proc/%d", pid)
	cpu, err := CPU(pid)
	if err != nil {
		return err
	}
	s.CPU += cpu
	status, err := values(filepath.Join(dir, "status"))
	if err != nil {
		return err
	}
	s.RSS += status["VmRSS"] << 10
	s.PeakRSS += status["VmHWM"] << 10
	io, err := values(filepath.Join(dir, "io"))
	if err != nil {
		return err
	}
	s.Read += io["rchar"]
	s.Written += io["wchar"]
	s.DiskRead += io["read_bytes"]
	s.DiskWritten += io["write_bytes"]
	return s.addThreads(dir)
}

// addThreads adds the context switches, which the kernel tells for each thread.
func (s *Sample) addThreads(dir string) error {
	threads, err := filepath.Glob(filepath.Join(dir, "task", "*", "status"))
	if err != nil {
		return err
	}
	for _, file := range threads {
		status, err := values(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return err
		}
		s.threads[filepath.Dir(file)] = switches{status["voluntary_ctxt_switches"], status["nonvoluntary_ctxt_switches"]}
	}
	return nil
}

// values reads a file of /proc.
func values(file string) (map[string]int64, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parse(string(raw)), nil
}

// parse reads lines of "name: number", whatever unit follows. Other lines are not
// numbers and are left out.
func parse(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if len(f) == 0 {
			continue
		}
		if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
			out[name] = n
		}
	}
	return out
}
