package controller

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// table is a small table of configurations.
type table map[string]string

func (t table) Validate(resource ResourceType, name, key, value string) error {
	switch key {
	case configMinISR:
		if n, err := strconv.Atoi(value); err != nil || n < 1 {
			return fmt.Errorf("Invalid value %s for configuration %s", value, key)
		}
	case configUnclean:
		if value != "true" && value != "false" {
			return fmt.Errorf("Invalid value %s for configuration %s", value, key)
		}
	case "cleanup.policy", "retention.ms":
	default:
		return fmt.Errorf("Unknown topic config name: %s", key)
	}
	return nil
}

func (t table) IsList(resource ResourceType, key string) (bool, string) {
	return key == "cleanup.policy", "delete"
}

func (t table) Topic(overrides, node, all map[string]string) []TopicConfig {
	source, value := int8(5), t.Static(configMinISR)
	for i, m := range []map[string]string{all, node, overrides} {
		if v, ok := m[configMinISR]; ok {
			source, value = []int8{3, 2, 1}[i], v
		}
	}
	return []TopicConfig{{Name: configMinISR, Value: &value, Source: source}}
}

func (t table) Static(key string) string { return t[key] }

// defaultFeatures are those of a new cluster.
func defaultFeatures() map[string]int16 {
	return map[string]int16{
		featureMetadata: metalog.Level, "group.version": 1, "transaction.version": 2, featureELR: 1,
	}
}

// world is a controller with the log behind it. Whatever it decides is
// committed at once, and checked.
type world struct {
	t     testing.TB
	cfg   Config
	s     *State
	now   model.Time
	end   model.Offset
	epoch model.Epoch
	rng   *rand.Rand
	check *checker
	last  Result
}

func newWorld(t testing.TB, seed uint64) *world {
	return &world{
		t: t, epoch: 1, rng: rand.New(rand.NewPCG(seed, 1)),
		cfg: Config{
			NodeID: 3000, ClusterID: "cluster", LivenessProbe: true, DeleteTopics: true,
			AutoRebalance: true, ReplicationFactor: 3,
			Configs:   table{configMinISR: "1", configUnclean: "false"},
			Features:  map[string]FeatureRange{featureMetadata: {20, 25}, "group.version": {0, 1}, "transaction.version": {0, 2}, featureELR: {0, 1}},
			Bootstrap: Bootstrap(defaultFeatures(), 1),
		},
	}
}

// takeOver makes a new active controller from the log.
func (w *world) takeOver() {
	img := image.New()
	if w.s != nil {
		img = w.s.Image()
		w.epoch++
	} else {
		w.check = newChecker(w.t, w.cfg.Configs)
	}
	w.s = New(w.cfg, img, w.now)
	w.commit(w.s.TakeOver(w.call()))
}

func (w *world) call() Call { return Call{Now: w.now, NextOffset: w.end, Rand: w.rng} }

// commit replays a decision, each batch encoded and read back as a follower of
// the log would, and checks what it did.
func (w *world) commit(r Result) Result {
	w.t.Helper()
	old := w.s.Image()
	for _, batch := range r.Batches() {
		if len(batch) > MaxBatch {
			w.t.Fatalf("a batch of %d records", len(batch))
		}
		raw := metalog.AppendBatch(nil, w.end, w.epoch, 0, batch, metalog.Level)
		var read []metalog.Record
		if _, err := metalog.DecodeBatches(raw, func(b metalog.Batch) error {
			read = append(read, b.Records...)
			return nil
		}); err != nil {
			w.t.Fatalf("read back what was decided: %v", err)
		}
		w.end += model.Offset(len(batch))
		w.s.Replay(read, w.end, w.epoch)
	}
	if n := w.s.Image().Ignored(); n != 0 {
		w.t.Fatalf("%d records made no sense to the image", n)
	}
	w.check.step(old, w.s.Image(), r)
	w.last = r
	return r
}

// do handles a request and commits the decision.
func (w *world) do(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	r, ok := w.s.Handle(w.call(), req)
	if !ok {
		w.t.Fatalf("%T is not handled", req)
	}
	w.check.request = req
	w.commit(r)
	w.check.request = nil
	if r.Response == nil || r.Response.Key() != req.Key() || r.Response.GetVersion() != req.GetVersion() {
		w.t.Fatalf("%T version %d was answered with %#v", req, req.GetVersion(), r.Response)
	}
	return r.Response
}

// registration makes the request of broker id; incarnations are numbered.
func (w *world) registration(id model.BrokerID, incarnation int, previous model.BrokerEpoch) *kmsg.BrokerRegistrationRequest {
	r := kmsg.NewPtrBrokerRegistrationRequest()
	r.Version = 4
	r.BrokerID, r.ClusterID = int32(id), "cluster"
	r.IncarnationID = incarnationID(id, incarnation)
	r.PreviousBrokerEpoch = int64(previous)
	r.LogDirs = [][16]byte{dirID(id, 0)}
	l := kmsg.NewBrokerRegistrationRequestListener()
	l.Name, l.Host, l.Port = "PLAINTEXT", fmt.Sprintf("host%d", id), 9092
	r.Listeners = append(r.Listeners, l)
	for _, f := range []struct {
		name     string
		min, max int16
	}{{featureMetadata, 7, 25}, {featureKRaft, 0, 1}, {"group.version", 0, 1}, {"transaction.version", 0, 2}, {featureELR, 0, 1}} {
		rf := kmsg.NewBrokerRegistrationRequestFeature()
		rf.Name, rf.MinSupportedVersion, rf.MaxSupportedVersion = f.name, f.min, f.max
		r.Features = append(r.Features, rf)
	}
	return r
}

func incarnationID(id model.BrokerID, n int) model.UUID {
	return model.UUID{0: 0xaa, 7: byte(n), 15: byte(id)}
}

// dirID is the id of the n-th directory of a broker.
func dirID(id model.BrokerID, n int) model.UUID {
	return model.UUID{0: 0xdd, 8: byte(n), 15: byte(id)}
}

// beat makes a heartbeat of broker id that has read all metadata.
func (w *world) beat(id model.BrokerID) *kmsg.BrokerHeartbeatRequest {
	r := kmsg.NewPtrBrokerHeartbeatRequest()
	r.Version = 1
	r.BrokerID, r.CurrentMetadataOffset = int32(id), int64(w.end-1)
	if b := w.s.Image().Broker(id); b != nil {
		r.BrokerEpoch = int64(b.Epoch)
	}
	return r
}

// alive registers brokers and lets them serve.
func (w *world) alive(ids ...model.BrokerID) {
	for _, id := range ids {
		w.do(w.registration(id, 1, -1))
		w.do(w.beat(id))
	}
}

// create makes a topic with an assignment.
func (w *world) create(name string, parts ...[]int32) kmsg.Response {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version = 7
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	for i, replicas := range parts {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), replicas
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	r.Topics = append(r.Topics, t)
	return w.do(r)
}

// pass lets time pass and does all that becomes due on the way.
func (w *world) pass(d time.Duration, tell func(Result)) {
	until := w.now.Add(d)
	for step := 0; w.s.NextDeadline() <= until; step++ {
		if step > 10_000 {
			w.t.Fatalf("ticks never end at %v", time.Duration(w.now))
		}
		w.now = max(w.now, w.s.NextDeadline())
		r := w.s.Tick(w.call())
		w.commit(r)
		tell(r)
	}
	w.now = until
}
