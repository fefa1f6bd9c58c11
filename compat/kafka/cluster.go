package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cluster is a running cluster of combined nodes 1..n, kept by the command of
// settings.kafka.
type cluster struct {
	s         settings
	dir       string
	tmp       string // for files that checks write
	addresses []string
	names     *strings.Replacer // addresses and folders to the words of the scripts
	vars      *strings.Replacer // the scripts' variables to addresses and folders
	started   []*exec.Cmd       // what scripts left running
}

func startCluster(ctx context.Context, s settings, name string, n int, configs ...string) (*cluster, error) {
	port, err := freePorts(s.port, n)
	if err != nil {
		return nil, err
	}
	c := &cluster{s: s, dir: filepath.Join(s.dir, name), tmp: filepath.Join(s.dir, name+"-files")}
	if err := os.MkdirAll(c.tmp, 0o755); err != nil {
		return nil, err
	}
	args := []string{"start", "-d", c.dir, "-n", strconv.Itoa(n), "-p", strconv.Itoa(port)}
	if !s.apache {
		args = append(args, "-x", s.binary)
	}
	if out, err := exec.CommandContext(ctx, s.kafka, append(args, configs...)...).CombinedOutput(); err != nil {
		c.stop()
		return nil, fmt.Errorf("start a cluster: %w: %s", err, out)
	}
	var names, controllers []string
	for i := range n {
		c.addresses = append(c.addresses, fmt.Sprintf("127.0.0.1:%d", port+i))
		controllers = append(controllers, fmt.Sprintf("127.0.0.1:%d", port+100+i))
		names = append(names, c.addresses[i], fmt.Sprintf("BROKER%d", i+1), controllers[i], fmt.Sprintf("CONTROLLER%d", i+1),
			strconv.Itoa(port+i), fmt.Sprintf("PORT%d", i+1), strconv.Itoa(port+100+i), fmt.Sprintf("CPORT%d", i+1))
	}
	c.names = strings.NewReplacer(append(names, c.dir, "DIR", c.tmp, "TMP")...)
	c.vars = strings.NewReplacer("$BROKER1", c.addresses[0], "$B", strings.Join(c.addresses, ","),
		"$C", strings.Join(controllers, ","), "$DIR", c.dir, "$TMP", c.tmp)
	return c, nil
}

// freePorts looks for a base such that the brokers' and the controllers' ports of
// n nodes are free.
func freePorts(from, n int) (int, error) {
	for base := from; base < 32000; base += 10 {
		free := true
		for i := range n {
			free = free && isFree(base+i) && isFree(base+100+i)
		}
		if free {
			return base, nil
		}
	}
	return 0, fmt.Errorf("no free ports from %d on", from)
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

func (c *cluster) stop() {
	c.stopStarted()
	exec.Command(c.s.kafka, "stop", "-d", c.dir).Run()
}

func (c *cluster) bootstrap() string { return strings.Join(c.addresses, ",") }

// node signals or restarts a node by the same command that started it.
func (c *cluster) node(ctx context.Context, verb string, args ...string) error {
	out, err := exec.CommandContext(ctx, c.s.kafka, append([]string{verb, "-d", c.dir}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s node %s: %w: %s", verb, args[0], err, out)
	}
	return nil
}

// command is what a line of a script runs.
func (c *cluster) command(ctx context.Context, args []string) *exec.Cmd {
	for i, a := range args {
		args[i] = c.vars.Replace(a)
	}
	switch args[0] {
	case "kcat":
		return exec.CommandContext(ctx, "kcat", args[1:]...)
	case "tidemark":
		return exec.CommandContext(ctx, c.s.binary, args[1:]...)
	case "kill", "restart":
		return exec.CommandContext(ctx, c.s.kafka, append([]string{args[0], "-d", c.dir}, args[1:]...)...)
	case "write": // its standard input into a file
		return exec.CommandContext(ctx, "tee", args[1:]...)
	}
	return exec.CommandContext(ctx, c.s.kafka, append([]string{"tool"}, args...)...)
}

// own runs the commands of scripts that are no programs; done says that it was
// one.
func (c *cluster) own(ctx context.Context, ch *check) (done bool, err error) {
	switch args := ch.args; args[0] {
	case "start": // a command that runs until "stop"
		cmd := c.command(ctx, slices.Clone(args[1:]))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		c.started = append(c.started, cmd)
		return true, cmd.Start()
	case "stop":
		c.stopStarted()
		return true, nil
	case "assign": // topic, partition, replicas: as --execute, but to dead brokers too
		return true, assign(ctx, c.bootstrap(), args[1], args[2], args[3])
	}
	return false, nil
}

func (c *cluster) stopStarted() {
	for _, cmd := range c.started {
		if cmd.Process != nil {
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait()
		}
	}
	c.started = nil
}

// lines runs the command of the check and returns what it printed, masked.
func (c *cluster) lines(ctx context.Context, ch *check) []string {
	if done, err := c.own(ctx, ch); err != nil {
		return []string{err.Error()}
	} else if done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ch.within)
	defer cancel()
	cmd := c.command(ctx, slices.Clone(ch.args))
	cmd.Env = toolEnv()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if len(ch.input) > 0 {
		cmd.Stdin = strings.NewReader(strings.Join(ch.input, "\n") + "\n")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ch.args[0] == "write" {
		out.Reset()
	}
	lines := mask(out.String()+"\n"+errs.String(), c.names)
	for _, f := range ch.filter {
		lines = f(lines)
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		lines = append(lines, fmt.Sprintf("did not end within %v", ch.within))
	case errors.As(err, &exit):
		lines = append(lines, fmt.Sprintf("exit %d", exit.ExitCode()))
	case err != nil:
		lines = append(lines, err.Error())
	}
	return lines
}

// toolEnv makes Kafka's tools start fast and stay small.
func toolEnv() []string {
	env := os.Environ()
	if os.Getenv("KAFKA_TOOL_OPTS") == "" {
		env = append(env, "KAFKA_TOOL_OPTS=-Xmx256M -XX:+UseSerialGC -XX:TieredStopAtLevel=1")
	}
	return env
}

// check runs one check, again and again if it waits for a state.
func (c *cluster) check(ctx context.Context, ch *check) error {
	if ch.only == "apache" && !c.s.apache || ch.only == "tidemark" && c.s.apache {
		return nil
	}
	deadline := time.Now().Add(c.s.patient)
	for {
		got := c.lines(ctx, ch)
		d := difference(ch.want, got)
		if d != "" && ch.retry && (c.s.rewrite == "" || len(ch.want) > 0) && time.Now().Before(deadline) && ctx.Err() == nil {
			continue
		}
		if c.s.rewrite != "" {
			ch.want = got
		}
		if d == "" {
			return nil
		}
		return errors.New("$ " + ch.line + "\n" + d)
	}
}
