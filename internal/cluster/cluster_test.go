package cluster

import (
	"net"
	"testing"

	"go.uber.org/goleak"
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
