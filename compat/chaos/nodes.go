package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
	"github.com/tidemark-log/tidemark/compat/chaos/lab"
)

const (
	brokerPort     = 9092
	controllerPort = 9093
)

// cluster is the nodes' processes and their network.
type cluster struct {
	s       *settings
	h       *history.History
	net     *lab.Net
	nodes   []*node
	brokers []int32
	small   *node // whose disk is small

	clientLog  *os.File
	outOfRange atomic.Int64 // answers to consumers whose offset was too high for a log
}

// node is one process and its directory.
type node struct {
	c     *cluster
	id    int
	roles string
	dir   string
	data  string

	mu     sync.Mutex
	cmd    *exec.Cmd
	ended  chan struct{}
	doomed bool // its end is expected
	starts int
}

// newCluster makes the network and formats the nodes; small is the number of the
// broker whose disk is small.
func newCluster(s *settings, h *history.History, small int, slow []lab.Link) (*cluster, error) {
	c := &cluster{s: s, h: h}
	var err error
	if c.clientLog, err = os.Create(filepath.Join(s.dir, "clients.log")); err != nil {
		return nil, err
	}
	roles := []string{"broker,controller", "broker,controller", "broker,controller", "broker"}
	if s.layout == "apart" {
		roles = []string{"controller", "controller", "controller", "broker", "broker", "broker"}
	}
	log, err := os.Create(filepath.Join(s.dir, "toxiproxy.log"))
	if err != nil {
		return nil, err
	}
	if c.net, err = lab.NewNet(len(roles), []int{brokerPort, controllerPort}, slow, s.toxiproxy, log); err != nil {
		return nil, err
	}
	for i, r := range roles {
		n := &node{c: c, id: i + 1, roles: r, dir: filepath.Join(s.dir, strconv.Itoa(i+1))}
		n.data = filepath.Join(n.dir, "data")
		if strings.Contains(r, "broker") {
			c.brokers = append(c.brokers, int32(n.id))
		}
		c.nodes = append(c.nodes, n)
	}
	c.small = c.nodes[c.brokers[small%len(c.brokers)]-1]
	if err := lab.Disk(c.small.data, int64(64+s.duration.Seconds()/2)<<20); err != nil {
		return nil, err
	}
	for _, n := range c.nodes {
		if err := n.format(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// file is the node's server.properties.
func (n *node) file() string {
	var voters, listeners []string
	for id := 1; id <= 3; id++ {
		voters = append(voters, fmt.Sprintf("%d@%s:%d", id, lab.Address(id), controllerPort))
	}
	lines := []string{"process.roles=" + n.roles, "node.id=" + strconv.Itoa(n.id), "controller.quorum.voters=" + strings.Join(voters, ","),
		"controller.listener.names=CONTROLLER", "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs=" + n.data, "default.replication.factor=3", "min.insync.replicas=2", "offsets.topic.replication.factor=3",
		"offsets.topic.num.partitions=3", "auto.create.topics.enable=false", "log.segment.bytes=2097152", "group.initial.rebalance.delay.ms=0",
		"replica.lag.time.max.ms=5000", "metadata.log.max.record.bytes.between.snapshots=65536", "log.segment.delete.delay.ms=2000",
		"log.retention.check.interval.ms=2000",
	}
	if strings.Contains(n.roles, "broker") {
		listeners = append(listeners, fmt.Sprintf("PLAINTEXT://%s:%d", lab.Address(n.id), brokerPort))
		lines = append(lines, "advertised.listeners="+listeners[0])
	}
	if strings.Contains(n.roles, "controller") {
		listeners = append(listeners, fmt.Sprintf("CONTROLLER://%s:%d", lab.Address(n.id), controllerPort))
	}
	lines = append(lines, "listeners="+strings.Join(listeners, ","))
	if !n.c.s.defaults {
		lines = append(lines, "broker.heartbeat.interval.ms=100", "broker.session.timeout.ms=2000")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (n *node) format() error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(n.dir, "server.properties")
	if err := os.WriteFile(file, []byte(n.file()), 0o644); err != nil {
		return err
	}
	out, err := exec.Command(n.c.s.binary, "format", "--cluster-id", "ChaosCluster000000001w", "--config", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format node %d: %w: %s", n.id, err, out)
	}
	return nil
}

// launch starts the node if it is down.
func (n *node) launch() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running() {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	n.starts++
	fmt.Fprintf(log, "--- start %d after %.3f s\n", n.starts, n.c.h.Now().Duration().Seconds())
	cmd := n.c.net.Command(n.id, n.c.s.binary, "serve", "--config", filepath.Join(n.dir, "server.properties"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		log.Close()
		return fmt.Errorf("start node %d: %w", n.id, err)
	}
	ended := make(chan struct{})
	n.cmd, n.ended, n.doomed = cmd, ended, false
	go n.watch(cmd, log, ended)
	return nil
}

// watch waits for the end of the process, which nobody may cause but this program.
func (n *node) watch(cmd *exec.Cmd, log *os.File, ended chan struct{}) {
	err := cmd.Wait()
	fmt.Fprintf(log, "--- ended after %.3f s: %v\n", n.c.h.Now().Duration().Seconds(), err)
	log.Close()
	n.mu.Lock()
	doomed := n.doomed
	n.mu.Unlock()
	close(ended)
	if !doomed {
		n.c.h.Verdict.Violate(history.Process, "node %d ended by itself after %v: %v: %s", n.id, n.c.h.Now().Duration(), err, n.tail())
		if err := n.launch(); err != nil {
			n.c.h.Verdict.Violate(history.Process, "node %d: %v", n.id, err)
		}
	}
}

// tail is the end of the node's log, in one line.
func (n *node) tail() string {
	text, _ := os.ReadFile(filepath.Join(n.dir, "log"))
	text = bytes.ReplaceAll(bytes.TrimSpace(text), []byte("\n"), []byte(" | "))
	return string(text[max(0, len(text)-600):])
}

// running wants the lock.
func (n *node) running() bool {
	if n.ended == nil {
		return false
	}
	select {
	case <-n.ended:
		return false
	default:
		return true
	}
}

// alive reports whether the process runs.
func (n *node) alive() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running()
}

// doom says that the node's end is, or is no longer, expected.
func (n *node) doom(expected bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doomed = expected
}

// signal sends a signal to the node's process, if it runs.
func (n *node) signal(sig syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running() {
		return nil
	}
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM {
		n.doomed = true
	}
	if err := n.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to node %d: %w", sig, n.id, err)
	}
	return nil
}

// kill ends the process at once and waits for that.
func (n *node) kill() error {
	err := n.signal(syscall.SIGKILL)
	if err == nil && n.ended != nil {
		<-n.ended
	}
	return err
}

// terminate asks the process to end, and kills it if it does not.
func (n *node) terminate(limit time.Duration) (clean bool, err error) {
	if err := n.signal(syscall.SIGTERM); err != nil {
		return false, err
	}
	select {
	case <-n.ended:
		return n.cmd.ProcessState.ExitCode() == 0, nil
	case <-time.After(limit):
		return false, n.kill()
	}
}

// bootstrap is where clients start.
func (c *cluster) bootstrap() []string {
	var out []string
	for _, id := range c.brokers {
		out = append(out, fmt.Sprintf("%s:%d", lab.Address(int(id)), brokerPort))
	}
	return out
}

// stop ends all nodes, whatever state they are in.
func (c *cluster) stop() {
	for _, n := range c.nodes {
		n.signal(syscall.SIGCONT)
		n.kill()
	}
	c.net.Close()
}

// rescue copies the data of the node whose disk ends with this process.
func (c *cluster) rescue() {
	saved := filepath.Join(c.small.dir, "data-of-the-small-disk")
	if err := os.CopyFS(saved, os.DirFS(c.small.data)); err != nil {
		fmt.Printf("chaos: the data of node %d could not be kept: %v\n", c.small.id, err)
	}
}
