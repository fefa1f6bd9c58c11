// Package rig is a cluster of either system, started by one command.
package rig

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Starter starts clusters: COMMAND start -d DIR -n NODES -p PORT [-x BINARY]
// [KEY=VALUE ...], which prints the addresses, and COMMAND pids|kill|restart|stop|tool.
type Starter struct {
	Command []string
	Dir     string // where clusters keep their data, each in a folder of its own
	Port    int    // the first of the ports
}

// Rig is a cluster that runs.
type Rig struct {
	Brokers []string

	starter Starter
	dir     string
}

// Start starts a cluster of Tidemark's binary, or of Apache Kafka if it is "".
func (s Starter) Start(binary string, nodes int, settings ...string) (*Rig, error) {
	dir, err := os.MkdirTemp(s.Dir, "rig-")
	if err != nil {
		return nil, err
	}
	r := &Rig{starter: s, dir: dir}
	args := []string{"start", "-d", r.state(), "-n", strconv.Itoa(nodes), "-p", strconv.Itoa(s.Port)}
	if binary != "" {
		args = append(args, "-x", binary)
	}
	out, err := s.run(append(args, settings...)...)
	if err != nil {
		err = fmt.Errorf("%w%s", err, r.lastWords())
		r.Stop()
		return nil, err
	}
	r.Brokers = strings.Split(strings.TrimSpace(out), ",")
	return r, nil
}

func (r *Rig) state() string { return filepath.Join(r.dir, "state") }

func (r *Rig) data(id int) string { return filepath.Join(r.state(), strconv.Itoa(id), "data") }

func (s Starter) run(args ...string) (string, error) {
	cmd := exec.Command(s.Command[0], append(slices.Clone(s.Command[1:]), args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", s.Command[0], args[0], err)
	}
	return string(out), nil
}

// Stop ends all nodes and removes what they wrote.
func (r *Rig) Stop() error {
	_, err := r.starter.run("stop", "-d", r.state())
	if rm := os.RemoveAll(r.dir); err == nil {
		err = rm
	}
	return err
}

// lastWords are the last lines that each node logged, which a stop removes.
func (r *Rig) lastWords() string {
	const most = 10
	logs, _ := filepath.Glob(filepath.Join(r.state(), "*", "log"))
	var out strings.Builder
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			text = []byte(err.Error())
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&out, "\n%s ends with:\n%s", name, strings.Join(lines[max(0, len(lines)-most):], "\n"))
	}
	return out.String()
}

// Processes returns the processes of the nodes by id.
func (r *Rig) Processes() (map[int]int, error) {
	out, err := r.starter.run("pids", "-d", r.state())
	if err != nil {
		return nil, err
	}
	return processes(out)
}

// processes reads lines of a node's id, its process, its address.
func processes(text string) (map[int]int, error) {
	out := map[int]int{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		id, err := strconv.Atoi(f[0])
		if err != nil {
			return nil, fmt.Errorf("read the processes: %w", err)
		}
		if out[id], err = strconv.Atoi(f[1]); err != nil {
			return nil, fmt.Errorf("read the processes: %w", err)
		}
	}
	return out, nil
}

// Kill ends a node at once.
func (r *Rig) Kill(id int) error {
	_, err := r.starter.run("kill", "-d", r.state(), strconv.Itoa(id))
	return err
}

// Restart starts a killed node again and returns when its port is open.
func (r *Rig) Restart(id int) error {
	_, err := r.starter.run("restart", "-d", r.state(), strconv.Itoa(id))
	return err
}

// Strike ends a node at once, without the time that the command takes, and returns
// when that was.
func (r *Rig) Strike(id int) (time.Time, error) {
	nodes, err := r.Processes()
	if err != nil {
		return time.Time{}, err
	}
	pid, ok := nodes[id]
	if !ok {
		return time.Time{}, fmt.Errorf("there is no node %d", id)
	}
	at := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return at, fmt.Errorf("kill node %d: %w", id, err)
	}
	return at, nil
}

// RestartAll starts all nodes again, side by side: none opens its port before
// there is a quorum.
func (r *Rig) RestartAll() error {
	var all errgroup.Group
	for id := range r.Brokers {
		all.Go(func() error { return r.Restart(id + 1) })
	}
	return all.Wait()
}

// Unused brings all nodes to the state in which a cluster was formatted and has
// not run yet: it kills them and removes what they wrote.
func (r *Rig) Unused() error {
	for id := range r.Brokers {
		if err := r.Kill(id + 1); err != nil {
			return err
		}
		if err := keepFormat(r.data(id + 1)); err != nil {
			return err
		}
	}
	return nil
}

// keepFormat removes all files of a data directory but those that formatting
// writes: who the node is, and the first snapshot of the metadata.
func keepFormat(dir string) error {
	kept := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case d.Name() == "meta.properties" || d.Name() == "00000000000000000000-0000000000.checkpoint":
			kept++
			return nil
		default:
			return os.Remove(path)
		}
	})
	if err == nil && kept != 2 {
		err = fmt.Errorf("%s holds %d of the 2 files that formatting writes", dir, kept)
	}
	return err
}

// Free tells how many bytes are free where the cluster keeps its data.
func (r *Rig) Free() (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(r.dir, &st); err != nil {
		return 0, fmt.Errorf("look for room in %s: %w", r.dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// Tool runs a command-line tool of Apache Kafka, COMMAND tool NAME, and returns what
// it prints.
func (r *Rig) Tool(name string, args ...string) (string, error) {
	return r.starter.run(append([]string{"tool", name}, args...)...)
}

// Wipe removes what a killed node has of a topic, and returns how many partitions
// that were.
func (r *Rig) Wipe(id int, topic string) (int, error) {
	folders, err := filepath.Glob(filepath.Join(r.data(id), topic+"-[0-9]*"))
	if err != nil {
		return 0, err
	}
	for _, f := range folders {
		if err := os.RemoveAll(f); err != nil {
			return 0, err
		}
	}
	return len(folders), nil
}

// Segments returns the log files that a node has of a topic.
func (r *Rig) Segments(id int, topic string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(r.data(id), topic+"-[0-9]*", "*.log"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("node %d has no log of topic %s", id, topic)
	}
	return files, err
}
