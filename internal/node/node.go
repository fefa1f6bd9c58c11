// Package node is one process of a cluster: it wires the loops of a broker, a
// controller or both to their files and sockets.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"path"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/metrics"
	"github.com/tidemark-log/tidemark/internal/replicas"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// Options says what a node runs with.
type Options struct {
	Config *config.Config
	Log    *slog.Logger // default: discarded
	// Runtime runs the loops and tells the time; nil: goroutines and the
	// machine's clock.
	Runtime *task.Runtime
	FS      vfs.FS // of the log directory; nil: vfs.OS
	Seed    uint64 // of all random choices; 0: from the time
	// BrokerListener and ControllerListener are sockets that the caller opened,
	// for ports that the kernel chose; nil opens what Config says.
	BrokerListener     net.Listener
	ControllerListener net.Listener
	// Listen opens a socket on HOST:PORT; nil is TCP.
	Listen func(addr string) (net.Listener, error)
	// Dial replaces the TCP dialer between nodes.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Events is told what the cores decided; nil is fine.
	Events replicas.Observer
}

// Node is a running process of a cluster.
type Node struct {
	opts   Options
	cfg    *config.Config
	log    *slog.Logger
	rt     *task.Runtime
	clock  replicas.Clock
	dir    *storage.Dir
	source controlplane.Source

	broker *broker         // nil on a controller alone
	http   *metrics.Server // nil unless tidemark.http.listen is set

	metrics *metrics.Registry // nil unless tidemark.http.listen is set
	events  *events

	failOnce sync.Once
	failed   *task.Signal
	err      error
	ending   atomic.Bool
	ended    *task.Signal
	stopErr  error
	stopping *task.Signal
	watching *task.Group
}

// Start recovers the log directory and starts the node. It returns before the
// broker is usable: see Ready. The listeners are the node's from here on; an
// error closes them.
func Start(ctx context.Context, o Options) (*Node, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Events == nil {
		o.Events = silent{}
	}
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.Listen == nil {
		o.Listen = func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	rt := o.Runtime
	n := &Node{opts: o, cfg: o.Config, rt: rt, clock: newSystemClock(rt),
		failed: rt.NewSignal(), ended: rt.NewSignal(), stopping: rt.NewSignal(), watching: rt.NewGroup()}
	n.log = o.Log.With("node", int32(n.cfg.NodeID))
	if n.cfg.HTTPListen != "" {
		n.metrics = metrics.New()
	}
	n.events = &events{log: n.log, metrics: n.metrics, next: o.Events}
	if err := n.start(ctx); err != nil {
		n.abandon()
		for _, l := range []net.Listener{o.BrokerListener, o.ControllerListener} {
			if l != nil {
				l.Close()
			}
		}
		return nil, err
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	var err error
	if n.dir, err = n.openDir(); err != nil {
		return err
	}
	if n.source, err = n.startSource(ctx); err != nil {
		return err
	}
	if n.cfg.Broker {
		if n.broker, err = startBroker(n); err != nil {
			return err
		}
	}
	n.watching.Go("watch", n.watch)
	return n.startHTTP()
}

// watch fails the node when what it stands on fails: its log directory, for a
// reader may find that first, or its metadata.
func (n *Node) watch() {
	switch n.rt.Wait(nil, task.Forever, n.stopping, n.dir.FailedSignal(), n.source.DoneSignal()) {
	case 1:
		if n.broker != nil {
			n.broker.fail(n.dir.Err())
			return
		}
		n.fail(n.dir.Err())
	case 2:
		if err := n.source.Err(); err != nil {
			n.fail(fmt.Errorf("metadata: %w", err))
		}
	}
}

// openDir opens the log directory of a formatted node.
func (n *Node) openDir() (*storage.Dir, error) {
	cfg := n.cfg
	file := path.Join(cfg.LogDir, "meta.properties")
	raw, err := readFile(n.opts.FS, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not formatted: run tidemark format --cluster-id ID --config FILE first", cfg.LogDir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read (%w): let this user read it, or name another log.dirs", cfg.LogDir, err)
	}
	meta, err := storage.ParseMeta(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defaults := cfg.BrokerDefaults(config.Dynamic{})
	d, err := storage.OpenDir(n.opts.FS, cfg.LogDir, storage.DirOptions{Runtime: n.rt,
		ClusterID: meta.ClusterID, NodeID: cfg.NodeID, Log: n.log, Now: n.clock.Wall, Workers: cfg.RecoveryThreads,
		Config: func(model.TopicPartition) storage.LogConfig {
			return logConfig(config.TopicConfig(defaults, nil))
		},
	})
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("%s is in use by another process: stop that one, or name another log.dirs", cfg.LogDir)
	}
	return d, err
}

func readFile(files vfs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	raw := make([]byte, size)
	if _, err := f.ReadAt(raw, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return raw, nil
}

// startSource starts the controller of a node that has one, else an observer.
func (n *Node) startSource(ctx context.Context) (controlplane.Source, error) {
	voters := make([]controlplane.Voter, 0, len(n.cfg.QuorumVoters))
	for _, v := range n.cfg.QuorumVoters {
		voters = append(voters, controlplane.Voter{ID: v.ID, Host: v.Host, Port: v.Port})
	}
	if !n.cfg.Controller {
		var bootstrap []string
		for _, e := range n.cfg.QuorumBootstrap {
			bootstrap = append(bootstrap, net.JoinHostPort(e.Host, fmt.Sprint(e.Port)))
		}
		o, err := controlplane.StartObserver(ctx, controlplane.ObserverOptions{
			NodeID: n.cfg.NodeID, ClusterID: n.dir.ClusterID(), DirectoryID: n.dir.ID(), Dir: n.cfg.MetadataDir(),
			Voters: voters, Bootstrap: bootstrap, FetchTimeout: n.cfg.QuorumFetchTimeout,
			SnapshotBytes: n.cfg.MetadataSnapshotBytes, Dial: n.opts.Dial, Log: n.log,
			FS: n.opts.FS, Runtime: n.rt, Seed: n.opts.Seed,
		})
		if err != nil {
			return nil, err // and not an interface that holds a nil pointer
		}
		return o, nil
	}
	return n.startController(ctx, voters)
}

func (n *Node) startController(ctx context.Context, voters []controlplane.Voter) (controlplane.Source, error) {
	l := n.opts.ControllerListener
	at := n.cfg.ControllerListeners[0]
	if l == nil {
		var err error
		if l, err = n.opts.Listen(at.Address()); err != nil {
			return nil, fmt.Errorf("cannot listen on %s (%w): stop what uses the port, or change listeners", at, err)
		}
	}
	adv := n.cfg.ControllerAdvertised[0]
	if adv.Port == 0 {
		adv.Port = uint16(l.Addr().(*net.TCPAddr).Port)
	}
	c, err := controlplane.Start(ctx, controlplane.Options{
		NodeID: n.cfg.NodeID, ClusterID: n.dir.ClusterID(), DirectoryID: n.dir.ID(), Dir: n.cfg.MetadataDir(),
		Voters: voters, Listener: l, ListenerName: n.cfg.ControllerListenerNames[0], Host: adv.Host, Port: adv.Port,
		Core: controllerConfig(n.cfg), SnapshotBytes: n.cfg.MetadataSnapshotBytes, Dial: n.opts.Dial, Log: n.log,
		FS: n.opts.FS, Runtime: n.rt, Seed: n.opts.Seed,
	})
	if err != nil {
		l.Close()
		return nil, err
	}
	return c, nil
}

// Ready is closed once the broker is unfenced and its port is open (R13.10); at
// once on a controller alone.
func (n *Node) Ready() <-chan struct{} { return n.ReadySignal().C() }

// ReadySignal is Ready for tasks.
func (n *Node) ReadySignal() *task.Signal {
	if n.broker == nil {
		s := n.rt.NewSignal()
		s.Close()
		return s
	}
	return n.broker.ready
}

// Failed is closed when the node cannot go on; Err says why.
func (n *Node) Failed() <-chan struct{} { return n.failed.C() }

// FailedSignal is Failed for tasks.
func (n *Node) FailedSignal() *task.Signal { return n.failed }

// Err is why Failed was closed.
func (n *Node) Err() error {
	if !n.failed.Closed() {
		return nil
	}
	return n.err
}

// Addr is the address of the broker's listener; empty on a controller alone.
func (n *Node) Addr() string {
	if n.broker == nil {
		return ""
	}
	return n.broker.addr()
}

// ID is the node's id.
func (n *Node) ID() model.BrokerID { return n.cfg.NodeID }

// Image is the newest committed metadata image that this node knows.
func (n *Node) Image() *image.Image { return n.source.Image() }

// Active is the active controller as this node knows it.
func (n *Node) Active() (model.BrokerID, model.Epoch) { return n.source.Active() }

// Beats is Controller.Beats, on a node that is one.
func (n *Node) Beats(visit func(controlplane.Beat)) {
	if c, ok := n.source.(*controlplane.Controller); ok {
		c.Beats(visit)
	}
}

// Views describes every replica hosted here, sorted by partition.
func (n *Node) Views() []replicas.View {
	if n.broker == nil {
		return nil
	}
	return n.broker.replicas.Views(nil)
}

// Forward has the active controller answer req.
func (n *Node) Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return n.source.Forward(ctx, req)
}

// fail stops the node for good: a failed write is never retried into silence.
func (n *Node) fail(err error) {
	n.failOnce.Do(func() {
		n.err = err
		n.log.Error("node fails", "error", err)
		n.failed.Close()
	})
}

// Shutdown leaves the cluster in an orderly way (R8.18): leaderships are moved
// first, as long as ctx lasts, then everything is stopped and synced.
func (n *Node) Shutdown(ctx context.Context) error {
	return n.end(func() error { return n.shutdown(ctx) })
}

// end runs stop if nothing else has ended the node; who comes later waits.
func (n *Node) end(stop func() error) error {
	if n.ending.CompareAndSwap(false, true) {
		n.stopErr = stop()
		n.ended.Close()
	} else {
		n.rt.Wait(nil, task.Forever, n.ended)
	}
	return n.stopErr
}

func (n *Node) shutdown(ctx context.Context) error {
	n.stopHTTP(ctx)
	n.stopWatch()
	if n.broker != nil {
		if n.cfg.ControlledShutdown {
			n.broker.lifecycle.shutdown(ctx)
		}
		n.broker.stop(ctx)
	}
	err := n.source.Close()
	epoch := model.UnknownBrokerEpoch
	if n.broker != nil {
		if herr := n.dir.CheckpointHW(n.broker.hws); herr != nil {
			err = errors.Join(err, herr)
		}
		epoch = n.broker.lifecycle.Epoch()
	}
	return errors.Join(err, n.dir.CloseClean(epoch))
}

// Kill stops the node as SIGKILL would: nothing is synced or told to anybody.
func (n *Node) Kill() {
	n.end(func() error {
		n.abandon()
		return errors.New("the node was killed")
	})
}

func (n *Node) stopWatch() {
	n.stopping.Close()
	n.watching.Wait()
}

// abandon ends every task and releases every file.
func (n *Node) abandon() {
	n.stopHTTP(context.Background())
	n.stopWatch()
	if n.broker != nil {
		ctx, cancel := n.rt.WithCancel(context.Background())
		cancel()
		n.broker.stop(ctx)
	}
	if n.source != nil {
		n.source.Close()
	}
	if n.dir != nil {
		n.dir.Close()
	}
}

// silent is the Observer of a node that nobody watches.
type silent struct{}

func (silent) Reasons(model.TopicPartition, []partition.Reason) {}
func (silent) Cut(model.TopicPartition, partition.Cut)          {}

// listen opens the broker's port; the server takes over a listener that the
// caller opened.
func (n *Node) listen() (net.Listener, error) {
	if n.opts.BrokerListener != nil {
		return n.opts.BrokerListener, nil
	}
	at := n.cfg.Listeners[0]
	l, err := n.opts.Listen(at.Address())
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s (%w): stop what uses the port, or change listeners", at, err)
	}
	return l, nil
}
