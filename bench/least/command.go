package least

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long a start and a stop may take.
const patience = 10 * time.Second

// Command is what a rig.Starter runs: start -d DIR -n NODES -p PORT prints the
// addresses, pids -d DIR the process, stop -d DIR ends it. Serve, in place of start, is
// that process. self is the command that leads here.
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
		return start(self, *dir, *nodes, *port)
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

// start starts the process and returns when all ports are open.
func start(self []string, dir string, nodes, port int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self[0], append(self[1:], "serve", "-d", dir, "-n", strconv.Itoa(nodes), "-p", strconv.Itoa(port))...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return err
	}
	var all []string
	for i := range nodes {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i))
		if err := await(func() bool { return open(at) }); err != nil {
			return fmt.Errorf("wait for %s: %w", at, err)
		}
		all = append(all, at)
	}
	fmt.Println(strings.Join(all, ","))
	return nil
}

func open(at string) bool {
	c, err := net.Dial("tcp", at)
	if err == nil {
		c.Close()
	}
	return err == nil
}

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
	c, err := Listen(dir, nodes, port)
	if err != nil {
		return err
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-stopped
		c.Close()
	}()
	return c.Serve()
}

func process(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
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
