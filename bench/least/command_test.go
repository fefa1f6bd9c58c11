package least

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// asCommand makes the test's own binary the command.
const asCommand = "TIDEMARK_LEAST"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	if err := Command(os.Args[:1], os.Args[1:]); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func TestItsCommandStartsNamesAndEndsIt(t *testing.T) {
	t.Setenv(asCommand, "1")
	words := slices.Grow([]string{os.Args[0]}, 20)
	self, dir := words[:1], filepath.Join(t.TempDir(), "state")
	at, err := start(self, dir, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(dir) })
	if behind := words[1:cap(words)]; slices.Max(behind) != "" {
		t.Errorf("the caller's array got %q", behind)
	}
	all := strings.Split(at, ",")
	if len(all) != 3 {
		t.Errorf("it listens at %q", at)
	}
	for _, one := range all {
		c, err := net.Dial("tcp", one)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	pid, err := process(dir)
	if err != nil || ended(pid) {
		t.Errorf("process %d ended, or %v", pid, err)
	}
	if err := stop(dir); err != nil || !ended(pid) {
		t.Errorf("process %d goes on, %v", pid, err)
	}
	if err := Command(self, []string{"restart", "-d", dir}); err == nil {
		t.Error("it can be restarted")
	}
}

// Another process owns the port: that it is open is no success. A rig finds why.
func TestAStartOnATakenPortFailsAndSaysWhy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv(asCommand, "1")
	dir := filepath.Join(t.TempDir(), "state")
	at, err := start(os.Args[:1], dir, 1, l.Addr().(*net.TCPAddr).Port)
	if err == nil {
		stop(dir)
		t.Fatalf("it listens at %q", at)
	}
	const why = "address already in use"
	if log, read := os.ReadFile(filepath.Join(dir, "1", "log")); !strings.Contains(err.Error(), why) || !strings.Contains(string(log), why) {
		t.Errorf("%v; the log says %q, %v", err, log, read)
	}
	if pid, err := process(dir); err == nil {
		t.Errorf("process %d is noted", pid)
	}
}

// The child here lives on but will never say where it listens.
func TestAStartThatFailsEndsItsChild(t *testing.T) {
	dir := t.TempDir()
	if at, err := start([]string{"sh", "-c", "echo $$ >&2; exec sleep 1000 >&-"}, dir, 1, 0); err == nil {
		t.Errorf("it listens at %q", at)
	}
	text, err := os.ReadFile(filepath.Join(dir, "1", "log"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !ended(pid) {
		t.Errorf("process %d goes on, or %v", pid, err)
	}
}
