package node

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/api/preview"
	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/coordinator"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/explain"
	"github.com/tidemark-log/tidemark/internal/replicas"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// broker is the loops of a node that hosts partitions.
type broker struct {
	n         *Node
	replicas  *replicas.Loop
	lifecycle *lifecycle
	applier   *applier
	peers     *peers
	janitor   *janitor
	dirs      *directories
	api       *api.API
	data      *api.DataPath
	groups    *coordinator.Coordinator

	cancel     context.CancelFunc
	explaining *task.Group // answers to Tidemark's own requests
	tasks      *task.Group // that end with cancel
	ready      *task.Signal

	mu      sync.Mutex
	server  *transport.Server
	stopped bool
	host    string
	port    uint16
	hws     map[model.TopicPartition]model.Offset // as of the stop
}

// brokerVersions is what the broker's listener serves: Kafka's requests, with
// Tidemark's own beside them.
var brokerVersions = wire.BrokerVersions.With(wire.Range{Key: explain.APIKey})

func startBroker(n *Node) (*broker, error) {
	ctx, cancel := n.rt.WithCancel(context.Background())
	b := &broker{n: n, cancel: cancel, ready: n.rt.NewSignal(), tasks: n.rt.NewGroup(), explaining: n.rt.NewGroup()}
	b.lifecycle = newLifecycle(n.rt, n.cfg, n.source, n.log)
	b.lifecycle.cluster, b.lifecycle.directory = n.dir.ClusterID(), n.dir.ID()
	b.lifecycle.clean, b.lifecycle.listeners = n.dir.CleanShutdownEpoch(), b.advertised
	b.applier = &applier{id: n.cfg.NodeID, cfg: n.cfg, clock: n.clock, log: n.log, dir: n.dir,
		fail: b.fail, last: image.New(), strays: newStrays()}
	b.applier.img.Store(image.New())
	b.lifecycle.applied = b.applier.Followed
	b.peers = &peers{self: n.cfg.NodeID, listener: n.cfg.InterBrokerListener, image: b.applier.Image, dial: n.opts.Dial, rt: n.rt,
		limit: int(n.cfg.ReplicaFetchResponseMaxBytes) + int(n.cfg.SocketRequestMaxBytes)}
	err := b.open()
	if err == nil {
		b.replicas, err = replicas.Start(b.loopOptions())
	}
	if err != nil {
		cancel()
		return nil, err
	}
	b.applier.replicas = b.replicas
	b.groups = coordinator.New(coordinator.Options{ID: n.cfg.NodeID, Group: groupConfig(n.cfg), MaxBatch: maxGroupBatch,
		Host: groupHost{b.replicas, n.rt, b.applier.Image}, Clock: n.clock, Log: n.log, Runtime: n.rt})
	b.dirs = &directories{rt: n.rt, id: n.cfg.NodeID, own: n.dir.ID(), epoch: b.lifecycle.Epoch, send: n.source.Forward,
		limit: n.cfg.BrokerSessionTimeout, log: n.log, differ: n.rt.NewSignal()}
	b.applier.after = append(b.applier.after, b.groups.Apply, b.dirs.note)
	b.janitor = &janitor{cfg: n.cfg, clock: n.clock, dir: n.dir, replicas: b.replicas, fail: b.fail, rt: n.rt}
	b.run(ctx)
	return b, nil
}

func (b *broker) loopOptions() replicas.Options {
	n, cfg := b.n, b.n.cfg
	return replicas.Options{
		ID: cfg.NodeID, Clock: n.clock, Log: n.log, Observer: n.events, Meter: n.logMeter(), Dir: cfg.LogDir,
		LagMax: cfg.ReplicaLagTimeMax, ProducerExpiry: cfg.ProducerIDExpiration,
		Fetch: replicas.FetchOptions{Lanes: cfg.ReplicaFetchers, Wait: cfg.ReplicaFetchWaitMax, MinBytes: cfg.ReplicaFetchMinBytes, PartitionBytes: cfg.ReplicaFetchMaxBytes,
			TotalBytes: cfg.ReplicaFetchResponseMaxBytes, Backoff: cfg.ReplicaFetchBackoff, Limit: cfg.ReplicaSocketTimeout},
		Dial: b.peers.Dial, Forward: n.source.Forward, Epoch: b.lifecycle.Epoch, Fail: n.fail, Runtime: n.rt, FS: n.opts.FS,
	}
}

// fail stops the node because of its log directory. Until somebody ends the
// process, requests are told so.
func (b *broker) fail(err error) {
	b.replicas.GoOffline()
	b.n.fail(err)
}

// open takes a port that the kernel chose before it is advertised. A fixed port
// opens only when the broker is unfenced (R13.10).
func (b *broker) open() error {
	at := b.n.cfg.Advertised[0]
	b.host, b.port = at.Host, at.Port
	if b.n.opts.BrokerListener == nil && b.n.cfg.Listeners[0].Port == 0 {
		l, err := b.n.listen()
		if err != nil {
			return err
		}
		b.n.opts.BrokerListener = l
	}
	if l := b.n.opts.BrokerListener; l != nil && b.port == 0 {
		b.port = uint16(l.Addr().(*net.TCPAddr).Port)
	}
	return nil
}

func (b *broker) advertised() []config.Listener {
	out := slices.Clone(b.n.cfg.Advertised)
	out[0].Host, out[0].Port = b.host, b.port
	return out
}

func (b *broker) addr() string {
	return config.Listener{Host: b.host, Port: b.port}.Address()
}

func (b *broker) run(ctx context.Context) {
	b.tasks.Go("janitor", func() { b.janitor.run(ctx) })
	b.groups.Run()
	b.api = b.newAPI()
	b.tasks.Go("directories", func() { b.dirs.run(ctx) })
	b.tasks.Go("metadata", func() { b.follow(ctx) })
	b.tasks.Go("lifecycle", func() { b.lifecycle.run(ctx) })
	b.tasks.Go("broker", func() { b.serve(ctx) })
}

// follow has the replicas follow the metadata once it has passed our own
// registration. Before that the leaderships it tells of are those of an earlier
// life, or of another process with our id (case B228): to lead in their epochs,
// or to acknowledge records in their place, would break promises.
func (b *broker) follow(ctx context.Context) {
	stop := b.n.source.Subscribe(func(img *image.Image) { b.applier.strays.remember(img, b.n.cfg.NodeID) })
	b.n.rt.Wait(ctx, task.Forever, b.lifecycle.registered)
	stop()
	if ctx.Err() != nil {
		return
	}
	joined := int64(b.lifecycle.Epoch())
	stop = b.n.source.Subscribe(func(img *image.Image) {
		if int64(img.End()) > joined {
			b.applier.apply(img)
			b.lifecycle.soon()
		}
	})
	b.n.rt.Wait(ctx, task.Forever)
	stop()
}

// serve opens the port once the broker is unfenced and answers until stop.
func (b *broker) serve(ctx context.Context) {
	if b.n.rt.Wait(ctx, task.Forever, b.lifecycle.unfenced) == task.Ended {
		if l := b.n.opts.BrokerListener; l != nil {
			l.Close()
		}
		return
	}
	l, err := b.n.listen()
	if err != nil {
		b.n.fail(err)
		return
	}
	s := transport.NewServer(l, b.serverOptions())
	b.mu.Lock()
	b.server = s
	stopped := b.stopped
	b.mu.Unlock()
	if stopped { // stop did not see the server
		s.Close(ctx)
		return
	}
	b.ready.Close()
	if err := s.Serve(b.api); err != nil && ctx.Err() == nil {
		b.n.fail(err)
	}
}

func (b *broker) serverOptions() transport.Options {
	cfg := b.n.cfg
	o := transport.Options{
		Name: cfg.Listeners[0].Name, Versions: brokerVersions, MaxRequest: int(cfg.SocketRequestMaxBytes),
		IdleLimit: cfg.ConnectionsMaxIdle, MaxInFlight: cfg.QueuedMaxBytes,
		MaxConnections: cfg.MaxConnections, MaxConnectionsPerIP: cfg.MaxConnectionsPerIP,
		SendBuffer: cfg.SocketSendBuffer, ReceiveBuffer: cfg.SocketReceiveBuffer, Log: b.n.log,
		Runtime: b.n.rt, Preview: func(version int16) transport.Preview { return preview.New(version) },
	}
	if b.n.metrics != nil {
		o.Observer = listenerMetrics{b.n.metrics}
	}
	return o
}

// lastAnswers is how long a stop waits for answers that are on their way; long
// polls do not hold it up longer.
const lastAnswers = 500 * time.Millisecond

// stop ends the loops in the order of R8.18: requests, fetchers, purgatories,
// then the log writer. ctx bounds the wait for answers that are on their way.
func (b *broker) stop(ctx context.Context) {
	b.mu.Lock()
	s := b.server
	b.stopped = true
	b.mu.Unlock()
	b.api.Close()
	if s != nil {
		last, cancel := b.n.rt.WithTimeout(ctx, lastAnswers)
		s.Close(last)
		cancel()
	}
	b.cancel()
	b.tasks.Wait()
	b.explaining.Wait()
	b.replicas.StopFetching()
	b.groups.Close()
	b.hws = b.replicas.Close()
}
