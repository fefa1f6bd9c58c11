package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tidemark-log/tidemark/bench/history"
)

// commit names what is measured; a plus says that the tree has changes.
func commit(history string) string {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(out))
	args := []string{"status", "--porcelain", "--untracked-files=no", "--", "."}
	if filepath.IsLocal(history) { // git refuses to leave out what lies elsewhere
		args = append(args, ":(exclude)"+history)
	}
	if changes, err := exec.Command("git", args...).Output(); err != nil || len(changes) > 0 {
		id += "+"
	}
	return id
}

// thisMachine reads what /proc tells; the rest stays empty.
func thisMachine() history.Machine {
	read := func(file string) string { b, _ := os.ReadFile(file); return string(b) }
	m := history.Machine{CPUs: runtime.NumCPU(), Kernel: strings.TrimSpace(read("/proc/sys/kernel/osrelease"))}
	m.Model = field(read("/proc/cpuinfo"), "model name")
	var kb int64
	fmt.Sscan(field(read("/proc/meminfo"), "MemTotal"), &kb)
	m.MemoryMB = kb >> 10
	m.Load, _, _ = strings.Cut(read("/proc/loadavg"), " ")
	return m
}

// field finds the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
