package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/vfs"
	"github.com/tidemark-log/tidemark/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clusterID = "AAAAAAAAAAAAAAAAAAAAAQ"
	wall      = model.Millis(1_700_000_000_000)
)

// world is broker 1 of three: a real controller core, real logs on a disk in
// memory, real partitions, behind a real listener. One mutex stands for the
// loops that a node has.
type world struct {
	t      *testing.T
	api    *API
	client *transport.Client
	server *transport.Server
	addr   string
	level  slog.LevelVar

	mu    sync.Mutex
	ctl   *controller.State
	next  model.Offset
	down  error // what Forward returns instead of an answer
	dir   *storage.Dir
	hosts map[model.TopicIDPartition]*Hosted
	peers partition.Peers
	// active is the active controller, broker 2 at first.
	active model.BrokerID
	held   chan *Produce // takes produce requests that are stored and wait for others; nil: none waits
}

func newWorld(t *testing.T, settings map[string]string) *world {
	t.Helper()
	w := worldOf(t, testConfig(t, settings))
	w.serve()
	return w
}

// worldOf makes a world that listens nowhere.
func worldOf(t *testing.T, cfg *config.Config) *world {
	t.Helper()
	w := &world{t: t, active: 2, hosts: map[model.TopicIDPartition]*Hosted{}, peers: partition.Peers{}}
	w.startController(cfg)
	dir, err := storage.OpenDir(vfs.NewMem(), "/data", storage.DirOptions{ClusterID: clusterID, NodeID: 1, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	w.dir = dir
	t.Cleanup(func() { w.dir.Close() })
	w.api = New(Options{
		ID: 1, ClusterID: clusterID, Config: cfg,
		Features: []image.FeatureRange{{Name: "group.version", Min: 0, Max: 1}, {Name: "metadata.version", Min: 7, Max: 25}},
		Images:   w, Controller: w, Queries: w, Coordinator: groupEcho{}, Data: w.dataPath(cfg),
		LogDir: func() LogDir {
			return LogDir{Path: "/data", Total: 1000, Usable: 400, Logs: w.dir.Logs()}
		},
		Epoch:   func() model.BrokerEpoch { return w.Image().Broker(1).Epoch },
		Loggers: &w.level,
	})
	return w
}

func testConfig(t testing.TB, settings map[string]string) *config.Config {
	values := map[string]string{
		"node.id": "1", "process.roles": "broker,controller", "log.dir": t.TempDir(),
		"listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093", "controller.listener.names": "CONTROLLER",
		"controller.quorum.voters": "1@127.0.0.1:9093", "offsets.topic.replication.factor": "1",
	}
	maps.Copy(values, settings)
	cfg, err := config.New(values)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func (w *world) dataPath(cfg *config.Config) *DataPath {
	data := &DataPath{
		Self: 1, Replicas: w, Image: w.Image,
		Topic: func(topic string) *config.Topic {
			tc := config.TopicConfig(cfg.BrokerDefaults(config.Dynamic{}), w.Image().Config(metalog.ResourceTopic, topic))
			return &tc
		},
		Node: func(model.BrokerID, string) (wire.Node, bool) { return wire.Node{}, false },
		Now:  func() model.Time { return 0 }, Wall: func() model.Millis { return wall },
		FetchMaxBytes: 1 << 20,
	}
	data.Init(10, rand.New(rand.NewPCG(1, 2)).Int32)
	return data
}

func (w *world) serve() {
	s, err := transport.Listen("127.0.0.1:0", transport.Options{Name: "PLAINTEXT"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = s
	done := make(chan error, 1)
	go func() { done <- s.Serve(w.api) }()
	w.addr = s.Addr().String()
	w.client, err = transport.Dial(context.Background(), w.addr, transport.ClientOptions{ClientID: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		w.client.Close()
		w.api.Close()
		s.Close(context.Background())
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// startController registers brokers 1 to 3 on two listeners; 3 has a rack.
func (w *world) startController(cfg *config.Config) {
	w.ctl = controller.New(controller.Config{
		NodeID: 1, ClusterID: clusterID, NumPartitions: cfg.NumPartitions, ReplicationFactor: cfg.DefaultReplicationFactor,
		DeleteTopics: true, Features: map[string]controller.FeatureRange{"metadata.version": {Min: 7, Max: 25}},
		Configs: configTable{cfg},
	}, image.New(), 0)
	recs := controller.Bootstrap(map[string]int16{"metadata.version": 25}, 1)
	for id := model.BrokerID(1); id <= 3; id++ {
		r := &metalog.RegisterBroker{
			BrokerID: id, IncarnationID: model.UUID{1, byte(id)}, BrokerEpoch: model.BrokerEpoch(100 + id),
			LogDirs: []model.UUID{{2, byte(id)}},
			Endpoints: []metalog.Endpoint{
				{Name: "PLAINTEXT", Host: fmt.Sprintf("host%d", id), Port: 9092},
				{Name: "INTERNAL", Host: fmt.Sprintf("inner%d", id), Port: 9094},
			},
		}
		if id == 3 {
			rack := "r3"
			r.Rack = &rack
		}
		recs = append(recs, r)
	}
	w.replay(recs)
}

func (w *world) replay(recs []metalog.Record) {
	w.next += model.Offset(len(recs))
	w.ctl.Replay(recs, w.next, 1)
	for _, b := range w.ctl.Image().Brokers() {
		w.peers[b.ID] = partition.Peer{Epoch: b.Epoch, Fenced: b.Fenced}
	}
}

// change writes records past the controller.
func (w *world) change(recs ...metalog.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replay(recs)
}

// Image, Active and Forward are the metadata plane.
func (w *world) Image() *image.Image {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ctl.Image()
}

func (w *world) Active() (model.BrokerID, model.Epoch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active, 1
}

func (w *world) Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := cmp.Or(w.down, ctx.Err()); err != nil {
		return nil, err
	}
	res, ok := w.ctl.Handle(controller.Call{NextOffset: w.next, Rand: rand.New(rand.NewPCG(3, uint64(w.next)))}, req)
	if !ok {
		return nil, fmt.Errorf("the controller does not know key %d", req.Key())
	}
	w.replay(res.Records)
	return res.Response, nil
}

// ByName and ByID host what the image assigns to broker 1.
func (w *world) ByName(tp model.TopicPartition) *Hosted {
	t := w.Image().TopicByName(tp.Topic)
	if t == nil || tp.Partition < 0 || int(tp.Partition) >= len(t.Partitions) {
		return nil
	}
	return w.ByID(model.TopicIDPartition{TopicID: t.ID, Partition: tp.Partition})
}

func (w *world) ByID(id model.TopicIDPartition) *Hosted {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.ctl.Image().TopicByID(id.TopicID)
	if t == nil || id.Partition < 0 || int(id.Partition) >= len(t.Partitions) {
		return nil
	}
	p := t.Partitions[id.Partition]
	for _, r := range p.Replicas {
		if r == 1 {
			return w.host(t, id, p)
		}
	}
	return nil
}

func (w *world) host(t *image.Topic, id model.TopicIDPartition, p *image.Partition) *Hosted {
	if h := w.hosts[id]; h != nil {
		return h
	}
	tp := model.TopicPartition{Topic: t.Name, Partition: id.Partition}
	log, err := w.dir.Create(tp, t.ID, storage.DefaultLogConfig(), wall)
	if err != nil {
		panic(err)
	}
	core := partition.New(partition.Config{ID: 1, LagMax: 1 << 40, MinISR: 1, Peers: &w.peers})
	w.hosts[id] = &Hosted{TP: tp, ID: id, Log: log, Owner: core}
	rd := core.Step(0, wall, &partition.Assign{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
		PartitionEpoch: p.PartitionEpoch, Replicas: p.Replicas, ISR: p.ISR})
	if e := rd.PersistEpochs; e != nil {
		if err := log.WriteEpochs(e.Epochs); err != nil {
			panic(err)
		}
		core.Step(0, wall, &partition.EpochPersisted{Epoch: e.Epoch})
	}
	return w.hosts[id]
}

// do sends one request and returns its answer.
func do[R kmsg.Response](w *world, req kmsg.Request) R {
	w.t.Helper()
	resp, err := w.client.Do(context.Background(), req)
	if err != nil {
		w.t.Fatalf("%s v%d: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return resp.(R)
}

// createTopic makes a topic led by broker 1 alone.
func (w *world) createTopic(name string, partitions int32, configs ...string) model.UUID {
	w.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 1000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	for id := range partitions {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = id, []int32{1}
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	for i := 0; i < len(configs); i += 2 {
		t.Configs = append(t.Configs, newTopicConfig(configs[i], configs[i+1]))
	}
	req.Topics = append(req.Topics, t)
	resp := do[*kmsg.CreateTopicsResponse](w, req)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		w.t.Fatalf("create %s: %v", name, model.Error(code))
	}
	return resp.Topics[0].TopicID
}

// groupEcho answers every group request with an empty response.
type groupEcho struct{}

func (groupEcho) Handle(r GroupRequest) {
	resp := r.Req.ResponseKind()
	if join, ok := resp.(*kmsg.JoinGroupResponse); ok {
		join.MemberID = r.ClientID + r.Host
	}
	r.Reply(resp)
}

// configTable is the table of configs as the controller asks for it.
type configTable struct{ cfg *config.Config }

func (t configTable) Validate(resource controller.ResourceType, _, key, value string) error {
	if resource == controller.ResourceTopic {
		return config.ValidateTopic(key, value)
	}
	return config.ValidateBroker(key, value)
}

func (t configTable) IsList(controller.ResourceType, string) (bool, string) { return false, "" }
func (t configTable) Static(string) string                                  { return "1" }

func (t configTable) Topic(overrides, node, all map[string]string) []controller.TopicConfig {
	return nil
}

// dialRaw opens a plain connection to the API.
func (w *world) dialRaw() net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

func name(i int) string { return "t" + strconv.Itoa(i) }
