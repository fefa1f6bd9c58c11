package node

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/coordinator"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/explain"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// broker is the loops of a node that hosts partitions.
type broker struct {
	n         *Node
	replicas  *replicas
	writer    *logWriter
	isr       *isrSender
	lifecycle *lifecycle
	applier   *applier
	peers     *peers
	janitor   *janitor
	api       *api.API
	data      *api.DataPath
	groups    *coordinator.Coordinator

	cancel      context.CancelFunc
	fetchers    sync.WaitGroup
	unsubscribe func()
	serving     chan struct{} // closed when the server goroutine ended
	ready       chan struct{}

	mu      sync.Mutex
	server  *transport.Server
	stopped bool
	host    string
	port    uint16
	hws     map[model.TopicPartition]model.Offset
}

// brokerVersions is what the broker's listener serves: Kafka's requests, with
// Tidemark's own beside them.
var brokerVersions = wire.BrokerVersions.With(wire.Range{Key: explain.APIKey})

func startBroker(n *Node) (*broker, error) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &broker{n: n, cancel: cancel, ready: make(chan struct{}), serving: make(chan struct{})}
	b.lifecycle = newLifecycle(n.cfg, n.source, n.log)
	b.lifecycle.cluster, b.lifecycle.directory = n.dir.ClusterID(), n.dir.ID()
	b.lifecycle.clean, b.lifecycle.listeners = n.dir.CleanShutdownEpoch(), b.advertised
	b.replicas = newReplicas(n.cfg.NodeID, n.clock, n.log, replicaConfig{
		lagMax: n.cfg.ReplicaLagTimeMax, producerExpiry: n.cfg.ProducerIDExpiration,
		fetchBackoff: n.cfg.ReplicaFetchBackoff, fetchMaxBytes: n.cfg.ReplicaFetchMaxBytes, rackAware: n.cfg.RackAwareReads,
	})
	b.replicas.events = n.events
	var err error
	if b.replicas.cuts, err = openCuts(n.cfg.LogDir); err != nil {
		cancel()
		return nil, err
	}
	b.writer = newLogWriter(n.clock, func(rs reports) { b.replicas.inbox.post(rs) }, b.fail)
	b.isr = &isrSender{id: n.cfg.NodeID, forward: n.source.Forward, epoch: b.lifecycle.Epoch,
		tell:  func(as isrAnswers) bool { return b.replicas.inbox.post(as) },
		inbox: newMailbox[proposal](), done: make(chan struct{})}
	b.replicas.writer, b.replicas.isr = b.writer, b.isr
	b.applier = &applier{id: n.cfg.NodeID, cfg: n.cfg, clock: n.clock, log: n.log, dir: n.dir, writer: b.writer,
		replicas: b.replicas, epoch: b.lifecycle.Epoch, fail: b.fail, last: image.New()}
	b.applier.img.Store(image.New())
	b.lifecycle.applied = b.applier.Followed
	b.peers = &peers{self: n.cfg.NodeID, listener: n.cfg.InterBrokerListener, image: b.applier.Image, dial: n.opts.Dial,
		limit: int(n.cfg.ReplicaFetchResponseMaxBytes) + int(n.cfg.SocketRequestMaxBytes)}
	b.groups = coordinator.New(coordinator.Options{ID: n.cfg.NodeID, Group: groupConfig(n.cfg), MaxBatch: maxGroupBatch,
		Host: groupHost{b.replicas}, Clock: n.clock, Log: n.log})
	b.applier.after = append(b.applier.after, b.groups.Apply)
	b.replicas.startFn = func(s *source) { b.startFetcher(ctx, s) }
	b.janitor = &janitor{cfg: n.cfg, clock: n.clock, dir: n.dir, writer: b.writer, replicas: b.replicas,
		fail: b.fail, done: make(chan struct{})}
	if err := b.open(); err != nil {
		cancel()
		return nil, err
	}
	b.run(ctx)
	return b, nil
}

// fail stops the node because of its log directory. Until somebody ends the
// process, requests are told so.
func (b *broker) fail(err error) {
	b.replicas.inbox.post(offline{})
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
	go b.replicas.run()
	go b.writer.run()
	go b.isr.run(ctx)
	go b.janitor.run(ctx)
	b.groups.Run()
	b.api = b.newAPI()
	b.unsubscribe = b.n.source.Subscribe(func(img *image.Image) {
		b.applier.apply(img)
		if int64(img.End()) > int64(b.lifecycle.Epoch()) {
			b.lifecycle.soon()
		}
	})
	go b.lifecycle.run(ctx)
	go b.serve(ctx)
}

// serve opens the port once the broker is unfenced and answers until stop.
func (b *broker) serve(ctx context.Context) {
	defer close(b.serving)
	select {
	case <-b.lifecycle.unfenced:
	case <-ctx.Done():
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
	close(b.ready)
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
	}
	if b.n.metrics != nil {
		o.Observer = listenerMetrics{b.n.metrics}
	}
	return o
}

func (b *broker) startFetcher(ctx context.Context, s *source) {
	cfg := b.n.cfg
	f := &fetcher{s: s, dial: b.peers.Dial, epoch: b.lifecycle.Epoch, log: b.n.log,
		tell: func(e event) bool { return b.replicas.inbox.post(e) },
		cfg: fetcherConfig{
			id: cfg.NodeID, waitMs: int32(cfg.ReplicaFetchWaitMax.Milliseconds()), minBytes: cfg.ReplicaFetchMinBytes,
			maxBytes: cfg.ReplicaFetchMaxBytes, totalBytes: cfg.ReplicaFetchResponseMaxBytes,
			backoff: cfg.ReplicaFetchBackoff, socketLimit: cfg.ReplicaSocketTimeout,
		}}
	b.fetchers.Add(1)
	go func() { defer b.fetchers.Done(); f.run(ctx) }()
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
		last, cancel := context.WithTimeout(ctx, lastAnswers)
		s.Close(last)
		cancel()
	}
	b.cancel()
	<-b.serving
	b.unsubscribe()
	<-b.lifecycle.done
	<-b.janitor.done
	b.replicas.do(func(l *replicas) { l.startFn = func(*source) {} })
	b.fetchers.Wait()
	<-b.isr.done
	b.groups.Close()
	b.replicas.do(func(l *replicas) {
		b.hws = map[model.TopicPartition]model.Offset{}
		for _, r := range l.all {
			b.hws[r.tp()] = r.p.Marks().HW
			l.step(r, &partition.Stop{Err: model.ErrNotLeaderOrFollower})
			l.release(r)
		}
		l.wakeAll()
	})
	b.writer.close()
	b.replicas.close()
}

func (b *broker) highWatermarks() map[model.TopicPartition]model.Offset { return b.hws }

// ReplicaView is one replica for people.
type ReplicaView struct {
	TP   model.TopicPartition
	View partition.View
	// Serving says that a leader takes requests: its epoch is safe on disk.
	Serving bool
	Cuts    []cutLine
	// Now is the loop's clock, which the times in View are readings of.
	Now model.Time
}

// views describes the replicas of these topics, or of all.
func (b *broker) views(topics []string) []ReplicaView {
	var out []ReplicaView
	b.replicas.do(func(l *replicas) {
		for _, r := range l.all {
			if len(topics) > 0 && !slices.Contains(topics, r.tp().Topic) {
				continue
			}
			out = append(out, ReplicaView{TP: r.tp(), View: r.p.View(), Serving: r.p.Serving(), Cuts: slices.Clone(r.cuts), Now: l.now})
		}
	})
	slices.SortFunc(out, func(x, y ReplicaView) int { return x.TP.Compare(y.TP) })
	return out
}
