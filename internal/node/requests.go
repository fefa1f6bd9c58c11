package node

import (
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/explain"
	"github.com/tidemark-log/tidemark/internal/vfs"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// newAPI wires the broker's loops to the handlers of requests.
func (b *broker) newAPI() *api.API {
	cfg := b.n.cfg
	configs := &topicConfigs{applier: b.applier}
	data := &api.DataPath{
		Self: cfg.NodeID, Replicas: b.replicas, Image: b.applier.Image, Topic: configs.of, Node: b.node,
		Now: b.n.clock.Now, Wall: b.n.clock.Wall, RackAware: cfg.RackAwareReads, FetchMaxBytes: cfg.FetchMaxBytes,
	}
	if b.n.metrics != nil {
		data.Meter = &b.n.metrics.Traffic
	}
	b.data = data
	data.Init(cfg.FetchSessionSlots, sessionIDs(b.n.opts.Seed))
	a := api.New(api.Options{
		ID: cfg.NodeID, ClusterID: b.n.dir.ClusterID(), Config: cfg, Features: supportedFeatures(),
		Images: b.applier, Controller: b.n.source, Queries: b.replicas, Coordinator: groups{b.groups},
		Data: data, LogDir: b.logDir, Epoch: b.lifecycle.Epoch, Log: b.n.log, Runtime: b.n.rt,
	})
	a.Handle(explain.APIKey, b.explainReplicas)
	return a
}

// sessionIDs gives candidates for the ids of fetch sessions, to one caller at a
// time.
func sessionIDs(seed uint64) func() int32 {
	r := rand.New(rand.NewPCG(seed, 1))
	return func() int32 { return r.Int32N(1<<31-2) + 1 }
}

func supportedFeatures() []image.FeatureRange {
	out := make([]image.FeatureRange, 0, len(brokerFeatures))
	for _, f := range brokerFeatures {
		out = append(out, image.FeatureRange{Name: f.name, Min: f.min, Max: f.max})
	}
	return out
}

// node is where a broker listens under a listener's name.
func (b *broker) node(id model.BrokerID, listener string) (wire.Node, bool) {
	r := b.applier.Image().Broker(id)
	if r == nil {
		return wire.Node{}, false
	}
	for _, e := range r.Endpoints {
		if e.Name == listener {
			return wire.Node{ID: id, Host: e.Host, Port: int32(e.Port), Rack: r.Rack}, true
		}
	}
	return wire.Node{}, false
}

// logDir describes the log directory for DescribeLogDirs.
func (b *broker) logDir() api.LogDir {
	path, err := filepath.Abs(b.n.cfg.LogDir)
	if err != nil {
		path = b.n.cfg.LogDir
	}
	d := api.LogDir{Path: path, Total: -1, Usable: -1, Logs: b.n.dir.Logs()}
	if b.n.dir.Err() != nil {
		d.Err = model.ErrKafkaStorageError
	}
	var st unix.Statfs_t
	if b.n.opts.FS == vfs.OS && unix.Statfs(path, &st) == nil {
		d.Total, d.Usable = int64(st.Blocks)*int64(st.Bsize), int64(st.Bavail)*int64(st.Bsize)
	}
	return d
}

// topicConfigs remembers the effective configuration of each topic as long as
// the image stands.
type topicConfigs struct {
	applier *applier
	cache   atomic.Pointer[topicConfigCache]
}

type topicConfigCache struct {
	img *image.Image
	m   sync.Map // topic -> *config.Topic
}

// of returns the configuration of a topic in the newest image.
func (c *topicConfigs) of(topic string) *config.Topic {
	img := c.applier.Image()
	cache := c.cache.Load()
	if cache == nil || cache.img != img {
		cache = &topicConfigCache{img: img}
		c.cache.Store(cache)
	}
	if t, ok := cache.m.Load(topic); ok {
		return t.(*config.Topic)
	}
	t := c.applier.topicConfig(topic)
	cache.m.Store(topic, &t)
	return &t
}
