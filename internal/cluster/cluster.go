// Package cluster runs several nodes of a cluster in one process.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/node"
	"github.com/tidemark-log/tidemark/internal/replicas"
)

// Options says what cluster to run. Zero values take the defaults named here.
type Options struct {
	Nodes int    // combined nodes, 1 to n (3)
	Dir   string // state of all nodes; made when missing
	// Port is where node 1 listens for clients, node i at Port+i-1. 0 leaves
	// every port to the kernel.
	Port int
	// Set lays Kafka's keys over the defaults of Values.
	Set map[string]string
	// Racks, if not empty, names the rack of each node.
	Racks []string
	// Faults puts gates in front of every connection, for Pause and Cut. They
	// cost some speed.
	Faults bool
	// Memory puts the network into memory, for a test's fake clock: clients dial
	// with Cluster.Dial.
	Memory bool
	// Delay is how long a byte is under way on a network in memory.
	Delay  time.Duration
	Log    *slog.Logger
	Events replicas.Observer
	// Ended, if not nil, is told of a node that could not go on, by a disk that
	// failed say, and was killed for it. It is called from a goroutine of the node.
	Ended func(id int, why error)
}

// Cluster is a set of combined nodes in this process.
type Cluster struct {
	opts  Options
	net   *network
	mu    sync.Mutex
	nodes []*member
	// watching are those that wait for a node to fail or to be gone.
	watching sync.WaitGroup
}

// member is one node's place in the cluster; its process may be down.
type member struct {
	id         model.BrokerID
	dir        string
	values     map[string]string
	clientAddr string // fixed over restarts
	ctrlAddr   string
	node       *node.Node
	gone       chan struct{} // closed when node is taken out
}

// Values are the keys of a small cluster that shall notice things soon: the
// heartbeat, session and lag of `tidemark dev`.
func Values(nodes int) map[string]string {
	rf := strconv.Itoa(min(nodes, 3))
	return map[string]string{
		"process.roles":                            "broker,controller",
		"controller.listener.names":                "CONTROLLER",
		"broker.heartbeat.interval.ms":             "100",
		"broker.session.timeout.ms":                "2000",
		"default.replication.factor":               rf,
		"offsets.topic.replication.factor":         rf,
		"offsets.topic.num.partitions":             "8",
		"transaction.state.log.replication.factor": rf,
		"min.insync.replicas":                      strconv.Itoa(min(nodes, 2)),
		"group.initial.rebalance.delay.ms":         "0",
		"replica.fetch.backoff.ms":                 "200",
		"controller.quorum.append.linger.ms":       "0",
	}
}

// Start formats what is new in o.Dir, starts every node and waits until all of
// them serve clients.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Cluster{opts: o, net: newNetwork(o.Memory, o.Delay)}
	listeners, err := c.layOut()
	if err != nil {
		return nil, err
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range c.nodes {
		g.Go(func() error { return c.boot(gctx, m, listeners[i]) })
	}
	if err := g.Wait(); err != nil {
		c.Close(context.Background())
		return nil, err
	}
	return c, nil
}

// sockets are the open ports of one node.
type sockets struct{ client, ctrl net.Listener }

func (s sockets) close() {
	for _, l := range []net.Listener{s.client, s.ctrl} {
		if l != nil {
			l.Close()
		}
	}
}

// layOut opens the ports, writes the configurations and formats new
// directories.
func (c *Cluster) layOut() (all []sockets, err error) {
	defer func() {
		if err != nil {
			for _, s := range all {
				s.close()
			}
		}
	}()
	for i := range c.opts.Nodes {
		port := 0
		if c.opts.Port != 0 {
			port = c.opts.Port + i
		}
		s, err := c.open(port)
		if err != nil {
			return all, err
		}
		all = append(all, s)
		c.nodes = append(c.nodes, &member{id: nodeID(i), clientAddr: s.client.Addr().String(),
			ctrlAddr: s.ctrl.Addr().String(), dir: dataDir(c.opts.Dir, i)})
	}
	for i, m := range c.nodes {
		m.values = c.valuesOf(i)
		c.net.place(m.id, m.clientAddr, m.ctrlAddr)
	}
	return all, c.format()
}

// dataDir is where node i keeps its state, whether or not it has a process of
// its own: a cluster may be started again the other way.
func dataDir(dir string, i int) string { return filepath.Join(dir, strconv.Itoa(i+1), "data") }

func (c *Cluster) open(port int) (sockets, error) {
	client, err := c.net.listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return sockets{}, fmt.Errorf("cannot listen on port %d: choose another with --port (%w)", port, err)
	}
	ctrl, err := c.net.listen("127.0.0.1:0")
	if err != nil {
		client.Close()
		return sockets{}, fmt.Errorf("open a controller port: %w", err)
	}
	return sockets{client, ctrl}, nil
}

// valuesOf are the configuration keys of node i.
func (c *Cluster) valuesOf(i int) map[string]string {
	v := Values(c.opts.Nodes)
	m := c.nodes[i]
	voters := ""
	for j, p := range c.nodes {
		if j > 0 {
			voters += ","
		}
		voters += fmt.Sprintf("%d@%s", p.id, p.ctrlAddr)
	}
	v["node.id"] = strconv.Itoa(i + 1)
	v["controller.quorum.voters"] = voters
	v["listeners"] = "PLAINTEXT://" + m.clientAddr + ",CONTROLLER://" + m.ctrlAddr
	v["advertised.listeners"] = "PLAINTEXT://" + m.clientAddr
	v["log.dirs"] = m.dir
	if len(c.opts.Racks) > i {
		v["broker.rack"] = c.opts.Racks[i]
	}
	for k, x := range c.opts.Set {
		v[k] = x
	}
	return v
}

// format makes the directories of a new cluster; one that was formatted before
// keeps its id.
func (c *Cluster) format() error {
	var id model.UUID
	rand.Read(id[:])
	cluster := id.String()
	var fresh []*config.Config
	for _, m := range c.nodes {
		cfg, err := config.New(m.values)
		if err != nil {
			return err
		}
		if !controlplane.Formatted(cfg.MetadataDir()) {
			fresh = append(fresh, cfg)
		}
	}
	if old := len(c.nodes) - len(fresh); old > 0 && len(fresh) > 0 {
		return fmt.Errorf("%s holds a cluster of %d nodes, not of %d: ask for %d, or name another directory", c.opts.Dir, old, len(c.nodes), old)
	}
	for _, cfg := range fresh {
		if err := node.Format(cfg, cluster); err != nil {
			return err
		}
	}
	return nil
}

// boot starts one node and waits until it serves.
func (c *Cluster) boot(ctx context.Context, m *member, s sockets) error {
	cfg, err := config.New(m.values)
	if err != nil {
		s.close()
		return err
	}
	o := node.Options{Config: cfg, Log: c.opts.Log, Events: c.opts.Events,
		BrokerListener: s.client, ControllerListener: s.ctrl}
	if c.opts.Faults || c.opts.Memory {
		o.BrokerListener, o.ControllerListener = c.net.wrap(m.id, s.client), c.net.wrap(m.id, s.ctrl)
		o.Dial = c.net.dialer(m.id)
	}
	n, err := node.Start(ctx, o)
	if err != nil {
		return fmt.Errorf("start node %d: %w", m.id, err)
	}
	gone := make(chan struct{})
	c.mu.Lock()
	m.node, m.gone = n, gone
	c.mu.Unlock()
	select {
	case <-n.Ready():
		c.watching.Go(func() { c.watch(int(m.id), n, gone) })
		return nil
	case <-n.Failed():
		return fmt.Errorf("node %d: %w", m.id, n.Err())
	case <-ctx.Done():
		return fmt.Errorf("node %d did not become ready: %w", m.id, ctx.Err())
	}
}

// Addrs are the client addresses of all nodes, in order of their ids.
func (c *Cluster) Addrs() []string {
	var out []string
	for _, m := range c.nodes {
		out = append(out, m.clientAddr)
	}
	return out
}

// Dial connects to a node as a client does.
func (c *Cluster) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return c.net.dial(ctx, addr)
}

// Node returns a running node, or nil.
func (c *Cluster) Node(id int) *node.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id < 1 || id > len(c.nodes) {
		return nil
	}
	return c.nodes[id-1].node
}

// Len is the number of nodes, running or not.
func (c *Cluster) Len() int { return len(c.nodes) }

// take removes a node from its place, if it is there; only that one, unless only is nil.
func (c *Cluster) take(id int, only *node.Node) (*node.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id < 1 || id > len(c.nodes) {
		return nil, c.unknown(id)
	}
	m := c.nodes[id-1]
	n := m.node
	if n == nil || only != nil && n != only {
		return nil, fmt.Errorf("node %d is not running", id)
	}
	m.node = nil
	close(m.gone)
	return n, nil
}

// watch kills a node that cannot go on, as its process would end: the others take
// over what it led.
func (c *Cluster) watch(id int, n *node.Node, gone <-chan struct{}) {
	select {
	case <-gone:
		return
	case <-n.Failed():
	}
	if c.kill(id, n) == nil && c.opts.Ended != nil {
		c.opts.Ended(id, n.Err())
	}
}

// down finds a node that is not running.
func (c *Cluster) down(id int) (*member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id < 1 || id > len(c.nodes) {
		return nil, c.unknown(id)
	}
	if c.nodes[id-1].node != nil {
		return nil, fmt.Errorf("node %d is running", id)
	}
	return c.nodes[id-1], nil
}

func (c *Cluster) unknown(id int) error {
	return fmt.Errorf("there is no node %d: ids run from 1 to %d", id, len(c.nodes))
}

// Kill ends a node as SIGKILL would.
func (c *Cluster) Kill(id int) error { return c.kill(id, nil) }

func (c *Cluster) kill(id int, only *node.Node) error {
	n, err := c.take(id, only)
	if err != nil {
		return err
	}
	c.net.cutOff(model.BrokerID(id))
	n.Kill()
	return nil
}

// Stop ends a node in an orderly way, within ctx.
func (c *Cluster) Stop(ctx context.Context, id int) error {
	n, err := c.take(id, nil)
	if err != nil {
		return err
	}
	return n.Shutdown(ctx)
}

// Restart starts a node that is down on its old directory and ports, and waits
// until it serves.
func (c *Cluster) Restart(ctx context.Context, id int) error {
	m, err := c.down(id)
	if err != nil {
		return err
	}
	var s sockets
	if s.client, err = c.listenAgain(m.clientAddr); err != nil {
		return err
	}
	if s.ctrl, err = c.listenAgain(m.ctrlAddr); err != nil {
		s.close()
		return err
	}
	c.net.revive(m.id)
	return c.boot(ctx, m, s)
}

func (c *Cluster) listenAgain(addr string) (net.Listener, error) {
	l, err := c.net.listen(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s again: %w", addr, err)
	}
	return l, nil
}

// Pause holds every byte of a node, as SIGSTOP would; Resume lets them go.
func (c *Cluster) Pause(id int) { c.net.pause(model.BrokerID(id), true) }

// Resume ends a Pause.
func (c *Cluster) Resume(id int) { c.net.pause(model.BrokerID(id), false) }

// Cut holds every byte between two nodes, both ways, until Heal.
func (c *Cluster) Cut(a, b int) { c.net.cut(model.BrokerID(a), model.BrokerID(b), true) }

// Heal ends a Cut.
func (c *Cluster) Heal(a, b int) { c.net.cut(model.BrokerID(a), model.BrokerID(b), false) }

// Asked is how many requests one node has sent to the client port of another,
// since the start. It counts only behind gates.
func (c *Cluster) Asked(from, to int) int64 {
	return c.net.asks(model.BrokerID(from), model.BrokerID(to)).Load()
}

// Dir is the directory of a node, running or not.
func (c *Cluster) Dir(id int) string { return c.nodes[id-1].dir }

// Close stops all nodes in an orderly way as long as ctx lasts. A cluster that
// goes down whole has nobody to move leaderships to, so each node has a second.
func (c *Cluster) Close(ctx context.Context) error {
	defer c.watching.Wait()
	var g errgroup.Group
	for i := range c.nodes {
		if n, err := c.take(i+1, nil); err == nil {
			g.Go(func() error {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return n.Shutdown(ctx)
			})
		}
	}
	return g.Wait()
}

// Abandon kills all nodes; their directories are going to be removed.
func (c *Cluster) Abandon() {
	var g sync.WaitGroup
	for i := range c.nodes {
		g.Go(func() { c.Kill(i + 1) }) // or it is down
	}
	g.Wait()
	c.watching.Wait()
}

// TempDir makes a throwaway directory, in memory where the machine has one.
func TempDir() (string, error) {
	dir, err := os.MkdirTemp("", "tidemark-")
	if err != nil {
		return "", errors.Join(errors.New("cannot make a throwaway directory; name one with --dir"), err)
	}
	return dir, nil
}

func nodeID(i int) model.BrokerID { return model.BrokerID(i + 1) }
