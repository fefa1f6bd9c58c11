package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/compat/logdir"
)

// cluster is four broker processes; the first three are controllers too.
type cluster struct {
	s      settings
	nodes  []*process
	client *kgo.Client
	admin  *kadm.Client
}

type process struct {
	id    int
	dir   string
	addr  string
	ctrl  string
	cmd   *exec.Cmd
	ended chan struct{}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func startCluster(s settings) (*cluster, error) {
	c := &cluster{s: s}
	binary, err := filepath.Abs(s.binary)
	if err != nil {
		return nil, err
	}
	c.s.binary = binary
	voters := []string{}
	for id := 1; id <= 4; id++ {
		p := &process{id: id, dir: filepath.Join(s.dir, strconv.Itoa(id))}
		if p.addr, err = freePort(); err != nil {
			return nil, err
		}
		if id <= 3 {
			if p.ctrl, err = freePort(); err != nil {
				return nil, err
			}
			voters = append(voters, fmt.Sprintf("%d@%s", id, p.ctrl))
		}
		c.nodes = append(c.nodes, p)
	}
	for _, p := range c.nodes {
		if err := c.format(p, strings.Join(voters, ",")); err != nil {
			return nil, err
		}
	}
	for _, p := range c.nodes {
		if err := c.launch(p); err != nil {
			c.stop()
			return nil, err
		}
	}
	for _, p := range c.nodes {
		if err := waitOpen(p.addr, 20*time.Second); err != nil {
			c.stop()
			return nil, err
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.bootstrap(), ",")...), kgo.MetadataMinAge(20*time.Millisecond),
		kgo.DialTimeout(time.Second), kgo.RetryTimeout(10*time.Second), kgo.AlwaysRetryEOF())
	if err != nil {
		c.stop()
		return nil, err
	}
	c.client, c.admin = cl, kadm.NewClient(cl)
	return c, nil
}

func (c *cluster) format(p *process, voters string) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	roles, listeners, controller := "broker", "PLAINTEXT://"+p.addr, ""
	if p.ctrl != "" {
		roles, controller = "broker,controller", ",CONTROLLER://"+p.ctrl
	}
	text := strings.Join([]string{
		"process.roles=" + roles, "node.id=" + strconv.Itoa(p.id), "controller.quorum.voters=" + voters,
		"controller.listener.names=CONTROLLER", "listeners=" + listeners + controller,
		"advertised.listeners=" + listeners, "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs=" + filepath.Join(p.dir, "data"), "default.replication.factor=3", "min.insync.replicas=2",
		"offsets.topic.replication.factor=3", "",
	}, "\n")
	if !c.s.defaults {
		text += "broker.heartbeat.interval.ms=100\nbroker.session.timeout.ms=2000\n"
	}
	file := filepath.Join(p.dir, "server.properties")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	out, err := exec.Command(c.s.binary, "format", "--cluster-id", "AcceptanceCluster0001w", "--config", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format node %d: %w: %s", p.id, err, out)
	}
	return nil
}

func (c *cluster) launch(p *process) error {
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(c.s.binary, "serve", "--config", filepath.Join(p.dir, "server.properties"))
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		log.Close()
		return fmt.Errorf("start node %d: %w", p.id, err)
	}
	cmd, ended := p.cmd, make(chan struct{})
	p.ended = ended
	go func() { cmd.Wait(); log.Close(); close(ended) }()
	return nil
}

func waitOpen(addr string, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		nc, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			nc.Close()
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("broker at %s did not open its port within %v", addr, limit)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *cluster) bootstrap() string {
	var out []string
	for _, p := range c.nodes {
		out = append(out, p.addr)
	}
	return strings.Join(out, ",")
}

func (c *cluster) kill(id int) {
	p := c.nodes[id-1]
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// start starts a killed broker again; its port opens when it is usable.
func (c *cluster) start(id int) error {
	p := c.nodes[id-1]
	if err := c.launch(p); err != nil {
		return err
	}
	return waitOpen(p.addr, 30*time.Second)
}

func (c *cluster) stop() {
	if c.admin != nil {
		c.admin.Close()
	}
	for _, p := range c.nodes {
		if p.cmd != nil && p.cmd.Process != nil {
			p.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, p := range c.nodes {
		if p.ended == nil {
			continue
		}
		select {
		case <-p.ended:
		case <-time.After(10 * time.Second):
			p.cmd.Process.Kill()
			<-p.ended
		}
	}
}

func (c *cluster) createTopic(ctx context.Context, name string, partitions int32, rf int16) error {
	resp, err := c.admin.CreateTopic(ctx, partitions, rf, map[string]*string{"min.insync.replicas": kadm.StringPtr("2")}, name)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return resp.Err
}

func (c *cluster) details(ctx context.Context, name string) (kadm.PartitionDetails, error) {
	td, err := c.admin.ListTopics(ctx, name)
	if err != nil {
		return nil, err
	}
	return td[name].Partitions, td[name].Err
}

func (c *cluster) leader(ctx context.Context, name string, p int) (int, error) {
	ds, err := c.details(ctx, name)
	if err != nil {
		return 0, err
	}
	if ds[int32(p)].Leader < 1 {
		return 0, fmt.Errorf("partition %d has no leader", p)
	}
	return int(ds[int32(p)].Leader), nil
}

// activeController is the id of the active controller, or -1.
func (c *cluster) activeController(ctx context.Context) int32 {
	req := kmsg.NewPtrDescribeQuorumRequest()
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil || len(resp.Topics) == 0 || len(resp.Topics[0].Partitions) == 0 {
		return -1
	}
	return resp.Topics[0].Partitions[0].LeaderID
}

// waitISR waits until every partition has all its replicas in sync.
func (c *cluster) waitISR(ctx context.Context, name string, size int, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		ds, err := c.details(ctx, name)
		full := err == nil && len(ds) > 0
		for _, d := range ds {
			full = full && len(d.ISR) == size
		}
		if full {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the ISR of %s was not full within %v: %v", name, limit, ds)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// checkReplicas asks `tidemark replicas` whether some replica is out of sync.
func (c *cluster) checkReplicas(name string, down bool) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		out, err := exec.Command(c.s.binary, "replicas", "--bootstrap", c.bootstrap(), name).CombinedOutput()
		osr := strings.Count(string(out), "OSR {") > strings.Count(string(out), "OSR {}")
		if err == nil && osr == down {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("replicas shows an OSR: %v, a broker is down: %v (%v)\n%s", osr, down, err, out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// compareLogs stops the brokers and compares the replicas byte by byte.
func (c *cluster) compareLogs(ctx context.Context, name string, partitions int) error {
	c.stop()
	for p := range partitions {
		sums := map[string][]int{}
		var size int64
		for _, n := range c.nodes {
			dir := filepath.Join(n.dir, "data", fmt.Sprintf("%s-%d", name, p))
			if _, err := os.Stat(dir); err != nil {
				continue
			}
			sum, bytes, err := logdir.Sum(dir)
			if err != nil {
				return err
			}
			sums[sum] = append(sums[sum], n.id)
			size = bytes
		}
		if len(sums) != 1 {
			return fmt.Errorf("replicas of partition %d differ: %v", p, sums)
		}
		for sum, ids := range sums {
			fmt.Printf("partition %d: %d replicas byte-equal on brokers %v, %d bytes, sha256 %s\n", p, len(ids), ids, size, sum[:16])
			if len(ids) != 3 {
				return fmt.Errorf("partition %d has %d replicas on disk, not 3", p, len(ids))
			}
		}
	}
	return nil
}
