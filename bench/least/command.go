package least

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long a start and a stop may take.
const patience = 10 * time.Second

// Command is what a rig.Starter runs: start -d DIR -n NODES -p PORT prints the
// addresses, pids -d DIR the process, stop -d DIR ends it. Serve, in place of start, is
// that process, which prints the addresses when it listens. self is the command that
// leads here.
func Command(self []string, args []string) error {
	if len(args) == 0 {
		return errors.New("say start, pids or stop")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	dir := flags.String("d", "", "directory of the cluster")
	nodes := flags.Int("n", 1, "nodes")
	port := flags.Int("p", 29092, "port of the first one")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "start":
		all, err := start(self, *dir, *nodes, *port)
		if err == nil {
			fmt.Println(all)
		}
		return err
	case "serve":
		return serve(*dir, *nodes, *port)
	case "pids":
		pid, err := process(*dir)
		if err == nil {
			fmt.Println(1, pid)
		}
		return err
	case "stop":
		return stop(*dir)
	}
	return fmt.Errorf("%q is not start, pids or stop", args[0])
}

// start starts the process and returns the addresses, which it prints when it listens:
// that a port is open would not tell whose it is. A process that does not is ended.
func start(self []string, dir string, nodes, port int) (string, error) {
	name := filepath.Join(dir, "1", "log") // where a rig looks for it
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", err
	}
	log, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer log.Close()
	told, tells, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer told.Close()
	args := slices.Concat(self[1:], []string{"serve", "-d", dir, "-n", strconv.Itoa(nodes), "-p", strconv.Itoa(port)})
	cmd := exec.Command(self[0], args...)
	cmd.Stdout, cmd.Stderr = tells, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	tells.Close()
	if err != nil {
		return "", err
	}
	all, err := addresses(told, dir, cmd.Process.Pid)
	if err != nil {
		cmd.Process.Kill()
		os.Remove(pidFile(dir))
		text, _ := os.ReadFile(name)
		return "", fmt.Errorf("wait until process %d listens: %w, %v: %s", cmd.Process.Pid, err, cmd.Wait(), text)
	}
	return all, nil
}

// addresses notes the process and returns the line that it prints.
func addresses(told *os.File, dir string, pid int) (string, error) {
	if err := os.WriteFile(pidFile(dir), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return "", err
	}
	if err := told.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(told).ReadString('\n')
	return strings.TrimSpace(line), err
}

func pidFile(dir string) string { return filepath.Join(dir, "pid") }

func await(done func() bool) error {
	for end := time.Now().Add(patience); !done(); time.Sleep(again) {
		if time.Now().After(end) {
			return fmt.Errorf("nothing happened in %v", patience)
		}
	}
	return nil
}

// serve is the process. It ends with a signal.
func serve(dir string, nodes, port int) error {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM, os.Interrupt)
	c, err := Listen(dir, nodes, port)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(c.Addresses(), ","))
	go func() {
		<-stopped
		c.Close()
	}()
	return c.Serve()
}

func process(dir string) (int, error) {
	text, err := os.ReadFile(pidFile(dir))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

func stop(dir string) error {
	pid, err := process(dir)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	return await(func() bool { return ended(pid) })
}

// ended reports whether a process is gone, or waits only for somebody to note it.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
