package sim

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/node"
	"github.com/tidemark-log/tidemark/internal/sim/stage"
	"github.com/tidemark-log/tidemark/internal/storage/format"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// world is a cluster on its stage, with the clients that use it.
type world struct {
	plan    *Plan
	stage   *stage.Stage
	members []*member
	clients []*stage.Machine
	values  map[string]string // over the nodes' configuration
	log     func(m *stage.Machine) slog.Handler

	down func(m *member, how string) // told of every end of a process
	err  error                       // a node that would not start
	// mending says that the faults are over: whoever fails from now on is
	// started again.
	mending bool
	faults  map[Verb]int // carried out so far
}

// member is a node's place in the cluster.
type member struct {
	id         model.BrokerID
	broker     bool
	controller bool
	machine    *stage.Machine
	disk       diskFaults
	cfg        *config.Config

	node      *node.Node // of the process that runs; nil until it has started
	formatted bool
	stopping  bool
	empty     bool              // it may lack what it lost with its disk or power: see whole
	awake     time.Duration     // from when on it has to keep up
	clean     model.BrokerEpoch // in the file that a clean stop left, at the start of this life
}

// clusterID is the same in all worlds: nothing depends on it.
const clusterID = "c2ltdWxhdGVkLWNsdXN0ZQ"

// lagMax is how long a follower may lag.
const lagMax = 1500 * time.Millisecond

const (
	clientPort     = 9092
	controllerPort = 9093
)

// newWorld sets the machines up and formats the nodes' disks.
func newWorld(p *Plan, log func(m *stage.Machine) slog.Handler) (*world, error) {
	w := &world{plan: p, stage: stage.New(rand.New(rand.NewPCG(p.Seed, 2))), log: log, faults: map[Verb]int{},
		down: func(*member, string) {}}
	for i := range p.Nodes() {
		m := &member{id: model.BrokerID(i + 1), machine: w.stage.NewMachine(fmt.Sprintf("n%d", i+1), i+1)}
		m.broker = i < p.Brokers
		m.controller = p.Combined || !m.broker
		m.machine.Disk.Fault = m.disk.fault
		m.machine.Disk.Latency = 500 * time.Microsecond
		w.members = append(w.members, m)
	}
	for _, m := range w.members {
		var err error
		if m.cfg, err = config.New(w.valuesOf(m)); err != nil {
			return nil, err
		}
	}
	for i := range p.Workloads {
		w.clients = append(w.clients, w.stage.NewMachine(fmt.Sprintf("c%d", i+1), 101+i))
	}
	return w, nil
}

// format makes a node's directory, in its first process and in the first one
// after a disk was replaced.
func (w *world) format(m *member, p *stage.Process) error {
	if m.formatted {
		return nil
	}
	m.machine.Wipe() // a process that was killed may have begun
	if err := node.FormatOn(p.Runtime, m.machine.Disk.FS(p), m.cfg, clusterID); err != nil {
		return err
	}
	m.formatted = true
	return nil
}

// valuesOf are a node's configuration keys: everything happens soon, so that a
// few seconds see all of it.
func (w *world) valuesOf(m *member) map[string]string {
	v := map[string]string{
		"controller.listener.names": "CONTROLLER", "log.dirs": "/data", "node.id": strconv.Itoa(int(m.id)),
		"broker.heartbeat.interval.ms": "100", "broker.session.timeout.ms": "1000",
		"replica.lag.time.max.ms": strconv.FormatInt(lagMax.Milliseconds(), 10), "replica.fetch.backoff.ms": "200", "replica.fetch.wait.max.ms": "300",
		"replica.socket.timeout.ms": "2000", "num.replica.fetchers": strconv.Itoa(max(1, w.plan.Fetchers)),
		"controlled.shutdown.enable":         "true",
		"default.replication.factor":         strconv.Itoa(w.plan.Replication),
		"min.insync.replicas":                strconv.Itoa(w.plan.MinISR),
		"unclean.leader.election.enable":     strconv.FormatBool(w.plan.Unclean),
		"offsets.topic.num.partitions":       "2",
		"offsets.topic.replication.factor":   strconv.Itoa(w.plan.Replication),
		"group.initial.rebalance.delay.ms":   "0",
		"controller.quorum.append.linger.ms": "0",
		"log.segment.bytes":                  "1048576", "log.roll.ms": "900", "log.index.size.max.bytes": "4096", "log.index.interval.bytes": "512",
		"log.retention.check.interval.ms": "700", "log.segment.delete.delay.ms": "500",
		"replica.high.watermark.checkpoint.interval.ms":   "300",
		"log.flush.offset.checkpoint.interval.ms":         "900",
		"log.flush.start.offset.checkpoint.interval.ms":   "900",
		"leader.imbalance.check.interval.seconds":         "3",
		"metadata.log.max.record.bytes.between.snapshots": "8192",
		"controller.quorum.voters":                        w.voters(),
	}
	client := fmt.Sprintf("PLAINTEXT://%s:%d", m.machine.IP, clientPort)
	control := fmt.Sprintf("CONTROLLER://%s:%d", m.machine.IP, controllerPort)
	switch {
	case m.broker && m.controller:
		v["process.roles"], v["listeners"], v["advertised.listeners"] = "broker,controller", client+","+control, client
	case m.broker:
		v["process.roles"], v["listeners"], v["advertised.listeners"] = "broker", client, client
	default:
		v["process.roles"], v["listeners"] = "controller", control
	}
	if n := w.plan.Racks; n > 0 && m.broker {
		v["broker.rack"] = rackOf(int(m.id) % n)
		v["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
	}
	maps.Copy(v, w.values)
	return v
}

// rackOf names a rack.
func rackOf(n int) string { return fmt.Sprintf("rack-%d", n) }

func (w *world) voters() string {
	s := ""
	for _, m := range w.members {
		if m.controller {
			s += fmt.Sprintf(",%d@%s:%d", m.id, m.machine.IP, controllerPort)
		}
	}
	return s[1:]
}

// bootstrap are the addresses of all brokers.
func (w *world) bootstrap() []string {
	var out []string
	for _, m := range w.members {
		if m.broker {
			out = append(out, net.JoinHostPort(m.machine.IP, strconv.Itoa(clientPort)))
		}
	}
	return out
}

// start starts a node's next process.
func (w *world) start(m *member) {
	if m.machine.Running() {
		return
	}
	m.node, m.stopping, m.disk.hit = nil, false, false
	m.clean = model.UnknownBrokerEpoch
	if b := content(m.machine.Disk.Files(), "/data/.kafka_cleanshutdown"); b != nil && m.formatted {
		m.clean, _ = format.ParseCleanShutdown(b)
	}
	m.machine.Start("main", func(p *stage.Process) { w.main(m, p) })
}

// main is the program of a node's process.
func (w *world) main(m *member, p *stage.Process) {
	seed := w.stage.Rand.Uint64() | 1
	err := w.format(m, p)
	var n *node.Node
	if err == nil {
		n, err = node.Start(context.Background(), node.Options{
			Config: m.cfg, Log: slog.New(w.log(m.machine)), Runtime: p.Runtime, FS: m.machine.Disk.FS(p), Seed: seed,
			Listen: p.Listen, Dial: p.Dial,
		})
	}
	if err != nil {
		if !m.disk.hit && w.err == nil {
			w.err = fmt.Errorf("node %d does not start: %w", m.id, err)
		}
		w.exit(m, p, fails)
		return
	}
	m.node = n
	p.Runtime.Wait(nil, -1, n.FailedSignal())
	if !m.disk.hit && w.err == nil {
		w.err = fmt.Errorf("node %d fails: %w", m.id, n.Err())
	}
	w.exit(m, p, fails)
}

// How a process ended, for traces and checkers.
const (
	fails  = "fails"
	stops  = "stops"
	killed = "is killed"
	cutOff = "loses power"
	wiped  = "gets an empty disk"
	rotted = "has a rotten disk"
)

// exit ends the process that calls it, once it has returned.
func (w *world) exit(m *member, p *stage.Process, how string) {
	w.stage.After(time.Millisecond, func() {
		if m.machine.Process() != p || !p.Alive() {
			return
		}
		w.end(m, how)
		if w.mending {
			w.stage.After(100*time.Millisecond, func() { w.start(m) })
		}
	})
}

// end ends a node's process, if there is one, as SIGKILL does.
func (w *world) end(m *member, how string) {
	if !m.machine.Running() {
		return
	}
	w.stage.Note(m.machine.Name, "%s", how)
	m.machine.Kill()
	m.node, m.stopping = nil, false
	w.down(m, how)
}

// shutdown has a node leave in an orderly way.
func (w *world) shutdown(m *member) {
	n, p := m.node, m.machine.Process()
	if n == nil || m.stopping || !m.machine.Running() {
		return
	}
	m.stopping = true
	p.Go("shutdown", func() {
		ctx, cancel := p.Runtime.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := n.Shutdown(ctx); err != nil && !m.disk.hit && w.err == nil {
			w.err = fmt.Errorf("node %d does not shut down: %w", m.id, err)
		}
		w.exit(m, p, stops)
	})
}

// diskFaults are what is wrong with a node's disk.
type diskFaults struct {
	full   bool
	unsync bool
	unread int64
	hit    bool // an error was returned since the process started: that is why it fails
}

func (d *diskFaults) fault(op vfs.Op) error {
	switch {
	case d.full && (op.Kind == vfs.OpWrite || op.Kind == vfs.OpCreate || op.Kind == vfs.OpMkdir):
		d.hit = true
		return errFull
	case d.unsync && (op.Kind == vfs.OpSync || op.Kind == vfs.OpSyncDir):
		d.hit = true
		return errSync
	case d.unread > 0 && op.Kind == vfs.OpRead:
		d.unread--
		d.hit = true
		return errRead
	}
	return nil
}
