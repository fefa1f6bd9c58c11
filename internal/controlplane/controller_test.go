package controlplane

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/controller"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

func waitReady(t *testing.T, c *Controller) {
	t.Helper()
	select {
	case <-c.Ready():
	case <-c.Done():
		t.Fatalf("the controller stopped: %v", c.Err())
	case <-time.After(patience):
		t.Fatal("the controller is not ready in time")
	}
}

func mustCreate(t *testing.T, s Source, name string) {
	t.Helper()
	if code, err := createTopic(ctx(t), s, name); err != nil || code != model.None {
		t.Fatalf("create topic %s: %v, %v", name, code, err)
	}
}

// createAnyhow creates a topic while leaders come and go: an answer may be lost.
func createAnyhow(t *testing.T, s Source, name string) {
	t.Helper()
	c := ctx(t)
	for c.Err() == nil {
		code, err := createTopic(c, s, name)
		if err == nil && (code == model.None || code == model.ErrTopicAlreadyExists) {
			return
		}
	}
	t.Fatalf("topic %s could not be created", name)
}

func hasTopic(name string) func(*image.Image) bool {
	return func(img *image.Image) bool { return img.TopicByName(name) != nil }
}

func TestOneControllerLeadsAnswersAndRemembers(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	for name, level := range Features() {
		if got := c.nodes[0].Image().Feature(name); got != level {
			t.Errorf("%s is %d, not %d", name, got, level)
		}
	}
	registerBroker(t, c.nodes[0], 1, 9)
	for i := range 20 {
		mustCreate(t, c.nodes[0], fmt.Sprint("topic-", i))
	}
	before := until(t, c.nodes[0], "the last topic", hasTopic("topic-19"))
	c.stop(0)
	c.start(0)
	waitReady(t, c.nodes[0])
	after := until(t, c.nodes[0], "the last topic", hasTopic("topic-19"))
	if after.End() <= before.End() || after.Epoch() <= before.Epoch() {
		t.Errorf("the image ends at %d in epoch %d, before at %d in %d", after.End(), after.Epoch(), before.End(), before.Epoch())
	}
	mustCreate(t, c.nodes[0], "topic-20")
}

func TestThreeControllersAgree(t *testing.T) {
	c := newCluster(t, 3, nil)
	began := time.Now()
	lead := c.leader()
	t.Logf("leader %d after %v", c.voters[lead].ID, time.Since(began))
	for _, n := range c.nodes {
		waitReady(t, n)
	}
	registerBroker(t, c.nodes[lead], 1, 9)
	for i := range 30 {
		mustCreate(t, c.nodes[i%3], fmt.Sprint("topic-", i))
	}
	end := until(t, c.nodes[lead], "all topics", func(img *image.Image) bool { return img.TopicCount() == 30 && len(img.Controllers()) == 3 })
	for i, n := range c.nodes {
		got := until(t, n, "the leader's end", func(img *image.Image) bool { return img.End() >= end.End() })
		if got.End() == end.End() && dump(got) != dump(end) {
			t.Errorf("node %d holds another image than the leader", c.voters[i].ID)
		}
	}
}

func TestASingleNodeRecordsItsVotersAndFollowsItsAddress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), MetadataDir)
	self := Voter{ID: 1, DirectoryID: model.UUID{5}, Host: "127.0.0.1", Port: 1}
	if Formatted(dir) {
		t.Fatal("a directory that is not there is formatted")
	}
	if err := Format(dir, FormatOptions{Voters: []Voter{self}, Now: 1}); err != nil {
		t.Fatal(err)
	}
	if !Formatted(dir) {
		t.Fatal("a formatted directory is not formatted")
	}
	for range 2 {
		l := listen(t, "127.0.0.1:0")
		c, err := Start(ctx(t), Options{
			NodeID: 1, ClusterID: testCluster, DirectoryID: self.DirectoryID, Dir: dir, Listener: l, Log: testLog(),
			Core: controller.Config{Configs: anyConfigs{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		port := uint16(l.Addr().(*net.TCPAddr).Port)
		img := until(t, c, "the voters with their address", func(img *image.Image) bool {
			v := img.Voters()
			return img.KRaftVersion() == 1 && len(v) == 1 && v[0].Endpoints[0].Port == port
		})
		if v := img.Voters()[0]; v.ID != 1 || v.DirectoryID != self.DirectoryID || v.Endpoints[0].Name != "CONTROLLER" {
			t.Errorf("the log names the voter %+v", v)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStartRefusesADirectoryThatWasNotFormatted(t *testing.T) {
	_, err := Start(ctx(t), Options{
		NodeID: 1, ClusterID: testCluster, Dir: filepath.Join(t.TempDir(), MetadataDir), Listener: listen(t, "127.0.0.1:0"),
		Core: controller.Config{Configs: anyConfigs{}},
	})
	if !errors.Is(err, ErrNotFormatted) {
		t.Fatalf("started with %v", err)
	}
}

func TestWhatNoReaderCouldReadBackIsRefused(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.SetVersion(1)
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, ""
	k := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	k.Name, k.Value = "log.retention.ms", kmsg.StringPtr(strings.Repeat("1", 40_000))
	r.Configs = append(r.Configs, k)
	req.Resources = append(req.Resources, r)
	resp, err := c.nodes[0].Forward(ctx(t), req)
	if err != nil {
		t.Fatal(err)
	}
	if code := resp.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode; code == 0 {
		t.Error("a value of 40,000 bytes was taken; Kafka's strings end at 32,767")
	}
	registerBroker(t, c.nodes[0], 1, 9)
	mustCreate(t, c.nodes[0], "after")
}
