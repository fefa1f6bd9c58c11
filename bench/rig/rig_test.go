package rig

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProcessesAreReadByNode(t *testing.T) {
	got, err := processes("1 4711 127.0.0.1:9092\n\n2 4712 127.0.0.1:9093\n")
	if err != nil || !maps.Equal(got, map[int]int{1: 4711, 2: 4712}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := processes("1 x 127.0.0.1:9092\n"); err == nil {
		t.Error("x is no process")
	}
}

func TestANodeThatDoesNotStartSaysWhy(t *testing.T) {
	command := filepath.Join(t.TempDir(), "command")
	script := "#!/bin/sh\ncase $1 in start) mkdir -p $3/2; echo the port is taken >$3/2/log; exit 1;; esac\n"
	if err := os.WriteFile(command, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := Starter{Command: []string{command}, Dir: dir, Port: 1}.Start("", 1)
	if err == nil || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("the error is %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A topic's name may be the start of another's.
func TestWipeRemovesPartitionsOfTheTopicAlone(t *testing.T) {
	r := &Rig{dir: t.TempDir()}
	data := filepath.Join(r.state(), "3", "data")
	for _, name := range []string{"load-0", "load-11", "loads-0", "load-more-0", "__cluster_metadata-0"} {
		if err := os.MkdirAll(filepath.Join(data, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n, err := r.Wipe(3, "load")
	left, _ := os.ReadDir(data)
	if err != nil || n != 2 || len(left) != 3 {
		t.Errorf("%d removed, %v left, %v", n, left, err)
	}
}

func TestSegmentsAreTheLogsOfTheTopicAlone(t *testing.T) {
	r := &Rig{dir: t.TempDir()}
	data := filepath.Join(r.state(), "1", "data")
	for _, name := range []string{"load-0/a.log", "load-0/a.index", "load-3/b.log", "loads-0/c.log"} {
		if err := os.MkdirAll(filepath.Join(data, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := r.Segments(1, "load"); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := r.Segments(2, "load"); err == nil {
		t.Errorf("another node has %v", got)
	}
}

func TestWhatFormattingWroteIsKept(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const snapshot = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
	for _, name := range []string{"meta.properties", "load-0/a.log", "__cluster_metadata-0/quorum-state", ".kafka_cleanshutdown"} {
		write(name)
	}
	if err := keepFormat(dir); err == nil {
		t.Error("without its snapshot the directory is not formatted")
	}
	write(snapshot)
	write("__cluster_metadata-0/00000000000000000032.snapshot")
	if err := keepFormat(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"meta.properties": true, snapshot: true, "__cluster_metadata-0/00000000000000000032.snapshot": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there: %v", name, err == nil)
		}
	}
}
