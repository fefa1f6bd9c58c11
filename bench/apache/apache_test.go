package apache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/bench/rig"
)

func TestThreeNodesKeepThreeReplicas(t *testing.T) {
	p := plan{cluster: cluster{"/clusters/c"}, nodes: 3, port: 42000, settings: []string{
		"min.insync.replicas=1", "message.max.bytes=5", "message.max.bytes=7", "empty=",
	}}
	const want = `node.id=2
process.roles=broker,controller
log.dirs=/clusters/c/2/data
listeners=PLAINTEXT://127.0.0.1:42001,CONTROLLER://127.0.0.1:42101
advertised.listeners=PLAINTEXT://127.0.0.1:42001
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:42100,2@127.0.0.1:42101,3@127.0.0.1:42102
default.replication.factor=3
min.insync.replicas=1
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
message.max.bytes=7
empty=
`
	if got := p.properties(2); got != want {
		t.Errorf("the properties are\n%s", got)
	}
	for nodes, want := range map[int]string{1: "1 1", 2: "2 2", 5: "3 2"} {
		b := bench{T: t}
		name := filepath.Join(t.TempDir(), propertiesFile)
		b.write(name, plan{nodes: nodes, port: 1}.properties(1))
		set, err := read(name)
		if got := set["default.replication.factor"] + " " + set["min.insync.replicas"]; err != nil || got != want {
			t.Errorf("%d nodes: %s replicas, in sync, %v", nodes, got, err)
		}
	}
}

func TestBothSystemsGetTheSameProperties(t *testing.T) {
	b := newBench(t)
	dir, port, _ := b.start(2, "num.partitions=4")
	kafka := b.text(filepath.Join(dir, "2", propertiesFile))
	if !strings.Contains(kafka, "\nnum.partitions=4\n") {
		t.Errorf("the setting is not in\n%s", kafka)
	}
	ours, other, _ := b.start(2, "-x", b.binary, "num.partitions=4")
	same := strings.NewReplacer(ours, dir, fmt.Sprint(other+1), fmt.Sprint(port+1), fmt.Sprint(other+100), fmt.Sprint(port+100),
		fmt.Sprint(other+101), fmt.Sprint(port+101))
	if got := same.Replace(b.text(filepath.Join(ours, "2", propertiesFile))); got != kafka {
		t.Errorf("Kafka gets\n%sthe binary\n%s", kafka, got)
	}
	file := filepath.Join(dir, "1", propertiesFile)
	java := "-Xms1G -Xmx1G " + tuning + " -Dlog4j2.configurationFile=" + filepath.Join(dir, "log4j2.properties") + " -cp " + b.home + "/libs/* kafka.Kafka " + file
	if got := b.text(filepath.Join(dir, "1", "data", "notes")); got != java+"\n" {
		t.Errorf("Kafka runs as %s", got)
	}
	if got := b.text(filepath.Join(ours, "1", "data", "notes")); got != "serve --config "+filepath.Join(ours, "1", propertiesFile)+"\n" {
		t.Errorf("the binary runs as %s", got)
	}
	id := b.text(filepath.Join(dir, "1", "data", "meta.properties"))
	if len(id) != 22 || id != b.text(filepath.Join(dir, "2", "data", "meta.properties")) || id+"\n" != b.text(filepath.Join(dir, "cluster")) {
		t.Errorf("a node was formatted for cluster %s", id)
	}
}

func TestNodesOutliveTheCommandThatStartedThem(t *testing.T) {
	b := newBench(t)
	dir, _, addresses := b.start(2)
	lines := ""
	for i, at := range addresses {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		pid := b.process(dir, i+1)
		if sid, err := unix.Getsid(pid); err != nil || sid != pid {
			t.Errorf("node %d is process %d of session %d, %v", i+1, pid, sid, err)
		}
		lines += fmt.Sprintln(i+1, pid, at)
	}
	if got := b.do("pids", "-d", dir); got != lines || len(addresses) != 2 {
		t.Errorf("the nodes are\n%swant\n%s", got, lines)
	}
}

func TestARestartKeepsTheData(t *testing.T) {
	b := newBench(t)
	dir, _, addresses := b.start(2, "-x", b.binary)
	first := b.process(dir, 1)
	b.do("kill", "-d", dir, "1")
	if pid := b.process(dir, 1); pid != 0 {
		t.Errorf("process %d goes on", pid)
	}
	if got := b.do("pids", "-d", dir); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "2 ") {
		t.Errorf("these run: %s", got)
	}
	if _, err := b.run("kill", "-d", dir, "1"); err == nil || !strings.Contains(err.Error(), "node 1 does not run: restart starts it") {
		t.Errorf("the second kill: %v", err)
	}
	b.do("restart", "-d", dir, "1")
	c, err := net.Dial("tcp", addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if pid := b.process(dir, 1); pid == 0 || pid == first {
		t.Errorf("node 1 is process %d, it was %d", pid, first)
	}
	if got := b.text(filepath.Join(dir, "1", "data", "notes")); strings.Count(got, "serve --config") != 2 || strings.Contains(got, "stopped") {
		t.Errorf("the node ran as\n%s", got)
	}
	if _, err := b.run("restart", "-d", dir, "2"); err == nil || !strings.Contains(err.Error(), "kill it before") {
		t.Errorf("the restart of what runs: %v", err)
	}
}

// Who measures kills a node without the command, to know when that was.
func TestANodeMayBeStartedWhileItEnds(t *testing.T) {
	b := newBench(t)
	dir, _, _ := b.start(1)
	for range 5 {
		pid := b.process(dir, 1)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := (cluster{dir}).restart(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		if again := b.process(dir, 1); again == pid || again == 0 {
			t.Errorf("process %d comes after %d", again, pid)
		}
	}
}

func TestAnySignalCanBeSent(t *testing.T) {
	b := newBench(t)
	dir, _, _ := b.start(1)
	for _, word := range []string{"STOP", "SIGCONT", "cont", "15"} {
		b.do("kill", "-d", dir, "1", word)
	}
	if err := (cluster{dir}).at(1).ended(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.text(filepath.Join(dir, "1", "data", "notes")); !strings.HasSuffix(got, "\nstopped\n") {
		t.Errorf("the node notes %q", got)
	}
	if _, err := b.run("kill", "-d", dir, "1", "BLOW"); err == nil || !strings.Contains(err.Error(), `"BLOW" is no signal: say KILL`) {
		t.Errorf("the error is %v", err)
	}
}

func TestAStopEndsAllAndMayBeSaidAgain(t *testing.T) {
	b := newBench(t)
	dir, _, _ := b.start(2)
	pids := []int{b.process(dir, 1), b.process(dir, 2)}
	b.do("kill", "-d", dir, "2", "STOP")
	for range 2 {
		b.do("stop", "-d", dir)
		for i, pid := range pids {
			if runs(pid, filepath.Join(dir, fmt.Sprint(i+1), propertiesFile)) {
				t.Errorf("process %d goes on", pid)
			}
		}
	}
	for _, id := range []string{"1", "2"} {
		if got := b.text(filepath.Join(dir, id, "data", "notes")); strings.Count(got, "stopped") != 1 {
			t.Errorf("node %s was not asked to stop: %s", id, got)
		}
	}
	if got := b.do("pids", "-d", dir); got != "" {
		t.Errorf("these run: %s", got)
	}
	b.do("stop", "-d", filepath.Join(t.TempDir(), "never-started"))
}

func TestWhatDoesNotStopIsKilled(t *testing.T) {
	b := newBench(t)
	dir, _, _ := b.start(1, "fake.deaf=1")
	if err := (cluster{dir}).stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if pid := b.process(dir, 1); pid != 0 {
		t.Errorf("process %d goes on", pid)
	}
}

// A number of a process may be that of another one by now, here of this test.
func TestOtherProcessesAreLeftAlone(t *testing.T) {
	b := newBench(t)
	dir := b.folder()
	b.write(filepath.Join(dir, "cluster"), "x")
	b.write(filepath.Join(dir, "1", propertiesFile), "")
	b.write(filepath.Join(dir, "1", "pid"), fmt.Sprint(os.Getpid()))
	if got := b.do("pids", "-d", dir); got != "" {
		t.Errorf("these run: %s", got)
	}
	b.do("stop", "-d", dir)
	if _, err := b.run("kill", "-d", dir, "1"); err == nil {
		t.Error("another process was killed")
	}
}

// mistake is a call of the command, what the answer to it has to say, and where it is
// made, as NAME=VALUE.
type mistake struct {
	why  string
	args []string
	env  string
}

func mistakes(b bench, dir, empty string) []mistake {
	start := []string{"start", "-d", dir}
	return []mistake{
		{"say what to do: start,", nil, ""},
		{`"begin" is none of start,`, []string{"begin"}, ""},
		{"say where the cluster is kept with -d", []string{"start"}, ""},
		{"flag provided but not defined: -q; help tells", append(start, "-q"), ""},
		{"say a number of nodes from 1 to 100", append(start, "-n", "0"), ""},
		{"say a first port from 1 to 65434", append(start, "-n", "2", "-p", "65435"), ""},
		{`"-n" is no setting: write KEY=VALUE`, append(start, "a=b", "-n", "2"), ""},
		{"set it to the folder of an unpacked", start, "KAFKA_HOME="},
		{"has no jars of Kafka in libs: set KAFKA_HOME", start, "KAFKA_HOME=" + empty},
		{"unset it to use the one on the PATH", start, "JAVA_HOME=" + empty},
		{"build it, or name another binary with -x", append(start, "-x", filepath.Join(empty, "no")), ""},
		{"name the folder of one that was started", []string{"pids", "-d", dir}, ""},
		{"name the folder of one that was started", []string{"kill", "-d", dir, "1"}, ""},
		{"name the folder of one that was started", []string{"restart", "-d", dir, "1"}, ""},
		{`kill does not take ""; help tells`, []string{"kill", "-d", dir}, ""},
		{`stop does not take "1"; help tells`, []string{"stop", "-d", dir, "1"}, ""},
		{"no tool is named: say one of acls, topics", []string{"tool"}, ""},
		{`"topic" is no tool of ` + b.home + ": say one of acls, topics", []string{"tool", "topic"}, ""},
		{"has no tools in bin: set KAFKA_HOME", []string{"tool", "topics"}, "KAFKA_HOME=" + empty},
	}
}

func TestEveryMistakeIsToldWithItsRemedy(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(t.TempDir(), "c")
	for _, m := range mistakes(b, dir, t.TempDir()) {
		t.Run(m.why, func(t *testing.T) {
			if name, value, ok := strings.Cut(m.env, "="); ok {
				t.Setenv(name, value)
			}
			out, err := b.run(m.args...)
			if err == nil || !strings.Contains(err.Error(), m.why) || strings.Count(err.Error(), "\n") != 1 || out != "" {
				t.Errorf("the error is %v, the output %q", err, out)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestWithoutAnyJavaAStartSaysWhatToInstall(t *testing.T) {
	b := newBench(t)
	t.Setenv("JAVA_HOME", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := b.run("start", "-d", b.folder()); err == nil || !strings.Contains(err.Error(), "install Java 17 or newer, or set JAVA_HOME") {
		t.Errorf("the error is %v", err)
	}
}

func TestTakenPortsAreFoundBeforeAnythingStarts(t *testing.T) {
	b := newBench(t)
	dir, port, _ := b.start(1)
	for _, first := range []int{port, port - 1, port + controller} {
		next := b.folder()
		_, err := b.run("start", "-d", next, "-n", "2", "-p", fmt.Sprint(first))
		if err == nil || !strings.Contains(err.Error(), "address already in use: stop what listens there, or name another first port with -p") {
			t.Errorf("ports from %d on, where %d is taken: %v", first, port, err)
		}
		if _, err := os.Stat(next); err == nil {
			t.Errorf("%s was written", next)
		}
	}
	_, err := b.run("start", "-d", dir, "-p", fmt.Sprint(port))
	if err == nil || !strings.Contains(err.Error(), "holds a cluster already: stop that and remove the folder") {
		t.Errorf("the error is %v", err)
	}
}

func TestAFailedFormatTellsItsLastWords(t *testing.T) {
	b := newBench(t)
	dir := b.folder()
	_, err := b.run("start", "-d", dir, "-p", fmt.Sprint(b.port(1)), "fake.refuses=1")
	if err == nil || !strings.Contains(err.Error(), "node 1 cannot be formatted") || !strings.Contains(err.Error(), "the last words") ||
		strings.Contains(err.Error(), "long ago") || strings.Contains(err.Error(), "B.java") {
		t.Errorf("the error is %v", err)
	}
	if got := b.text(filepath.Join(dir, "1", "format.log")); !strings.Contains(got, "long ago") {
		t.Errorf("the log says %s", got)
	}
	b.do("stop", "-d", dir)
}

func TestAStartThatFailsLeavesNoNode(t *testing.T) {
	b := newBench(t)
	dir := b.folder()
	_, err := b.run("start", "-d", dir, "-n", "2", "-p", fmt.Sprint(b.port(2)), "fake.ends=2")
	if err == nil || !strings.Contains(err.Error(), "node 2 ended before it listened") || !strings.Contains(err.Error(), "this node ends") {
		t.Errorf("the error is %v", err)
	}
	for id := 1; id <= 2; id++ {
		if pid := b.process(dir, id); pid != 0 {
			t.Errorf("node %d is process %d", id, pid)
		}
	}
	if b.text(filepath.Join(dir, "1", "pid")) == "" {
		t.Error("node 1 was never there")
	}
}

func TestAStartThatIsInterruptedLeavesNoNode(t *testing.T) {
	b := newBench(t)
	dir, pipe := b.folder(), filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := newPlan([]string{"-d", dir, "-p", fmt.Sprint(b.port(1)), "fake.mute=" + pipe})
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error)
	go func() {
		_, err := p.start(ctx)
		ended <- err
	}()
	b.text(pipe) // it is there
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if pid := b.process(dir, 1); pid != 0 {
		t.Errorf("node 1 is process %d", pid)
	}
}

func TestBrokersAndToolsHaveOptionsOfTheirOwn(t *testing.T) {
	b := newBench(t)
	t.Setenv("KAFKA_HEAP_OPTS", "-Xms5M  -Xmx6M")
	t.Setenv("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseZGC")
	dir, _, _ := b.start(1)
	if got := b.text(filepath.Join(dir, "1", "data", "notes")); !strings.HasPrefix(got, "-Xms5M -Xmx6M -XX:+UseZGC -Dlog4j2") {
		t.Errorf("the broker runs as %s", got)
	}
	for options, want := range map[string]string{
		"":                        "read\n--list --x, heap , tuned -XX:+UseZGC\n",
		"-Xmx9M -XX:+UseSerialGC": "read\n--list --x, heap -Xmx9M -XX:+UseSerialGC, tuned -Djava.awt.headless=true\n",
	} {
		t.Setenv("KAFKA_TOOL_OPTS", options)
		cmd := exec.Command(os.Args[0], "tool", "topics", "--list", "--x")
		cmd.Stdin = strings.NewReader("read\n")
		out, err := cmd.Output()
		var exit *exec.ExitError
		if string(out) != want || !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("the tool with %q prints %q and ends with %v", options, out, err)
		}
	}
}

func TestARigRunsOnIt(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	for _, binary := range []string{"", b.binary} {
		r, err := rig.Starter{Command: os.Args[:1], Dir: dir, Port: b.port(2)}.Start(binary, 2, "num.partitions=2")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Stop() })
		all, err := r.Processes()
		if err != nil || len(all) != 2 || len(r.Brokers) != 2 {
			t.Errorf("%v at %v, %v", all, r.Brokers, err)
		}
		for _, err := range []error{r.Kill(1), r.Kill(2), r.RestartAll(), r.Stop()} {
			if err != nil {
				t.Error(err)
			}
		}
		if left, err := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}
