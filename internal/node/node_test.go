package node

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark/internal/api/preview"
	"github.com/tidemark-log/tidemark/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone is the options of a formatted node that is a whole cluster.
func alone(t *testing.T, set map[string]string) Options {
	t.Helper()
	var ls [2]net.Listener
	for i := range ls {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		ls[i] = l
	}
	client, ctrl := ls[0].Addr().String(), ls[1].Addr().String()
	values := map[string]string{"node.id": "1", "process.roles": "broker,controller",
		"listeners": "PLAINTEXT://" + client + ",CONTROLLER://" + ctrl, "advertised.listeners": "PLAINTEXT://" + client,
		"controller.listener.names": "CONTROLLER", "controller.quorum.voters": "1@" + ctrl, "log.dirs": t.TempDir(),
		"broker.heartbeat.interval.ms": "100", "controller.quorum.append.linger.ms": "0"}
	for k, v := range set {
		values[k] = v
	}
	cfg, err := config.New(values)
	if err != nil {
		t.Fatal(err)
	}
	if err := Format(cfg, "AAAAAAAAAAAAAAAAAAAAAQ"); err != nil {
		t.Fatal(err)
	}
	return Options{Config: cfg, BrokerListener: ls[0], ControllerListener: ls[1]}
}

// refused checks that nobody listens for clients or controllers any more.
func refused(t *testing.T, o Options) {
	t.Helper()
	for _, l := range []net.Listener{o.BrokerListener, o.ControllerListener} {
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			c.Close()
			t.Errorf("%s still takes connections", l.Addr())
		}
	}
}

func TestAStartThatFailsLeavesNothingBehind(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	fails := map[string]struct {
		set    map[string]string
		damage func(dir string) error
	}{
		"the directory is not formatted":  {nil, func(dir string) error { return os.Remove(filepath.Join(dir, "meta.properties")) }},
		"the metadata log is gone":        {nil, func(dir string) error { return os.RemoveAll(filepath.Join(dir, "__cluster_metadata-0")) }},
		"the account of cuts is a folder": {nil, func(dir string) error { return os.Mkdir(filepath.Join(dir, "tidemark-truncations.jsonl"), 0o755) }},
		"the port for HTTP is taken":      {map[string]string{"tidemark.http.listen": busy.Addr().String()}, func(string) error { return nil }},
	}
	for name, f := range fails {
		t.Run(name, func(t *testing.T) {
			o := alone(t, f.set)
			if err := f.damage(o.Config.LogDir); err != nil {
				t.Fatal(err)
			}
			n, err := Start(t.Context(), o)
			if err == nil {
				n.Kill()
				t.Fatal("the node starts")
			}
			refused(t, o)
		})
	}
}

func TestAKillAtAnyMomentOfTheStartEndsEverything(t *testing.T) {
	o := alone(t, nil)
	n, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	<-n.Ready()
	took := time.Since(began)
	n.Kill()
	for i := range 12 {
		o := alone(t, nil)
		n, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-n.Ready():
		case <-time.After(took * time.Duration(i) / 10):
		}
		n.Kill()
		refused(t, o)
		if err := goleak.Find(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnOrderlyStopIsACleanOne(t *testing.T) {
	o := alone(t, nil)
	n, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	<-n.Ready()
	epoch := n.broker.lifecycle.Epoch()
	if err := n.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(t, o)
	if err := n.Shutdown(t.Context()); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	dir, err := n.openDir()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if dir.CleanShutdownEpoch() != epoch {
		t.Errorf("the directory was left by broker epoch %d, not %d", dir.CleanShutdownEpoch(), epoch)
	}
}

func TestAFailedLogDirectoryFailsTheNode(t *testing.T) {
	o := alone(t, nil)
	n, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Kill()
	<-n.Ready()
	if err := os.RemoveAll(o.Config.LogDir); err != nil {
		t.Fatal(err)
	}
	if err := n.dir.CheckpointHW(nil); err == nil {
		t.Fatal("a folder that is gone takes a checkpoint")
	}
	select {
	case <-n.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("the node goes on")
	}
	if err := n.Err(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the node fails with %v", err)
	}
}

func TestAControllerAloneHasNoBroker(t *testing.T) {
	o := alone(t, nil)
	n := &Node{cfg: o.Config}
	if n.Addr() != "" || n.Views() != nil {
		t.Errorf("address %q, replicas %v", n.Addr(), n.Views())
	}
	select {
	case <-n.Ready():
	default:
		t.Error("it is not ready at once")
	}
}

// A batch is summed once because its listener has it looked at while it comes.
func TestTheListenerHasLargeProducesLookedAt(t *testing.T) {
	b := &broker{n: &Node{cfg: alone(t, nil).Config}}
	o := b.serverOptions()
	if o.Preview == nil {
		t.Fatal("nobody looks")
	}
	p, ok := o.Preview(9).(*preview.Preview)
	if !ok {
		t.Fatalf("a %T looks", p)
	}
	p.Free()
}
