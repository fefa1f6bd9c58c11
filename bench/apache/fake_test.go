package apache

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// role says what the test's own binary is: the command, or what stands for Apache Kafka
// and for a binary of nodes.
const role = "TIDEMARK_APACHE"

func TestMain(m *testing.M) {
	var do func([]string) error
	switch os.Getenv(role) {
	case "command":
		do = Command
	case "node":
		do = fake
	default:
		os.Exit(m.Run())
	}
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fake formats or serves, as the words say. Settings make it fail: fake.refuses does not
// format, fake.ends names a node that ends before it listens, fake.mute a pipe that hears
// of a node which never listens, and fake.deaf does not stop.
func fake(args []string) error {
	file := args[len(args)-1]
	set, err := read(file)
	if err != nil {
		return err
	}
	data := set["log.dirs"]
	formatted := filepath.Join(data, "meta.properties")
	if slices.Contains(args, "format") {
		if set["fake.refuses"] != "" {
			return errors.New("this is long ago\n1\n2\n3\n4\nthe last words\n\tat a.b(B.java:5)\n\tat a.c(C.java:6)\n\t... 7 more\n")
		}
		if err := os.Mkdir(data, 0o755); err != nil {
			return err
		}
		return os.WriteFile(formatted, []byte(args[slices.Index(args, "--cluster-id")+1]), 0o644)
	}
	if _, err := os.Stat(formatted); err != nil {
		return err
	}
	if set["fake.ends"] == set["node.id"] {
		return errors.New("this node ends")
	}
	if pipe := set["fake.mute"]; pipe != "" {
		if err := os.WriteFile(pipe, []byte("I am here"), 0); err != nil {
			return err
		}
		set["listeners"] = "PLAINTEXT://127.0.0.1:0"
	}
	return serve(set, args)
}

// serve notes with which words the node runs, and how it stops.
func serve(set map[string]string, args []string) error {
	stop := make(chan os.Signal, 1)
	if set["fake.deaf"] == "" {
		signal.Notify(stop, syscall.SIGTERM)
	} else {
		signal.Ignore(syscall.SIGTERM)
	}
	if err := note(set["log.dirs"], strings.Join(args, " ")); err != nil {
		return err
	}
	urls := strings.Split(set["listeners"], ",")
	slices.Reverse(urls) // for clients last: all is there then
	for _, url := range urls {
		_, at, _ := strings.Cut(url, "://")
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		defer l.Close()
	}
	<-stop
	return note(set["log.dirs"], "stopped")
}

func note(data, text string) error {
	f, err := os.OpenFile(filepath.Join(data, "notes"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, text)
	return err
}

// read reads a properties file, which must not have a key twice.
func read(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if _, ok := out[key]; ok {
			return nil, fmt.Errorf("%s is there twice", key)
		}
		out[key] = value
	}
	return out, nil
}

// bench is a place with a distribution, a Java and a binary, none of which is real.
type bench struct {
	*testing.T
	home, java, binary string
}

func newBench(t *testing.T) bench {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := bench{t, filepath.Join(dir, "kafka"), filepath.Join(dir, "java"), filepath.Join(dir, "tidemark")}
	node := "#!/bin/sh\n" + role + "=node exec '" + self + "' \"$@\"\n"
	b.write(filepath.Join(b.java, "bin", "java"), node)
	b.write(b.binary, node)
	b.write(filepath.Join(b.home, "libs", "kafka_2.13-4.4.0.jar"), "")
	b.write(filepath.Join(b.home, "bin", "kafka-topics.sh"),
		"#!/bin/sh\ncat\necho \"$*, heap $KAFKA_HEAP_OPTS, tuned $KAFKA_JVM_PERFORMANCE_OPTS\"\nexit 3\n")
	b.write(filepath.Join(b.home, "bin", "kafka-acls.sh"), "#!/bin/sh\n")
	t.Setenv(role, "command")
	t.Setenv("KAFKA_HOME", b.home)
	t.Setenv("JAVA_HOME", b.java)
	for _, name := range []string{"KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_TOOL_OPTS"} {
		t.Setenv(name, "")
	}
	return b
}

func (b bench) write(name, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		b.Fatal(err)
	}
}

// run runs the command in a process of its own, as a rig does.
func (b bench) run(args ...string) (string, error) {
	cmd := exec.Command(os.Args[0], args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	return string(out), err
}

func (b bench) do(args ...string) string {
	b.Helper()
	out, err := b.run(args...)
	if err != nil {
		b.Fatalf("%s: %v", args, err)
	}
	return out
}

// folder is where a cluster is kept, which is gone when the test ends.
func (b bench) folder() string {
	dir := filepath.Join(b.TempDir(), "cluster")
	b.Cleanup(func() {
		if c := (cluster{dir}); c.there() {
			if err := c.end(); err != nil {
				b.Error(err)
			}
		}
	})
	return dir
}

// start starts nodes on ports that are free, and returns the folder, the first port and
// the addresses. Between a look for ports and their use somebody else may take them.
func (b bench) start(nodes int, words ...string) (dir string, port int, addresses []string) {
	b.Helper()
	for {
		dir, port = b.folder(), b.port(nodes)
		out, err := b.run(append([]string{"start", "-d", dir, "-n", fmt.Sprint(nodes), "-p", fmt.Sprint(port)}, words...)...)
		if err == nil {
			return dir, port, strings.Split(strings.TrimSpace(out), ",")
		}
		if !strings.Contains(err.Error(), "address already in use") {
			b.Fatal(err)
		}
	}
}

// port is one that is free with all that belong to it.
func (b bench) port(nodes int) int {
	b.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
		p := plan{nodes: nodes, port: l.Addr().(*net.TCPAddr).Port}
		if p.port+controller+nodes < mostPort && p.free() == nil {
			return p.port
		}
	}
}

func (b bench) text(name string) string {
	b.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// process is the process of a node, or 0.
func (b bench) process(dir string, id int) int {
	b.Helper()
	pid, err := (cluster{dir}).at(id).process()
	if err != nil {
		b.Fatal(err)
	}
	return pid
}
