package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const sample = `# A list of one.
# It has a second line.
$ topics --list --topic 'a b'
< in put
| only ^x
| mask x(.) y$1
| retry
| within 20s
y1
\| as printed

$ quiet
`

func TestAScriptIsWrittenAsItWasRead(t *testing.T) {
	s, err := parseScript("sample", sample)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.String(); got != sample {
		t.Errorf("written:\n%s", got)
	}
	c := s.checks[0]
	if c.name != "A list of one. It has a second line" || !slices.Equal(c.args, []string{"topics", "--list", "--topic", "a b"}) ||
		!c.retry || c.within != 20*time.Second || !slices.Equal(c.input, []string{"in put"}) || !slices.Equal(c.want, []string{"y1", "| as printed"}) {
		t.Errorf("read: %+v", c)
	}
	lines := []string{"x1", "z2"}
	for _, f := range c.filter {
		lines = f(lines)
	}
	if !slices.Equal(lines, []string{"y1"}) {
		t.Errorf("filtered: %q", lines)
	}
}

func TestABadScriptIsRefused(t *testing.T) {
	for _, text := range []string{"text alone", "| only x", "$ a\n| none", "$ a\n| only (", "$ a 'b", "$ a\n| only 'x", "$ a\n| within soon"} {
		if _, err := parseScript("bad", text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestEveryScriptOfTheProgramParses(t *testing.T) {
	entries, err := scripts.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := scripts.ReadFile("testdata/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseScript(e.Name(), string(text))
		if err != nil {
			t.Fatal(err)
		}
		if s.String() != string(text) {
			t.Errorf("%s is not written as the program writes it", e.Name())
		}
	}
	if _, err := parseScript("apart", apart); err != nil {
		t.Error(err)
	}
}

func TestWhatDiffersFromRunToRunIsMasked(t *testing.T) {
	out := "id MkU3OEVBNTcwNTJENDM2Qg, at 1796021928460\n\n[2026-11-30 07:00:00,123] WARN x\n\tat a.B.c(D.java:1)\nConsumerGroupHeartbeat(68) 127.0.0.1:31000 \n"
	got := mask(out, strings.NewReplacer("127.0.0.1:31000", "BROKER1"))
	if want := []string{"id ID, at MILLIS", "[DATE] WARN x", "ConsumerGroupHeartbeat(68) BROKER1"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestDifferencesShowTheLinesOfOneSide(t *testing.T) {
	if d := difference([]string{"a", "b", "c"}, []string{"a", "c", "d"}); d != "want b\ngot  d\n" {
		t.Errorf("%q", d)
	}
	if d := difference([]string{"a"}, []string{"a"}); d != "" {
		t.Errorf("%q", d)
	}
	if firstDifferences([]string{"a", "b"}, []string{"a"}) == nil || firstDifferences([]string{"a"}, []string{"b"}) == nil || firstDifferences([]string{"a"}, []string{"a"}) != nil {
		t.Error("long texts are not compared")
	}
}

// A command that does not end in time is ended with what it started.
func TestACommandThatHangsIsToldAndEnded(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho begun\nsleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := &cluster{s: settings{kafka: tool}, names: strings.NewReplacer(), vars: strings.NewReplacer()}
	got := c.lines(context.Background(), &check{args: []string{"topics"}, within: 300 * time.Millisecond})
	if !slices.Equal(got, []string{"begun", "did not end within 300ms"}) {
		t.Errorf("%q", got)
	}
}
