package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"
)

// text is a stream of real text found on the machine, cut into numbered
// records: "NAME:NNNNNNNNN words". It is paced so that the whole takes the time
// that was asked for.
type text struct {
	name   string
	total  int
	size   int
	files  []string
	file   int
	lines  *bufio.Scanner
	open   *os.File
	n      int
	start  time.Time
	length time.Duration
	buf    bytes.Buffer
}

func newText(s settings, name string, total int) *text {
	t := &text{name: name, total: total, size: s.lineSize, length: time.Duration(s.seconds) * time.Second}
	for _, root := range s.sources() {
		filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && len(t.files) < 200_000 {
				t.files = append(t.files, path)
			}
			return nil
		})
	}
	return t
}

// next returns the next record, or false at the end.
func (t *text) next() (string, bool) {
	if t.n == t.total || len(t.files) == 0 {
		t.close()
		return "", false
	}
	if t.n == 0 {
		t.start = time.Now()
	}
	if t.n%100 == 0 {
		due := t.start.Add(time.Duration(float64(t.length) * float64(t.n) / float64(t.total)))
		time.Sleep(time.Until(due))
	}
	t.buf.Reset()
	fmt.Fprintf(&t.buf, "%s:%09d", t.name, t.n)
	for t.buf.Len() < t.size {
		line := t.line()
		t.buf.WriteByte(' ')
		t.buf.WriteString(line[:min(len(line), 4*t.size)])
	}
	t.n++
	return t.buf.String(), true
}

// line is the next line of text; files that are no text are passed over.
func (t *text) line() string {
	for {
		if t.lines != nil {
			for t.lines.Scan() {
				b := bytes.TrimSpace(t.lines.Bytes())
				if len(b) == 0 {
					continue
				}
				if bytes.ContainsAny(b, "\x00\t\r") {
					b = bytes.Map(func(r rune) rune {
						if r < ' ' {
							return ' '
						}
						return r
					}, b)
				}
				if utf8.Valid(b) {
					return string(b)
				}
			}
			t.close()
		}
		f, err := os.Open(t.files[t.file])
		t.file = (t.file + 1) % len(t.files)
		if err == nil {
			t.open, t.lines = f, bufio.NewScanner(f)
		}
	}
}

func (t *text) close() {
	if t.open != nil {
		t.open.Close()
		t.open, t.lines = nil, nil
	}
}
