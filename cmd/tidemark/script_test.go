package main

import (
	"errors"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tidemark": main})
}

// TestScripts runs the command lines of testdata/script as a user would type
// them.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: commands,
	})
}

// commands are the words of our scripts beside testscript's own.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits":      exits,
	"eventually": eventually,
}

// newsLimit bounds how long a broker may take to hear of a change.
const newsLimit = 10 * time.Second

// eventually runs a command again and again until its output matches, because a
// change that one broker acknowledged reaches the others a moment later:
// [!] eventually PATTERN COMMAND ARGS...
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] eventually PATTERN COMMAND ARGS...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for limit := time.Now().Add(newsLimit); ; {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && pattern.MatchString(ts.ReadFile("stdout")) != neg {
			return
		}
		if time.Now().After(limit) {
			ts.Fatalf("%q did not come to be (wanted: %v) within %v: %v", args[0], !neg, newsLimit, err)
		}
	}
}

// exits runs a command and wants its exit code: exits CODE COMMAND ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
