package controlplane

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/stage"
)

// staged is three controllers and an observer that creates topics, on a stage.
type staged struct {
	t        *testing.T
	s        *stage.Stage
	voters   []Voter
	machines []*stage.Machine // of the controllers; the observer's is the last
	nodes    []*Controller
	observer *Observer
	acked    []string
}

const stagedDir = "/" + MetadataDir

func newStaged(t *testing.T, seed uint64) *staged {
	w := &staged{t: t, s: stage.New(rand.New(rand.NewPCG(seed, 0))), nodes: make([]*Controller, 3)}
	for i := range 4 {
		m := w.s.NewMachine(fmt.Sprint("node", i+1), i+1)
		m.Disk.Latency = time.Millisecond
		w.machines = append(w.machines, m)
		if i < 3 {
			w.voters = append(w.voters, Voter{ID: model.BrokerID(i + 1), Host: m.IP, Port: 9093})
			if err := Format(stagedDir, FormatOptions{Now: 1, FS: m.Disk.Files()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range w.nodes {
		w.start(i)
	}
	w.machines[3].Start("client", w.client)
	return w
}

func (w *staged) start(i int) {
	w.nodes[i] = nil
	w.machines[i].Start("controller", func(p *stage.Process) {
		l, err := p.Listen("0.0.0.0:9093")
		if err != nil {
			w.t.Error(err)
			return
		}
		o := Options{
			NodeID: w.voters[i].ID, ClusterID: testCluster, DirectoryID: model.UUID{0: 9, 15: byte(i)}, Dir: stagedDir,
			Voters: w.voters, Listener: l, Log: testLog(), FS: p.Machine.Disk.FS(p), SnapshotBytes: 20_000,
			Dial: p.Dial, Runtime: p.Runtime, Seed: p.Life,
		}
		o.Core.Configs, o.Core.SessionTimeout = anyConfigs{}, time.Hour
		if w.nodes[i], err = Start(context.Background(), o); err != nil {
			w.t.Error(err)
		}
	})
}

// client creates topics for as long as it lives.
func (w *staged) client(p *stage.Process) {
	o, err := StartObserver(context.Background(), ObserverOptions{
		NodeID: 101, ClusterID: testCluster, DirectoryID: model.UUID{8}, Dir: stagedDir, Voters: w.voters, Log: testLog(),
		FS: p.Machine.Disk.FS(p), SnapshotBytes: 20_000, Dial: p.Dial, Runtime: p.Runtime, Seed: 1,
	})
	if err != nil {
		w.t.Error(err)
		return
	}
	w.observer = o
	for registered := false; !registered; {
		ctx, cancel := p.Runtime.WithTimeout(context.Background(), 5*time.Second)
		_, err := register(ctx, o, 1, 9)
		registered = err == nil
		cancel()
	}
	for n := 0; !o.done.Closed(); n++ {
		name := fmt.Sprint("topic-", n)
		ctx, cancel := p.Runtime.WithTimeout(context.Background(), 5*time.Second)
		if code, err := createTopic(ctx, o, name); err == nil && code == model.None {
			w.acked = append(w.acked, name)
		}
		cancel()
		p.Runtime.Sleep(nil, 5*time.Millisecond)
	}
}

// turn runs the stage until cond holds.
func (w *staged) turn(what string, cond func() bool) {
	w.t.Helper()
	for end := w.s.Now() + time.Minute; !cond(); {
		if !w.s.Step() || w.s.Now() > end {
			w.t.Fatalf("%s: not at %v, after %d steps: %v", what, w.s.Now(), w.s.Steps(), w.s.Err())
		}
	}
}

// agree says whether everybody runs, nobody is busy and all hold the same.
func (w *staged) agree() bool {
	for _, n := range w.nodes {
		if n == nil || w.observer == nil {
			return false
		}
		img, end := n.Committed()
		if img.End() != end || end != w.observer.Image().End() {
			return false
		}
	}
	return true
}

// run has machines fail for a while and returns how it went.
func (w *staged) run() (digest uint64, topics int) {
	for round := range 6 {
		goal := len(w.acked) + 20
		w.turn("topics are created", func() bool { return len(w.acked) >= goal })
		victim := w.s.Rand.IntN(3)
		if round%2 == 0 {
			w.machines[victim].Kill()
		} else {
			w.machines[victim].PowerCut()
		}
		goal = len(w.acked) + 10
		w.turn("topics are created without one", func() bool { return len(w.acked) >= goal })
		w.start(victim)
	}
	w.turn("everybody agrees", w.agree)
	want := dump(w.observer.Image())
	for i, n := range w.nodes {
		img, _ := n.Committed()
		if dump(img) != want {
			w.t.Errorf("controller %d holds another image than the observer", i+1)
		}
	}
	for _, name := range w.acked {
		if w.observer.Image().TopicByName(name) == nil {
			w.t.Errorf("%s is lost", name)
		}
	}
	digest = w.s.Digest()
	w.leave()
	return digest, len(w.acked)
}

// leave has every process close what it runs.
func (w *staged) leave() {
	left := 0
	for i, n := range w.nodes {
		w.machines[i].Process().Go("leave", func() {
			if err := n.Close(); err != nil {
				w.t.Error(err)
			}
			left++
		})
	}
	w.machines[3].Process().Go("leave", func() {
		if err := w.observer.Close(); err != nil && !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
		left++
	})
	w.turn("everybody left", func() bool { return left == 4 })
	for _, m := range w.machines {
		m.Kill()
	}
}

func TestASeedReplaysTheMetadataPlane(t *testing.T) {
	reader := cryptorand.Reader
	defer func() { cryptorand.Reader = reader }()
	for seed := range uint64(3) {
		var digests []uint64
		for range 2 {
			cryptorand.Reader = rand.NewChaCha8([32]byte{byte(seed)})
			w := newStaged(t, seed)
			digest, topics := w.run()
			t.Logf("seed %d: %d topics, %d steps, %v", seed, topics, w.s.Steps(), w.s.Now())
			digests = append(digests, digest)
		}
		if digests[0] != digests[1] {
			t.Errorf("seed %d went two ways", seed)
		}
	}
}
