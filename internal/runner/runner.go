// Package runner starts the nodes that the command line asks for.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/cli"
	"github.com/tidemark-log/tidemark/internal/cluster"
	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/node"
)

// Runner is the cli.Runner of the binary. Logs go to Log.
type Runner struct {
	Log *slog.Logger
	// Binary is the path of this program, for nodes in processes of their own.
	Binary func() (string, error)
}

var _ cli.Runner = Runner{}

// stopLimit bounds an orderly stop: a cluster that cannot let a broker go, or a
// follower that does not move, holds it up no longer (case B254).
const stopLimit = 8 * time.Second

// Format prepares the directories of a node.
func (r Runner) Format(_ context.Context, out io.Writer, clusterID string, cfg *config.Config) error {
	if err := node.Format(cfg, clusterID); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "Formatted %s for node %d of cluster %s.\n", cfg.LogDir, cfg.NodeID, clusterID)
	return err
}

// Serve runs one node until ctx ends, then leaves in an orderly way.
func (r Runner) Serve(ctx context.Context, out io.Writer, cfg *config.Config) error {
	n, err := node.Start(ctx, node.Options{Config: cfg, Log: r.Log})
	if err != nil {
		return err
	}
	stop := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		return n.Shutdown(ctx)
	}
	select {
	case <-n.Ready():
		if cfg.Broker {
			fmt.Fprintf(out, "ready %s\n", n.Addr())
		}
	case <-n.Failed():
		n.Kill()
		return n.Err()
	case <-ctx.Done():
		return stop()
	}
	select {
	case <-ctx.Done():
		return stop()
	case <-n.Failed():
		n.Kill()
		return n.Err()
	}
}

// Dev runs a whole cluster until ctx ends.
func (r Runner) Dev(ctx context.Context, out io.Writer, o cli.DevOptions) error {
	dir := o.Dir
	if dir == "" {
		var err error
		if dir, err = cluster.TempDir(); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%s cannot be made (%w): name a directory that this user may write with --dir", dir, err)
	}
	if o.Processes {
		if err := portsAreFree(o); err != nil {
			return err
		}
		return r.processes(ctx, out, dir, o)
	}
	start, cancel := context.WithTimeout(ctx, time.Minute)
	ended := make(chan error, o.Nodes)
	c, err := cluster.Start(start, cluster.Options{Nodes: o.Nodes, Dir: dir, Port: o.Port, Log: r.Log,
		Ended: func(id int, why error) { ended <- fmt.Errorf("node %d has ended: %w", id, why) }})
	cancel()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "ready %s\n", strings.Join(c.Addrs(), ","))
	err = r.outlast(ctx, ended, o.Nodes)
	stop, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return errors.Join(err, c.Close(stop))
}

// outlast waits until ctx ends, or all nodes have, and tells of each node that did.
func (r Runner) outlast(ctx context.Context, ended <-chan error, nodes int) error {
	for ; ; nodes-- {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if nodes == 1 {
				return err
			}
			r.Log.Error("a node is gone, the others go on", "err", err)
		}
	}
}

// portsAreFree refuses ports that somebody has: another cluster's brokers would
// answer for those of this one.
func portsAreFree(o cli.DevOptions) error {
	for port := o.Port; port < o.Port+o.Nodes; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("cannot listen on port %d: choose another with --port (%w)", port, err)
		}
		l.Close()
	}
	return nil
}

// processes runs every node of a dev cluster as `serve` in its own process.
func (r Runner) processes(ctx context.Context, out io.Writer, dir string, o cli.DevOptions) error {
	binary, err := r.Binary()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	files, addrs, err := cluster.WriteConfigs(dir, o.Nodes, o.Port)
	if err != nil {
		return err
	}
	ended := make(chan error, len(files))
	var cmds []*exec.Cmd
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer func() {
		for _, c := range cmds {
			c.Process.Signal(syscall.SIGTERM)
		}
	}()
	for _, f := range files {
		c, err := serveFile(binary, f)
		if err != nil {
			return err
		}
		cmds = append(cmds, c)
		waiting.Go(func() { ended <- endOf(c, f) })
	}
	ready, cancel := context.WithCancel(ctx)
	defer cancel()
	early := make(chan error, 1)
	waiting.Go(func() { early <- waitReady(ready, addrs) })
	select {
	case err := <-ended:
		return err
	case err := <-early:
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "ready %s\n", strings.Join(addrs, ","))
	return r.outlast(ctx, ended, len(files))
}

// serveFile starts a node in a process of its own; its output goes to the file log beside
// its configuration.
func serveFile(binary, file string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(filepath.Dir(file), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open a log for %s: %w", file, err)
	}
	defer log.Close()
	c := exec.Command(binary, "serve", "--config", file)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	return c, nil
}

// endOf waits for the end of a node's process and says how to go on.
func endOf(c *exec.Cmd, file string) error {
	how := "in an orderly way"
	if err := c.Wait(); err != nil {
		how = err.Error()
	}
	return fmt.Errorf("process %d of node %s has ended (%s): see %s, and start it again with tidemark serve --config %s",
		c.Process.Pid, filepath.Base(filepath.Dir(file)), how, filepath.Join(filepath.Dir(file), "log"), file)
}

// waitReady waits until every broker answers: an open port means a usable
// broker.
func waitReady(ctx context.Context, addrs []string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, a := range addrs {
		for {
			err := ask(ctx, a)
			if err == nil {
				break
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("the broker at %s did not become ready (%w): see the file log beside its server.properties", a, err)
			}
		}
	}
	return nil
}

func ask(ctx context.Context, addr string) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	req := kmsg.NewPtrApiVersionsRequest()
	_, err = c.Do(ctx, req)
	return err
}
