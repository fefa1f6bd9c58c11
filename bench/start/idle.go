package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-log/tidemark/bench/proc"
	"github.com/tidemark-log/tidemark/internal/cluster"
)

const (
	idlePartitions = 1000
	idleSettle     = 8 * time.Second
	idleWatch      = 30 * time.Second
)

// idle starts three node processes, creates a thousand partitions in three
// replicas each, and tells what they cost while nothing happens: cores and MB.
func idle(binary string) (float64, float64, error) {
	dir, err := cluster.TempDir()
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	port, err := freePorts(103)
	if err != nil {
		return 0, 0, err
	}
	files, addrs, err := cluster.WriteConfigs(dir, 3, port)
	if err != nil {
		return 0, 0, err
	}
	var pids []int
	for _, f := range files {
		cmd, err := serve(binary, f)
		if err != nil {
			return 0, 0, err
		}
		defer func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() }()
		pids = append(pids, cmd.Process.Pid)
	}
	if err := createIdle(addrs); err != nil {
		return 0, 0, err
	}
	time.Sleep(idleSettle)
	return watch(pids)
}

// serve starts one node with Kafka's own heartbeat and session, not those of dev.
func serve(binary, file string) (*exec.Cmd, error) {
	log, err := os.Create(filepath.Join(filepath.Dir(file), "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, "serve", "--config", file, "--set", "broker.heartbeat.interval.ms=2000", "--set", "broker.session.timeout.ms=9000")
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

// watch measures what the processes cost for a while.
func watch(pids []int) (float64, float64, error) {
	before, err := proc.CPU(pids...)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(idleWatch)
	after, err := proc.CPU(pids...)
	if err != nil {
		return 0, 0, err
	}
	rss, err := proc.RSS(pids...)
	return (after - before).Seconds() / idleWatch.Seconds(), float64(rss) / 1e6, err
}

func createIdle(addrs []string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.RetryTimeout(20*time.Second))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, err := kadm.NewClient(cl).CreateTopic(ctx, idlePartitions, 3, nil, "idle")
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || strings.Contains(err.Error(), "EXISTS") {
			return fmt.Errorf("create %d partitions: %w", idlePartitions, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
