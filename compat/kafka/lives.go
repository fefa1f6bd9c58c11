package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// life is a check of processes: how they start, end and come back.
type life struct {
	name  string
	check func(ctx context.Context, s settings) error
}

var lives = []life{
	{"life: a node ends cleanly on SIGTERM and comes back to its place", endsCleanly},
	{"life: a node alone keeps records over a kill", nodeAlone},
	{"life: brokers work apart from controllers", rolesApart},
	{"life: a group of franz-go goes on where it was, over a kill", groupGoesOn},
	{"life: dump-log prints what Apache's prints", samePrint},
	{"life: requests leave no line in the log", quietLog},
}

// serve starts a node of the cluster as a child of this process, so that its exit
// status can be seen. The node must be down.
func (c *cluster) serve(ctx context.Context, id int) (*exec.Cmd, error) {
	home := filepath.Join(c.dir, strconv.Itoa(id))
	log, err := os.OpenFile(filepath.Join(home, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, c.s.binary, "serve", "--config", filepath.Join(home, "server.properties"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start node %d: %w", id, err)
	}
	return cmd, os.WriteFile(filepath.Join(home, "pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}

// terminate sends SIGTERM and waits for an exit with status 0 within 10 s.
func terminate(cmd *exec.Cmd) error {
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("did not end within 10 s of SIGTERM")
	}
	if err != nil {
		return fmt.Errorf("after SIGTERM and %v: %w", time.Since(start).Round(time.Millisecond), err)
	}
	return nil
}

func endsCleanly(ctx context.Context, s settings) error {
	c, err := startCluster(ctx, s, "ends", 3, "offsets.topic.num.partitions=5")
	if err != nil {
		return err
	}
	defer c.stop()
	k, err := newClient(c.bootstrap())
	if err != nil {
		return err
	}
	defer k.close()
	if err := k.create(ctx, "ends", 6, 3); err != nil {
		return err
	}
	if err := k.produce(ctx, "ends", 0, 3000); err != nil {
		return err
	}
	if err := errors.Join(c.node(ctx, "kill", "2"), k.waitISR(ctx, "ends", 2, time.Minute)); err != nil {
		return err
	}
	for round := range 3 {
		if err := c.serveRound(ctx, k, 2, 3000*(round+1)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	if err := c.node(ctx, "restart", "2"); err != nil {
		return err
	}
	if err := k.waitISR(ctx, "ends", 3, time.Minute); err != nil {
		return err
	}
	if err := c.noComplaint("2"); err != nil {
		return err
	}
	return k.expect(ctx, "ends", 12000)
}

// serveRound starts a node, waits until it is in sync, writes 3000 records and
// ends it; then it is in no ISR. The clean-shutdown file must be there when it is down only.
func (c *cluster) serveRound(ctx context.Context, k *client, id, from int) error {
	clean := filepath.Join(c.dir, strconv.Itoa(id), "data", ".kafka_cleanshutdown")
	cmd, err := c.serve(ctx, id)
	if err != nil {
		return err
	}
	if err := k.waitISR(ctx, "ends", 3, time.Minute); err != nil {
		return errors.Join(err, terminate(cmd))
	}
	if _, err := os.Stat(clean); err == nil {
		return fmt.Errorf("a running node has left %s", clean)
	}
	if err := k.produce(ctx, "ends", from, 3000); err != nil {
		return err
	}
	if err := terminate(cmd); err != nil {
		return err
	}
	if _, err := os.Stat(clean); err != nil {
		return fmt.Errorf("no clean-shutdown file: %w", err)
	}
	return k.waitISR(ctx, "ends", 2, time.Minute)
}

// noComplaint fails if the log of a node has a line that warns or a panic.
func (c *cluster) noComplaint(ids ...string) error {
	for _, id := range ids {
		text, err := os.ReadFile(filepath.Join(c.dir, id, "log"))
		if err != nil {
			return err
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") {
				return fmt.Errorf("node %s complains: %s", id, line)
			}
		}
	}
	return nil
}

func nodeAlone(ctx context.Context, s settings) error {
	c, err := startCluster(ctx, s, "alone", 1)
	if err != nil {
		return err
	}
	defer c.stop()
	k, err := newClient(c.bootstrap())
	if err != nil {
		return err
	}
	defer k.close()
	if err := k.create(ctx, "alone", 3, 1); err != nil {
		return err
	}
	for round := range 3 {
		if err := k.produce(ctx, "alone", 2000*round, 2000); err != nil {
			return err
		}
		if err := c.node(ctx, "kill", "1"); err != nil {
			return err
		}
		if err := c.node(ctx, "restart", "1"); err != nil {
			return err
		}
		if err := k.expect(ctx, "alone", 2000*(round+1)); err != nil {
			return fmt.Errorf("after kill %d: %w", round+1, err)
		}
	}
	return nil
}

func groupGoesOn(ctx context.Context, s settings) error {
	c, err := startCluster(ctx, s, "group", 3, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer c.stop()
	k, err := newClient(c.bootstrap())
	if err != nil {
		return err
	}
	defer k.close()
	if err := k.create(ctx, "group", 3, 3); err != nil {
		return err
	}
	seen := map[string]int{}
	for round := range 4 {
		if err := k.produce(ctx, "group", 500*round, 500); err != nil {
			return err
		}
		if err := readGroup(ctx, c.bootstrap(), "group", 500, seen); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		id := strconv.Itoa(round%3 + 1)
		if err := errors.Join(c.node(ctx, "kill", id), c.node(ctx, "restart", id)); err != nil {
			return err
		}
	}
	for value, n := range seen {
		if n != 1 {
			return fmt.Errorf("the group read record %s %d times", value, n)
		}
	}
	if len(seen) != 2000 {
		return fmt.Errorf("the group read %d of 2000 records", len(seen))
	}
	return nil
}

// quietLog makes hundreds of requests of all kinds and counts lines.
func quietLog(ctx context.Context, s settings) error {
	c, err := startCluster(ctx, s, "quiet", 3, "group.initial.rebalance.delay.ms=0")
	if err != nil {
		return err
	}
	defer c.stop()
	k, err := newClient(c.bootstrap())
	if err != nil {
		return err
	}
	defer k.close()
	seen := map[string]int{}
	if err := errors.Join(k.create(ctx, "quiet", 3, 3), k.produce(ctx, "quiet", 0, 100), readGroup(ctx, c.bootstrap(), "quiet", 100, seen)); err != nil {
		return err
	}
	before, err := c.logLines()
	if err != nil {
		return err
	}
	for i := range 20 {
		if err := errors.Join(k.produce(ctx, "quiet", 100+10*i, 10), readGroup(ctx, c.bootstrap(), "quiet", 10, seen), k.expect(ctx, "quiet", 110+10*i)); err != nil {
			return err
		}
	}
	after, err := c.logLines()
	if err != nil {
		return err
	}
	if more := len(after) - len(before); more > 0 {
		return fmt.Errorf("%d lines more, such as: %s", more, after[len(after)-1])
	}
	return nil
}

// logLines returns the lines of all nodes' logs.
func (c *cluster) logLines() ([]string, error) {
	names, err := filepath.Glob(filepath.Join(c.dir, "*", "log"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	return out, nil
}
