package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// machine is where the figures come from.
type machine struct {
	CPUs     int    `json:"cpus"`
	Model    string `json:"model"`
	MemoryMB int64  `json:"memory_mb"`
	Kernel   string `json:"kernel"`
	Load     string `json:"load"` // of the last minute when it began, with what else ran
}

// entry is one line of the history: a scenario on a system.
type entry struct {
	Date     time.Time `json:"date"`
	Commit   string    `json:"commit"`
	Scenario string    `json:"scenario"`
	System   string    `json:"system"`
	MB       int       `json:"mb"`      // the flag -mb
	Seconds  float64   `json:"seconds"` // the flag -seconds
	Figures  figures   `json:"figures"` // medians of the runs
	Runs     []figures `json:"runs,omitempty"`
	Machine  machine   `json:"machine"`
}

// appendHistory adds lines to the file, which it creates.
func appendHistory(file string, entries []entry) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			f.Close()
			return fmt.Errorf("write %s: %w", file, err)
		}
		w.Write(append(line, '\n')) // Flush returns its error
	}
	if err := w.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// commit names what is measured; a plus says that the tree has changes.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(out))
	if changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(changes) > 0 {
		id += "+"
	}
	return id
}

// thisMachine reads what /proc tells; the rest stays empty.
func thisMachine() machine {
	read := func(file string) string { b, _ := os.ReadFile(file); return string(b) }
	m := machine{CPUs: runtime.NumCPU(), Kernel: strings.TrimSpace(read("/proc/sys/kernel/osrelease"))}
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
