// Package lab is a small network of its own for processes that are to be hurt.
//
// Inside starts the program again in new namespaces for its network, its mounts
// and its processes. Whatever is made there (namespaces of hosts, links, firewall
// rules, mounts, processes) is gone when that second process ends, however it
// ends, and nothing outside can be touched from it.
//
// A Net is a bridge and a host for each node, every one in a network namespace
// with one address. Links between hosts can be cut, made lossy or narrow; those
// that were asked for run through toxiproxy, which can make them slow.
package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const mark = "CHAOS_INSIDE"

// tools are the programs that the lab needs.
var tools = []string{"ip", "nft", "tc"}

// Inside runs the program with the same arguments in namespaces of its own and
// returns its exit status. In there, inside is true and the caller goes on.
func Inside() (status int, inside bool, err error) {
	if os.Getenv(mark) != "" {
		return 0, true, furnish()
	}
	if os.Geteuid() != 0 {
		return 1, false, errors.New("network namespaces need root: run it as root")
	}
	for _, t := range tools {
		if _, err := exec.LookPath(t); err != nil {
			return 1, false, fmt.Errorf("%s is missing: install iproute2 and nftables", t)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return 1, false, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 1, false, fmt.Errorf("make namespaces: %w", err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range signals {
			cmd.Process.Signal(syscall.SIGTERM) // it ends in order, and prints why
		}
	}()
	err = cmd.Wait()
	signal.Stop(signals)
	close(signals)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), false, nil
	}
	return 0, false, err
}

// furnish makes mounts private and gives the process its own view of processes
// and a /run of its own, where ip keeps the names of network namespaces.
func furnish() error {
	if os.Getpid() != 1 {
		return errors.New("the lab was not entered by way of its own start")
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return run("", "ip", "link", "set", "lo", "up")
}

// run runs a program in a host's namespace, or in the bridge's if host is "".
func run(host string, args ...string) error { return feed(host, "", args...) }

// feed is run with a standard input.
func feed(host, input string, args ...string) error {
	if host != "" {
		args = append([]string{"ip", "netns", "exec", host}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Disk mounts a disk in memory that holds so many bytes.
func Disk(dir string, size int64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return fmt.Errorf("mount a disk at %s: %w", dir, err)
	}
	return nil
}

// Eject takes a disk away, with everything on it.
func Eject(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }

// Fill takes all that is left of a disk, into the file; it may find that others
// were quicker.
func Fill(file string) (int64, error) {
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block, size := slices.Repeat([]byte{'x'}, 1<<20), int64(0)
	for len(block) > 0 {
		n, err := f.Write(block)
		size += int64(n)
		switch {
		case errors.Is(err, unix.ENOSPC):
			block = block[:len(block)/4]
		case err != nil:
			return size, fmt.Errorf("fill %s: %w", file, err)
		}
	}
	return size, nil
}
