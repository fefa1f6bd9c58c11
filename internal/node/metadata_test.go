package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/replicas"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// hosting is broker 1 without sockets: the metadata loop is the test, the
// replicas loop and the log writer run. Its logs lie in memory.
type hosting struct {
	*applier
	files  vfs.FS
	failed error
	dials  atomic.Int32 // to other brokers
}

func host(t *testing.T) *hosting { return hostOn(t, vfs.NewMem()) }

func hostOn(t *testing.T, fs vfs.FS) *hosting {
	cfg, err := config.New(map[string]string{"node.id": "1", "process.roles": "broker,controller", "listeners": "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
		"controller.listener.names": "CONTROLLER", "controller.quorum.voters": "1@127.0.0.1:2", "log.dirs": t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	clock, log := newSystemClock(nil), slog.New(slog.DiscardHandler)
	dir, err := storage.OpenDir(fs, "/data", storage.DirOptions{ClusterID: "c", NodeID: 1, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	h := &hosting{files: fs}
	fail := func(err error) { h.failed = err }
	l, err := replicas.Start(replicas.Options{ID: 1, Clock: clock, Log: log, Observer: silent{}, Dir: t.TempDir(), LagMax: time.Minute, Fail: fail, Fetch: replicas.FetchOptions{Backoff: time.Second},
		Dial: func(context.Context, model.BrokerID) (*transport.Client, error) {
			h.dials.Add(1)
			return nil, errors.New("nobody listens")
		}})
	if err != nil {
		t.Fatal(err)
	}
	h.applier = &applier{id: 1, cfg: cfg, clock: clock, log: log, dir: dir, replicas: l, fail: fail, last: image.New(), strays: newStrays()}
	t.Cleanup(func() { l.StopFetching(); l.Close(); dir.Close() })
	return h
}

// become applies records to the newest image.
func (h *hosting) become(rs ...metalog.Record) {
	h.apply(h.last.Apply(rs, h.last.End()+model.Offset(len(rs)), 1))
}

// topic is the records of a topic of one partition that these brokers replicate.
func topic(name string, id byte, replicas ...model.BrokerID) []metalog.Record {
	return []metalog.Record{&metalog.Topic{Name: name, TopicID: model.UUID{id}}, &metalog.Partition{TopicID: model.UUID{id},
		Replicas: replicas, ISR: replicas, Leader: replicas[0], LeaderEpoch: 1, PartitionEpoch: 1, Directories: make([]model.UUID, len(replicas))}}
}

// produce posts one record with acks=1 and returns where its answer will be.
func (h *hosting) produce(to *api.Hosted) *api.Produce {
	b := record.NewBuilder(record.PlainOptions())
	b.Add(1, nil, []byte("value"))
	batch := b.Bytes()
	header, _ := record.ParseHeader(batch)
	w := &api.Produce{Acks: 1, Parts: []api.ProducePart{{Hosted: to, Batch: batch, Producer: header.Producer()}},
		Stored: func() {}, Done: func() {}}
	h.replicas.Produce(w)
	return w
}

// folders counts the folders of the log directory, those set aside by kind.
func (h *hosting) folders(t *testing.T) map[string]int {
	infos, err := h.files.ReadDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, i := range infos {
		if i.Dir {
			out[kindOf(i.Name)]++
		}
	}
	return out
}

func kindOf(name string) string {
	for _, suffix := range []string{"-stray", "-delete"} {
		if strings.HasSuffix(name, suffix) {
			return suffix
		}
	}
	return name
}

func TestAReplicaThatLeavesTakesItsUnwrittenAppendsAlong(t *testing.T) {
	leaving := map[string]struct {
		records []metalog.Record
		folders map[string]int
	}{
		"deleted":              {[]metalog.Record{&metalog.RemoveTopic{TopicID: model.UUID{1}}}, map[string]int{"-delete": 1}},
		"moved to others":      {[]metalog.Record{&metalog.PartitionChange{TopicID: model.UUID{1}, Replicas: []model.BrokerID{2}, ISR: []model.BrokerID{2}, Leader: 2}}, map[string]int{"-delete": 1}},
		"deleted and remade":   {append([]metalog.Record{&metalog.RemoveTopic{TopicID: model.UUID{1}}}, topic("orders", 2, 1)...), map[string]int{"-delete": 1, "orders-0": 1}},
		"remade for others":    {append([]metalog.Record{&metalog.RemoveTopic{TopicID: model.UUID{1}}}, topic("orders", 2, 3)...), map[string]int{"-delete": 1}},
		"remade as a follower": {append([]metalog.Record{&metalog.RemoveTopic{TopicID: model.UUID{1}}}, topic("orders", 2, 1, 1)...), map[string]int{"-delete": 1, "orders-0": 1}},
	}
	for name, leave := range leaving {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := host(t)
				h.become(topic("orders", 1, 1)...)
				synctest.Wait()
				to := h.replicas.ByName(model.TopicPartition{Topic: "orders"})
				hold := make(chan struct{})
				h.replicas.Produce(&api.Produce{Stored: func() {}, Done: func() { <-hold }})
				synctest.Wait() // the loop is busy: what follows comes in one turn
				w := h.produce(to)
				go h.become(leave.records...)
				synctest.Wait()
				close(hold)
				synctest.Wait()
				if h.failed != nil {
					t.Fatalf("the node fails: %v", h.failed)
				}
				if w.Parts[0].Err != model.None && w.Parts[0].Err != model.ErrNotLeaderOrFollower {
					t.Errorf("the produce request was answered %v", w.Parts[0].Err)
				}
				if got := h.folders(t); !maps.Equal(got, leave.folders) {
					t.Errorf("folders %v, not %v", got, leave.folders)
				}
			})
		})
	}
}

// What the metadata took away while the broker was down is deleted; what nobody
// can explain is kept under another name.
func TestLogsThatNobodyHostsAreSetAsideAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		before, err := storage.OpenDir(fs, "/data", storage.DirOptions{ClusterID: "c", NodeID: 1, Manual: true})
		if err != nil {
			t.Fatal(err)
		}
		for name, id := range map[string]byte{"kept": 1, "deleted": 2, "remade": 3, "moved": 4, "unknown": 5, "another": 6} {
			if _, err := before.Create(model.TopicPartition{Topic: name}, model.UUID{id}, storage.DefaultLogConfig(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		h := hostOn(t, fs)
		known := slices.Concat(topic("kept", 1, 1), topic("deleted", 2, 1), topic("remade", 3, 1), topic("moved", 4, 1), topic("strange", 7, 2))
		h.strays.remember(image.New().Apply(known, model.Offset(len(known)), 1), 1)
		h.become(slices.Concat(topic("kept", 1, 1), topic("remade", 30, 1), topic("moved", 4, 2), topic("another", 60, 1))...)
		want := map[string]int{"kept-0": 1, "remade-0": 1, "another-0": 1, "-delete": 3, "-stray": 2}
		if got := h.folders(t); !maps.Equal(got, want) || h.failed != nil {
			t.Errorf("folders %v, not %v; failed: %v", got, want, h.failed)
		}
	})
}

// A log obeys its topic's configs and not the broker's defaults: a new one, one that was
// found at a start, and one that was found without the id of its topic.
func TestALogObeysItsTopicAfterEachStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, tp := vfs.NewMem(), model.TopicPartition{Topic: "orders"}
		records := topic("orders", 1, 1)
		for name, value := range map[string]string{"flush.messages": "1", "retention.bytes": "-1", "retention.ms": "-1", "segment.bytes": "1048576", "cleanup.policy": "compact"} {
			records = append(records, &metalog.Config{ResourceType: metalog.ResourceTopic, ResourceName: "orders", Name: name, Value: &value})
		}
		for _, life := range []string{"new", "found", "without an id"} {
			if life == "without an id" {
				if err := fs.Remove("/data/orders-0/partition.metadata"); err != nil {
					t.Fatal(err)
				}
			}
			h := hostOn(t, fs)
			h.become(records...)
			got, want := h.replicas.ByName(tp).Log.Config(), logConfig(h.topicConfig("orders"))
			if got != want || got.FlushMessages != 1 || got.Delete {
				t.Errorf("%s: the log has %+v, its topic %+v", life, got, want)
			}
			h.replicas.StopFetching()
			h.replicas.Close()
			if err := h.dir.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// feed is a source whose images the test hands out.
type feed struct {
	controlplane.Source
	img *image.Image
	fn  func(*image.Image) // of the one who follows; nil for nobody
}

func (f *feed) Subscribe(fn func(*image.Image)) (stop func()) {
	f.fn = fn
	fn(f.img)
	return func() { f.fn = nil }
}

// A process that the controllers did not take may be a second one with its id:
// it leads nothing, and fetches nothing in the name of the first (case B228).
func TestNothingIsHostedBeforeTheMetadataHasPassedTheRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host(t)
		src := &feed{img: image.New().Apply(topic("orders", 1, 1), 2, 1)}
		b := &broker{tasks: (*task.Runtime)(nil).NewGroup(), n: &Node{source: src, cfg: h.cfg}, applier: h.applier, lifecycle: newLifecycle(nil, h.cfg, src, h.log)}
		hosted := func() bool { return h.replicas.ByName(model.TopicPartition{Topic: "orders"}) != nil }
		ctx, cancel := context.WithCancel(t.Context())
		defer func() { cancel(); b.tasks.Wait() }()
		b.tasks.Go("metadata", func() { b.follow(ctx) })
		if synctest.Wait(); hosted() {
			t.Fatal("a broker that is not registered follows the metadata")
		}
		b.lifecycle.epoch.Store(int64(src.img.End()))
		b.lifecycle.registered.Close()
		if synctest.Wait(); hosted() {
			t.Fatal("metadata that lacks the registration is followed")
		}
		src.fn(src.img.Apply([]metalog.Record{&metalog.NoOp{}}, src.img.End()+1, 1))
		if !hosted() {
			t.Error("metadata past the registration is not followed")
		}
	})
}

// A broker's configs are the defaults of its topics; those of other brokers, of groups
// and of clients are not its concern.
func TestConfigsConcernTheReplicasThatTheyAreAbout(t *testing.T) {
	for _, c := range []struct {
		kind    int8
		name    string
		logs    int
		fetches bool
	}{
		{metalog.ResourceTopic, "orders", 1, false},
		{metalog.ResourceTopic, "gone", 0, false},
		{metalog.ResourceBroker, "", 2, true},
		{metalog.ResourceBroker, "1", 2, true},
		{metalog.ResourceBroker, "2", 0, false},
		{metalog.ResourceGroup, "1", 0, false},
		{metalog.ResourceClientMetrics, "1", 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := host(t)
			h.become(append(topic("orders", 1, 1), topic("returns", 2, 1)...)...)
			value := "2"
			before := h.img.Load()
			after := before.Apply([]metalog.Record{&metalog.Config{ResourceType: c.kind, ResourceName: c.name, Name: "num.replica.fetchers", Value: &value}}, before.End()+1, 1)
			var change replicas.Change
			h.configure(image.Diff(before, after), &change)
			if len(change.Configured) != c.logs || change.Lanes > 0 != c.fetches {
				t.Errorf("a config of %d %q reconfigures %d logs and sets %d fetchers", c.kind, c.name, len(change.Configured), change.Lanes)
			}
		})
	}
}

func TestMoreFetchersComeWhileABrokerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host(t)
		h.become(append(topic("orders", 1, 2, 1), topic("returns", 2, 2, 1)...)...)
		tries := func() int32 { // of connections to the leader, a second apart each
			time.Sleep(10 * time.Second)
			before := h.dials.Load()
			time.Sleep(time.Minute)
			return h.dials.Load() - before
		}
		if n := tries(); n != 60 {
			t.Errorf("%d tries in a minute with one connection to a leader", n)
		}
		two := "2"
		h.become(&metalog.Config{ResourceType: metalog.ResourceBroker, ResourceName: "1", Name: "num.replica.fetchers", Value: &two})
		if n := tries(); n != 120 {
			t.Errorf("%d tries in a minute after num.replica.fetchers=2", n)
		}
	})
}
