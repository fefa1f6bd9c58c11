package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testCluster = "Zl3Nq0T6Q1C8sYb4d5e6Fg"
	// patience bounds every wait of a test; nothing waits so long.
	patience = 20 * time.Second
)

// cluster is controllers in this process.
type cluster struct {
	t       *testing.T
	voters  []Voter
	nodes   []*Controller // nil: not running
	dirs    []string
	disks   []*disk
	options func(*Options)
}

// disk is in memory, so that the power can be cut.
type disk struct {
	mem  *vfs.Mem
	dead *atomic.Bool
}

func newDisk(mem *vfs.Mem) *disk { return &disk{mem, new(atomic.Bool)} }

var errPower = errors.New("the power is gone")

// fs fails every change from the moment that the power is cut.
func (d *disk) fs() vfs.FS {
	dead := d.dead
	return vfs.Faulty(d.mem, func(op vfs.Op) error {
		if dead.Load() {
			return errPower
		}
		return nil
	})
}

// newCluster formats n controllers with static voters and opens their
// listeners before any of them starts.
func newCluster(t *testing.T, n int, options func(*Options)) *cluster {
	t.Helper()
	c := &cluster{t: t, nodes: make([]*Controller, n), options: options}
	var listeners []net.Listener
	for i := range n {
		l := listen(t, "127.0.0.1:0")
		listeners = append(listeners, l)
		port := l.Addr().(*net.TCPAddr).Port
		c.voters = append(c.voters, Voter{ID: model.BrokerID(i + 1), Host: "127.0.0.1", Port: uint16(port)})
		c.dirs = append(c.dirs, "/"+MetadataDir)
		c.disks = append(c.disks, newDisk(vfs.NewMem()))
		if err := Format(c.dirs[i], FormatOptions{Now: 1, FS: c.disks[i].mem}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		c.startOn(i, listeners[i])
	}
	t.Cleanup(c.close)
	return c
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func testLog() *slog.Logger {
	if os.Getenv("CONTROLPLANE_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (c *cluster) startOn(i int, l net.Listener) {
	c.t.Helper()
	o := Options{
		NodeID: c.voters[i].ID, ClusterID: testCluster, DirectoryID: model.UUID{0: 9, 15: byte(i)},
		Dir: c.dirs[i], Voters: c.voters, Listener: l, Log: testLog(), FS: c.disks[i].fs(),
	}
	o.Core.Configs, o.Core.SessionTimeout = anyConfigs{}, time.Hour
	if c.options != nil {
		c.options(&o)
	}
	node, err := Start(context.Background(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[i] = node
}

// anyConfigs allows every config.
type anyConfigs struct{}

func (anyConfigs) Validate(controller.ResourceType, string, string, string) error { return nil }
func (anyConfigs) IsList(controller.ResourceType, string) (bool, string)          { return false, "" }
func (anyConfigs) Topic(_, _, _ map[string]string) []controller.TopicConfig       { return nil }
func (anyConfigs) Static(key string) string {
	return map[string]string{"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}[key]
}

// start runs node i again on its old address and directory.
func (c *cluster) start(i int) {
	c.t.Helper()
	c.startOn(i, listen(c.t, address(c.voters[i].Host, c.voters[i].Port)))
}

func (c *cluster) stop(i int) {
	c.t.Helper()
	if err := c.nodes[i].Close(); err != nil {
		c.t.Errorf("close controller %d: %v", c.voters[i].ID, err)
	}
	c.nodes[i] = nil
}

// kill ends node i as a power cut does: what was not synced is lost.
func (c *cluster) kill(i int, rng *rand.Rand) {
	c.t.Helper()
	c.disks[i].dead.Store(true)
	if err := c.nodes[i].Close(); err != nil && !errors.Is(err, errPower) {
		c.t.Errorf("controller %d ended with: %v", c.voters[i].ID, err)
	}
	c.nodes[i] = nil
	c.disks[i] = newDisk(c.disks[i].mem.CrashClone(vfs.CrashOptions{Rand: rng}))
}

func (c *cluster) close() {
	for i, n := range c.nodes {
		if n != nil {
			c.stop(i)
		}
	}
}

// leader waits until the running nodes agree on an active controller and
// returns its index.
func (c *cluster) leader() int {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		var changes []<-chan struct{}
		agreed, first := true, model.NoBroker
		for _, n := range c.nodes {
			if n == nil {
				continue
			}
			changes = append(changes, n.pub.wait().C())
			id, _ := n.Active()
			if id == model.NoBroker || first != model.NoBroker && id != first {
				agreed = false
			}
			first = id
		}
		if agreed {
			for i, v := range c.voters {
				if v.ID == first && c.nodes[i] != nil {
					return i
				}
			}
		}
		waitAny(c.t, deadline, changes)
	}
}

// waitAny waits for the first of the channels to close.
func waitAny(t *testing.T, deadline <-chan time.Time, chs []<-chan struct{}) {
	t.Helper()
	any, stop := make(chan struct{}, len(chs)), make(chan struct{})
	defer close(stop)
	for _, ch := range chs {
		go func() {
			select {
			case <-ch:
				any <- struct{}{}
			case <-stop:
			}
		}()
	}
	select {
	case <-any:
	case <-deadline:
		t.Fatal("nothing happened in time")
	}
}

// source is what controllers and observers share in tests.
type source interface{ broadcaster() *broadcast }

func (c *Controller) broadcaster() *broadcast { return c.pub }
func (o *Observer) broadcaster() *broadcast   { return o.pub }

// until waits for an image that satisfies cond.
func until(t *testing.T, s source, what string, cond func(*image.Image) bool) *image.Image {
	t.Helper()
	deadline := time.After(patience)
	for {
		changed := s.broadcaster().wait()
		img := s.broadcaster().img.Load()
		if cond(img) {
			return img
		}
		select {
		case <-changed.C():
		case <-deadline:
			t.Fatalf("no image with %s; it ends at %d", what, img.End())
		}
	}
}

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return c
}

// createTopic creates a topic through any node and returns the error code.
func createTopic(c context.Context, s Source, name string) (model.Error, error) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.SetVersion(7)
	req.TimeoutMillis = 10_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = name
	topic.NumPartitions, topic.ReplicationFactor = 1, 1
	req.Topics = append(req.Topics, topic)
	resp, err := s.Forward(c, req)
	if err != nil {
		return 0, err
	}
	return model.Error(resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode), nil
}

// registerBroker registers a broker and unfences it, so that topics have a place.
func registerBroker(t *testing.T, s Source, id model.BrokerID, port uint16) model.BrokerEpoch {
	t.Helper()
	epoch, err := register(ctx(t), s, id, port)
	if err != nil {
		t.Fatalf("registration of broker %d: %v", id, err)
	}
	return epoch
}

func register(c context.Context, s Source, id model.BrokerID, port uint16) (model.BrokerEpoch, error) {
	req := kmsg.NewPtrBrokerRegistrationRequest()
	req.SetVersion(4)
	req.BrokerID, req.ClusterID = int32(id), testCluster
	req.IncarnationID = [16]byte{1, byte(id)}
	req.LogDirs = [][16]byte{{7, byte(id)}}
	req.PreviousBrokerEpoch = -1
	l := kmsg.NewBrokerRegistrationRequestListener()
	l.Name, l.Host, l.Port = "PLAINTEXT", "127.0.0.1", port
	req.Listeners = append(req.Listeners, l)
	for _, name := range sortedKeys(SupportedFeatures()) {
		f := kmsg.NewBrokerRegistrationRequestFeature()
		r := SupportedFeatures()[name]
		f.Name, f.MinSupportedVersion, f.MaxSupportedVersion = name, r.Min, r.Max
		req.Features = append(req.Features, f)
	}
	resp, err := s.Forward(c, req)
	if err != nil {
		return 0, err
	}
	r := resp.(*kmsg.BrokerRegistrationResponse)
	if r.ErrorCode != 0 {
		return 0, model.Error(r.ErrorCode)
	}
	return model.BrokerEpoch(r.BrokerEpoch), heartbeat(c, s, id, model.BrokerEpoch(r.BrokerEpoch))
}

func heartbeat(c context.Context, s Source, id model.BrokerID, epoch model.BrokerEpoch) error {
	hb := kmsg.NewPtrBrokerHeartbeatRequest()
	hb.SetVersion(1)
	hb.BrokerID, hb.BrokerEpoch, hb.CurrentMetadataOffset = int32(id), int64(epoch), 1<<40
	resp, err := s.Forward(c, hb)
	if err != nil {
		return err
	}
	if code := resp.(*kmsg.BrokerHeartbeatResponse).ErrorCode; code != 0 {
		return model.Error(code)
	}
	return nil
}

// dump is every record of an image, to compare images by content.
func dump(img *image.Image) string {
	out := fmt.Sprintf("end %d epoch %d kraft %d\n", img.End(), img.Epoch(), img.KRaftVersion())
	for rec := range img.Records() {
		text, err := metalog.Dump(metalog.Append(nil, rec, img.Feature(featureMetadata)))
		if err != nil {
			text = err.Error()
		}
		out += text + "\n"
	}
	return out
}
