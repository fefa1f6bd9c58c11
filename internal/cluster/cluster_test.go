package cluster

import (
	"context"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestANodeThatRunsCannotBeRestarted(t *testing.T) {
	c, err := Start(t.Context(), Options{Nodes: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abandon()
	stop, looked := make(chan struct{}), make(chan int)
	go func() {
		missing := 0
		for {
			select {
			case <-stop:
				looked <- missing
				return
			default:
			}
			if c.Node(1) == nil {
				missing++
			}
		}
	}()
	for range 1000 {
		if err := c.Restart(t.Context(), 1); err == nil {
			t.Fatal("it is restarted while it runs")
		}
	}
	close(stop)
	if n := <-looked; n > 0 {
		t.Errorf("the node was gone %d times", n)
	}
	for _, id := range []int{0, 2} {
		if err := c.Restart(t.Context(), id); err == nil {
			t.Errorf("node %d is restarted", id)
		}
	}
}

// A node that lost its disk must not stay as a leader that can do nothing.
func TestANodeThatCannotGoOnIsEnded(t *testing.T) {
	type end struct {
		id  int
		why error
	}
	ended := make(chan end, 3)
	c, err := Start(t.Context(), Options{Nodes: 3, Dir: t.TempDir(), Ended: func(id int, why error) { ended <- end{id, why} }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abandon()
	if err := os.Rename(c.Dir(2), c.Dir(2)+"-lost"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Dir(2), nil, 0o600); err != nil { // so that it cannot be made again
		t.Fatal(err)
	}
	client, err := transport.Dial(t.Context(), c.Addrs()[0], transport.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	createTopic(t, client, "t", 3, 3)
	if e := <-ended; e.id != 2 || e.why == nil || c.Node(2) != nil {
		t.Errorf("node %d ended, for %v", e.id, e.why)
	}
	if c.Node(1) == nil || c.Node(3) == nil {
		t.Error("the others are gone too")
	}
}

// Whoever waits for a node to fail must not end the one that came after it.
func TestOnlyTheNodeThatFailedIsEnded(t *testing.T) {
	c, err := Start(t.Context(), Options{Nodes: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abandon()
	old := c.Node(1)
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := c.kill(1, old); err == nil || c.Node(1) == nil {
		t.Errorf("the new node was ended in place of the old one: %v", err)
	}
}

func TestAKilledNodeComesBackOnItsPorts(t *testing.T) {
	c, err := Start(t.Context(), Options{Nodes: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abandon()
	addr := c.Addrs()[0]
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(1); err == nil {
		t.Error("it is killed twice")
	}
	if nc, err := net.Dial("tcp", addr); err == nil {
		nc.Close()
		t.Error("a killed node takes connections")
	}
	if err := c.Restart(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestAStartThatFailsLeavesNoNodeRunning(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, err = Start(t.Context(), Options{Nodes: 2, Dir: t.TempDir(), Set: map[string]string{"tidemark.http.listen": busy.Addr().String()}})
	if err == nil {
		t.Fatal("the cluster starts")
	}
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
}

func createTopic(t *testing.T, client *transport.Client, name string, partitions int32, copies int16) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 10_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, copies
	req.Topics = append(req.Topics, topic)
	if _, err := client.Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

// longPoll makes a topic and parks a fetch of it for an hour; the channel tells
// how it ends.
func longPoll(t *testing.T, c *Cluster) <-chan error {
	t.Helper()
	client, err := transport.Dial(t.Context(), c.Addrs()[0], transport.ClientOptions{Dial: c.Dial})
	if err != nil {
		t.Fatal(err)
	}
	createTopic(t, client, "t", 1, 1)
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version, fetch.MaxWaitMillis, fetch.MinBytes, fetch.SessionEpoch = 12, 3_600_000, 1, -1
	ft := kmsg.NewFetchRequestTopic()
	ft.Topic = "t"
	ft.Partitions = append(ft.Partitions, kmsg.NewFetchRequestTopicPartition())
	fetch.Topics = append(fetch.Topics, ft)
	for c.Node(1).Image().TopicByName("t") == nil || len(c.Node(1).Views()) == 0 {
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error, 1)
	go func() {
		defer client.Close()
		_, err := client.Do(context.Background(), fetch)
		ended <- err
	}()
	time.Sleep(10 * time.Second)
	select {
	case err := <-ended:
		t.Fatalf("the long poll ends with %v", err)
	default:
	}
	return ended
}

func TestNoLongPollHoldsUpAnEnd(t *testing.T) {
	ends := map[string]struct {
		end  func(c *Cluster) error
		most time.Duration
	}{
		"stop": {func(c *Cluster) error { return c.Close(context.Background()) }, 3 * time.Second},
		"kill": {func(c *Cluster) error { return c.Kill(1) }, 0},
	}
	for name, e := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := Start(t.Context(), Options{Nodes: 1, Dir: t.TempDir(), Memory: true})
				if err != nil {
					t.Fatal(err)
				}
				ended := longPoll(t, c)
				began := time.Now()
				if err := e.end(c); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > e.most {
					t.Errorf("it took %v", took)
				}
				if err := <-ended; err == nil {
					t.Error("the long poll was answered")
				}
			})
		})
	}
}

func TestADirectoryOfAnotherSizeIsRefusedInWords(t *testing.T) {
	dir := t.TempDir()
	c, err := Start(t.Context(), Options{Nodes: 2, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c.Abandon()
	_, err = Start(t.Context(), Options{Nodes: 3, Dir: dir})
	if want := dir + " holds a cluster of 2 nodes, not of 3: ask for 2, or name another directory"; err == nil || err.Error() != want {
		t.Fatalf("started with %v, want %q", err, want)
	}
}
