// Package rig is a cluster of either system, started by one command.
package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Starter starts clusters: COMMAND start -d DIR -n NODES -p PORT [-x BINARY]
// [KEY=VALUE ...], which prints the addresses, and COMMAND pids|kill|restart|stop.
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
		r.Stop()
		return nil, err
	}
	r.Brokers = strings.Split(strings.TrimSpace(out), ",")
	return r, nil
}

func (r *Rig) state() string { return filepath.Join(r.dir, "state") }

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

// Wipe removes what a killed node has of a topic, and returns how many partitions
// that were.
func (r *Rig) Wipe(id int, topic string) (int, error) {
	folders, err := filepath.Glob(filepath.Join(r.state(), strconv.Itoa(id), "data", topic+"-[0-9]*"))
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
	files, err := filepath.Glob(filepath.Join(r.state(), strconv.Itoa(id), "data", topic+"-[0-9]*", "*.log"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("node %d has no log of topic %s", id, topic)
	}
	return files, err
}
