// Package history is what measurements leave behind: lines of JSON, one for each
// scenario on each system.
package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Systems that are compared.
const (
	Tidemark = "tidemark"
	Kafka    = "kafka"
	Least    = "least" // the least broker, bench/least
)

// Machine is where the figures come from.
type Machine struct {
	CPUs     int    `json:"cpus"`
	Model    string `json:"model"`
	MemoryMB int64  `json:"memory_mb"`
	Kernel   string `json:"kernel"`
	Load     string `json:"load"` // of the last minute when it began, with what else ran
}

// Entry is one line of the history: a scenario on a system.
type Entry struct {
	Date     time.Time `json:"date"`
	Commit   string    `json:"commit"`
	Scenario string    `json:"scenario"`
	System   string    `json:"system"`
	MB       int       `json:"mb"`      // the flag -mb
	Seconds  float64   `json:"seconds"` // the flag -seconds
	// With are other flags that were given and change what is measured.
	With    string    `json:"with,omitempty"`
	Figures Figures   `json:"figures"` // medians of the runs
	Runs    []Figures `json:"runs,omitempty"`
	Machine Machine   `json:"machine"`
}

// Append adds lines to the file, which it creates.
func Append(file string, entries []Entry) error {
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

// Read returns all lines of the file.
func Read(file string) ([]Entry, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Entry
	lines := json.NewDecoder(bufio.NewReader(f))
	for {
		var e Entry
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read line %d of %s: %w; repair or remove it", len(out)+1, file, err)
		}
		out = append(out, e)
	}
}
