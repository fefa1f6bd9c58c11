package apache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// node is one of a cluster, with its folder.
type node struct {
	id  int
	dir string
}

func (n node) file(name string) string { return filepath.Join(n.dir, name) }

// address is where the node serves clients.
func (n node) address() (string, error) {
	text, err := os.ReadFile(n.file("address"))
	return strings.TrimSpace(string(text)), err
}

// process returns the node's process, or 0 if it does not run.
func (n node) process() (int, error) {
	text, err := os.ReadFile(n.file("pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("%s holds %q: write the number of node %d's process into it, or remove it if there is none", n.file("pid"), text, n.id)
	}
	if !runs(pid, n.file(propertiesFile)) {
		return 0, nil
	}
	return pid, nil
}

// runs reports whether a process was started with the file. Its number alone would not
// tell, as the kernel gives that to others later.
func runs(pid int, file string) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil // where there is no /proc
	}
	if len(args) == 0 {
		return nameless(pid)
	}
	want, err := os.Stat(file)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(string(args), "\x00"), func(arg string) bool {
		if filepath.Base(arg) != propertiesFile {
			return false
		}
		have, err := os.Stat(arg)
		return err == nil && os.SameFile(have, want)
	})
}

// nameless reports whether a process without arguments may be a node: one that becomes
// another program has none for a moment, and one that ends may hold its ports still, as
// its memory goes first and its files go with the last of its threads.
func nameless(pid int) bool {
	const ofKernel = 0x200000 // Linux's PF_KTHREAD
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 18 {
		return false
	}
	state, threads := fields[0], fields[17]
	flags, err := strconv.Atoi(fields[6])
	gone := (state == "Z" || state == "X") && (threads == "0" || threads == "1")
	return err == nil && flags&ofKernel == 0 && !gone
}

// format prepares the node's data.
func (n node) format(ctx context.Context, system program, cluster string) error {
	words := slices.Concat(system.format, []string{"--cluster-id", cluster, "--config", n.file(propertiesFile)})
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("node %d cannot be formatted (%w): repair what %s says: %s", n.id, err, n.file("format.log"), tail(out))
	}
	return errors.Join(err, os.WriteFile(n.file("format.log"), out, 0o644))
}

// launch starts the node in a session of its own, in which it outlives this process and
// its terminal.
func (n node) launch(system program) error {
	log, err := os.OpenFile(n.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	words := slices.Concat(system.serve, []string{n.file(propertiesFile)})
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %d: %w", n.id, err)
	}
	if err := os.WriteFile(n.file("pid"), fmt.Appendln(nil, cmd.Process.Pid), 0o644); err != nil {
		return errors.Join(err, cmd.Process.Kill()) // nobody would find it again
	}
	return cmd.Process.Release()
}

// listening returns when the node takes connections, or with an error when it ended.
func (n node) listening(ctx context.Context) error {
	at, err := n.address()
	if err != nil {
		return err
	}
	err = until(ctx, func() (bool, error) {
		pid, err := n.process()
		if err == nil && pid == 0 {
			err = fmt.Errorf("node %d ended before it listened at %s: repair what %s says: %s", n.id, at, n.file("log"), n.lastWords())
		}
		return err == nil && answers(at), err
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("node %d did not listen at %s within %v: look into %s: %s", n.id, at, readyLimit, n.file("log"), n.lastWords())
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("wait until node %d listens at %s: %w", n.id, at, err)
	}
	return err
}

// answers reports whether somebody listens at an address. Where nobody does, the kernel
// may give the connection the very port that it looks for, so that it meets itself.
func answers(at string) bool {
	c, err := net.DialTimeout("tcp", at, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	return c.LocalAddr().String() != at
}

// signal signals the node's process, if it runs.
func (n node) signal(sig syscall.Signal) (running bool, err error) {
	pid, err := n.process()
	if err != nil || pid == 0 {
		return false, err
	}
	err = syscall.Kill(pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("signal node %d, process %d: %w", n.id, pid, err)
	}
	return true, nil
}

// ended returns when the node does not run any more.
func (n node) ended(ctx context.Context) error {
	err := until(ctx, func() (bool, error) {
		pid, err := n.process()
		return pid == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for the end of node %d: %w", n.id, err)
	}
	return nil
}

// dead fails if the node runs, and goes on to. One that was killed a moment ago, by
// whomever, may need that to leave its ports.
func (n node) dead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadLimit)
	defer cancel()
	err := n.ended(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("node %d runs: kill it before", n.id)
	}
	return err
}

// lastWords are the end of what the node logged.
func (n node) lastWords() string {
	text, err := os.ReadFile(n.file("log"))
	if err != nil {
		return err.Error()
	}
	return tail(text)
}

// tail returns the last lines of a text without the places of Java's code, which often
// are all that comes after the reason.
func tail(text []byte) string {
	const most = 5
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "\tat ") || strings.HasPrefix(line, "\t... ")
	})
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
