package controlplane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// load creates topics through the running nodes until it is stopped, and knows
// which were acknowledged.
type load struct {
	mu    sync.Mutex
	acked map[string]bool
	count chan struct{} // one token per acknowledgement, as far as it has room
	group sync.WaitGroup
	quit  context.CancelFunc
}

func startLoad(s Source, clients int) *load {
	ctx, quit := context.WithCancel(context.Background())
	l := &load{acked: map[string]bool{}, count: make(chan struct{}, 1<<16), quit: quit}
	for i := range clients {
		l.group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("load-%d-%d", i, n)
				if code, err := createTopic(ctx, s, name); err == nil && code == model.None {
					l.mu.Lock()
					l.acked[name] = true
					l.mu.Unlock()
					select {
					case l.count <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	return l
}

// more waits for n further acknowledgements.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case <-l.count:
			continue
		default:
		}
		break
	}
	for range n {
		select {
		case <-l.count:
		case <-deadline:
			t.Fatal("no topic was created in time")
		}
	}
}

func (l *load) stop() { l.quit(); l.group.Wait() }

// check waits until every node shows the same image with all that was
// acknowledged.
func (l *load) check(t *testing.T, c *cluster) {
	t.Helper()
	lead := c.leader()
	for i, n := range c.nodes {
		img := until(t, n, "every acknowledged topic", func(img *image.Image) bool {
			return img.TopicCount() >= len(l.acked) && img.End() >= c.nodes[lead].Image().End()
		})
		for name := range l.acked {
			if img.TopicByName(name) == nil {
				t.Errorf("controller %d lost topic %s", c.voters[i].ID, name)
			}
		}
		sameImage(t, c.nodes[lead], n)
	}
}

func TestNothingCommittedIsLostWhenLeadersAreKilledUnderLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := newCluster(t, 3, func(o *Options) { o.SnapshotBytes = 30_000 })
	registerBroker(t, c.nodes[c.leader()], 1, 9)
	o, _ := observe(t, c, "", func(o *ObserverOptions) { o.SnapshotBytes = 30_000 })
	defer closeObserver(t, o)
	l := startLoad(o, 4)
	for range 6 {
		l.more(t, 40)
		lead := c.leader()
		c.kill(lead, rng)
		began := time.Now()
		l.more(t, 1)
		t.Logf("a topic was created %v after the leader was killed", time.Since(began).Round(time.Millisecond))
		l.more(t, 20)
		c.start(lead)
	}
	l.stop()
	l.check(t, c)
	sameImage(t, c.nodes[c.leader()], o)
}

func TestALeaderWhoseProcessIsGoneIsReplacedWithoutTheElectionTimeout(t *testing.T) {
	// An election timeout takes 100 s or more with these ticks, and so does the
	// lease in which a follower refuses its vote.
	c := newCluster(t, 3, func(o *Options) { o.Tick = 10 * time.Second })
	lead := c.leader()
	registerBroker(t, c.nodes[lead], 1, 9)
	for i := range c.nodes {
		until(t, c.nodes[i], "the broker", func(img *image.Image) bool { return img.Broker(1) != nil })
	}
	c.stop(lead)
	next := c.leader()
	mustCreate(t, c.nodes[next], "after")
}

func TestAClusterThatLosesPowerAsAWholeComesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	c := newCluster(t, 3, func(o *Options) { o.SnapshotBytes = 20_000 })
	registerBroker(t, c.nodes[c.leader()], 1, 9)
	o, _ := observe(t, c, "", nil)
	defer closeObserver(t, o)
	l := startLoad(o, 3)
	for range 3 {
		l.more(t, 60)
		for i := range c.nodes {
			c.kill(i, rng)
		}
		for i := range c.nodes {
			c.start(i)
		}
		began := time.Now()
		c.leader()
		t.Logf("a leader after %v", time.Since(began).Round(time.Millisecond))
	}
	l.stop()
	l.check(t, c)
	sameImage(t, c.nodes[c.leader()], o)
}

func TestANodeThatLaggedBehindTheLogIsGivenACheckpoint(t *testing.T) {
	c := newCluster(t, 3, func(o *Options) { o.SnapshotBytes = 3000 })
	lead := c.leader()
	registerBroker(t, c.nodes[lead], 1, 9)
	late := (lead + 1) % 3
	c.stop(late)
	end := c.nodes[lead].Image().End()
	for i := range 200 {
		mustCreate(t, c.nodes[lead], fmt.Sprint("topic-", i))
	}
	c.start(late)
	until(t, c.nodes[late], "the last topic", hasTopic("topic-199"))
	if start := c.nodes[late].readers.state.Load().view.Start(); start <= end {
		t.Errorf("the log of the node that lagged starts at %d, it had %d", start, end)
	}
	sameImage(t, c.nodes[lead], c.nodes[late])
	c.stop(late)
	c.start(late)
	until(t, c.nodes[late], "the last topic", hasTopic("topic-199"))
	sameImage(t, c.nodes[c.leader()], c.nodes[late])
}

func TestAFailedSyncStopsTheController(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	registerBroker(t, c.nodes[0], 1, 9)
	c.disks[0].dead.Store(true)
	if code, err := createTopic(ctx(t), c.nodes[0], "never"); err == nil && code == model.None {
		t.Fatal("a topic was acknowledged that no disk holds")
	}
	select {
	case <-c.nodes[0].Done():
	case <-time.After(patience):
		t.Fatal("the controller goes on without its disk")
	}
	if c.nodes[0].Err() == nil {
		t.Error("the controller does not say why it stopped")
	}
	c.nodes[0].Close()
	c.nodes[0] = nil
}

// broker registers a broker that listens and sends heartbeats over a
// connection of its own.
func broker(t *testing.T, c *cluster, id model.BrokerID) (o *Observer, l net.Listener) {
	t.Helper()
	l = listen(t, "127.0.0.1:0")
	o, _ = observe(t, c, "", func(o *ObserverOptions) { o.NodeID = id })
	registerBroker(t, o, id, uint16(l.Addr().(*net.TCPAddr).Port))
	until(t, o, "the broker unfenced", func(img *image.Image) bool { b := img.Broker(id); return b != nil && !b.Fenced })
	return o, l
}

func TestABrokerWhoseProcessIsGoneIsFencedAtOnce(t *testing.T) {
	c := newCluster(t, 3, func(o *Options) { o.Core.LivenessProbe = true })
	lead := c.leader()
	o, l := broker(t, c, 7)
	l.Close()
	began := time.Now()
	closeObserver(t, o)
	until(t, c.nodes[lead], "the broker fenced", func(img *image.Image) bool { return img.Broker(7).Fenced })
	t.Logf("fenced after %v", time.Since(began).Round(time.Millisecond))
}

func TestABrokerWhoseListenerOutlivesItsConnectionIsFencedAtOnce(t *testing.T) {
	c := newCluster(t, 1, func(o *Options) { o.Core.LivenessProbe = true })
	waitReady(t, c.nodes[0])
	o, l := broker(t, c, 7)
	go func() {
		if conn, err := l.Accept(); err == nil {
			l.Close()
			conn.Close()
		}
	}()
	closeObserver(t, o)
	until(t, c.nodes[0], "the broker fenced", func(img *image.Image) bool { return img.Broker(7).Fenced })
}

func TestABrokerThatLosesItsConnectionAndStillListensIsNotFenced(t *testing.T) {
	c := newCluster(t, 1, func(o *Options) { o.Core.LivenessProbe = true })
	waitReady(t, c.nodes[0])
	o, l := broker(t, c, 7)
	defer l.Close()
	probed := make(chan struct{})
	go func() {
		defer close(probed)
		for range len(probePauses) + 1 {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	closeObserver(t, o)
	select {
	case <-probed:
	case <-time.After(patience):
		t.Fatal("the broker was not dialled often enough")
	}
	mustCreate(t, c.nodes[0], "later")
	if img := until(t, c.nodes[0], "a later topic", hasTopic("later")); img.Broker(7).Fenced {
		t.Error("a broker that listens was fenced")
	}
}
