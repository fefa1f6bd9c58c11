package check

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/vfs"
)

// cluster is three brokers with real logs and real cores, and nothing between
// them but this test.
type cluster struct {
	t     testing.TB
	set   *Set
	h     *History
	c     Cluster
	img   *image.Image
	hosts []*host
	now   model.Time
	sent  int
}

// host is one broker.
type host struct {
	id    model.BrokerID
	disk  *vfs.Mem
	dir   *storage.Dir
	log   *storage.Log
	p     *partition.Partition
	peers partition.Peers
}

const began = model.Millis(1_700_000_000_000)

func newCluster(t testing.TB) *cluster {
	w := &cluster{t: t, h: NewHistory(), img: image.New()}
	w.set = New(Options{MinISR: 2, History: w.h})
	recs := []metalog.Record{&metalog.FeatureLevel{Name: featureELR, FeatureLevel: 1}}
	for id := model.BrokerID(1); id <= 3; id++ {
		recs = append(recs, &metalog.RegisterBroker{BrokerID: id, BrokerEpoch: model.BrokerEpoch(id), IncarnationID: model.UUID{byte(id)}})
	}
	recs = append(recs, &metalog.Topic{Name: "t", TopicID: topic})
	w.c.Controllers = []Controller{{ID: 4, Running: true}}
	w.apply(recs...)
	for id := model.BrokerID(1); id <= 3; id++ {
		h := &host{id: id, disk: vfs.NewMem(), peers: partition.Peers{}}
		for id := model.BrokerID(1); id <= 3; id++ {
			h.peers[id] = partition.Peer{Epoch: model.BrokerEpoch(id)}
		}
		w.hosts = append(w.hosts, h)
		w.c.Brokers = append(w.c.Brokers, Broker{ID: id, Replicas: func(visit func(Replica)) {
			visit(Replica{TP: tp, ID: tpid, P: h.p, Log: h.log})
		}})
		w.start(h)
	}
	w.assign(metalog.Partition{Leader: 1, ISR: three, LeaderEpoch: 0, PartitionEpoch: 0})
	return w
}

func (w *cluster) apply(recs ...metalog.Record) {
	w.img = w.img.Apply(recs, w.img.End()+model.Offset(len(recs)), 1)
	w.c.Controllers[0].Image, w.c.Controllers[0].End = w.img, w.img.End()
}

// assign makes a state of the partition committed, and has every broker hear it.
func (w *cluster) assign(p metalog.Partition) {
	p.TopicID, p.Replicas = topic, three
	w.apply(&p)
	for i, h := range w.hosts {
		w.c.Brokers[i].Image = w.img
		if w.c.Brokers[i].Running {
			w.step(h, &partition.Assign{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch,
				Replicas: three, ISR: slices.Clone(p.ISR)}, nil)
		}
	}
}

// start opens the log of a broker as a new process does.
func (w *cluster) start(h *host) {
	dir, err := storage.OpenDir(h.disk, "/d", storage.DirOptions{ClusterID: "P0y1z4e6mz4kF-HprJgivA", NodeID: h.id,
		DirectoryID: model.UUID{byte(h.id)}, Manual: true, Now: func() model.Millis { return began }})
	w.must(err)
	h.dir = dir
	if h.log = dir.Log(tp); h.log == nil {
		h.log, err = dir.Create(tp, topic, storage.DefaultLogConfig(), began)
		w.must(err)
	}
	h.p = partition.New(partition.Config{ID: h.id, LagMax: time.Minute, MinISR: 2, Peers: &h.peers, LEO: h.log.LEO(),
		LogStart: h.log.Start(), HW: h.log.CheckpointedHW(), Epochs: h.log.Epochs(), Producers: h.log.Producers()})
	b := &w.c.Brokers[h.id-1]
	b.Running, b.Life, b.Epoch = true, b.Life+1, model.BrokerEpoch(h.id)
}

// stop ends a broker's process.
func (w *cluster) stop(id model.BrokerID, how How) {
	b := &w.c.Brokers[id-1]
	b.Running = false
	w.set.Stopped(id, b.Life, how)
	w.sound()
}

func (w *cluster) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// sound demands that nothing is broken now.
func (w *cluster) sound() {
	w.t.Helper()
	w.must(w.set.AfterStep(&w.c))
}

// finds demands that a rule is broken now.
func (w *cluster) finds(rule string) {
	w.t.Helper()
	if v, _ := w.set.AfterStep(&w.c).(*Violation); v == nil || v.Invariant != rule {
		w.t.Fatalf("found %v, not %s", v, rule)
	}
}

// step gives one input to a core and carries out what it asks of its log.
func (w *cluster) step(h *host, in partition.Input, payload []byte) partition.Ready {
	rd := h.p.Step(w.now, began, in)
	w.c.Brokers[h.id-1].Steps++
	out := rd
	if rd.Truncate != nil {
		t := *rd.Truncate
		done, err := h.log.Truncate(t.To, slices.Clone(t.Epochs), began)
		w.must(err)
		w.step(h, &partition.Truncated{LEO: done.LEO, LogStart: done.Start, Pos: done.Pos, Producers: done.Producers}, nil)
	}
	if rd.PersistEpochs != nil {
		e := *rd.PersistEpochs
		w.must(h.log.WriteEpochs(slices.Clone(e.Epochs)))
		w.step(h, &partition.EpochPersisted{Epoch: e.Epoch}, nil)
	}
	if rd.Append != nil {
		a := *rd.Append
		_, follows := in.(*partition.FetchResponse)
		b := storage.AppendBatch{Bytes: payload, Stamp: !follows, Base: a.Base, Epoch: a.Epoch}
		if a.Epochs != nil {
			b.Epochs = slices.Clone(a.Epochs)
		}
		done, err := h.log.Append(began, b)
		w.must(err)
		w.step(h, &partition.Appended{End: done.End, Pos: done.Pos}, nil)
	}
	return out
}

// produce writes a batch through the leader.
func (w *cluster) produce(id model.BrokerID) {
	b := record.NewBuilder(record.PlainOptions())
	w.sent++
	b.Add(began, nil, fmt.Appendf(nil, "v%d", w.sent))
	bytes := slices.Clone(b.Bytes())
	hd, _ := record.ParseHeader(bytes)
	w.step(w.hosts[id-1], &partition.Produce{Acks: -1, Batch: hd.Producer(), Bytes: int32(len(bytes))}, bytes)
}

// fetch lets a follower fetch once.
func (w *cluster) fetch(id model.BrokerID) {
	w.t.Helper()
	h := w.hosts[id-1]
	at, ok := h.p.NextFetch()
	leader, _ := h.p.Leader()
	if !ok || !w.c.Brokers[leader-1].Running {
		return
	}
	l := w.hosts[leader-1]
	rd := w.step(l, &partition.FetchRequest{Replica: id, ReplicaEpoch: model.BrokerEpoch(id), LeaderEpoch: at.LeaderEpoch,
		Offset: at.Offset, LastEpoch: at.LastEpoch, LogStart: at.LogStart, MaxBytes: 1 << 20, Pos: model.UnknownPosition}, nil)
	r := *rd.Reply
	in := &partition.FetchResponse{LeaderEpoch: at.LeaderEpoch, Offset: at.Offset, Generation: at.Generation, Err: r.Err,
		Diverging: r.Diverging, HW: r.HW, LogStart: r.LogStart}
	var payload []byte
	if r.Err == model.None && r.Diverging.Epoch == model.NoEpoch && r.Limit > at.Offset {
		s, err := l.log.Read(at.Offset, 1<<20, r.Limit, true)
		w.must(err)
		payload = make([]byte, s.Len)
		if s.Len > 0 {
			_, err = io.ReadFull(io.NewSectionReader(s.File, s.Pos, int64(s.Len)), payload)
			w.must(err)
		}
		s.Release()
		for hd, b := range record.Split(payload) {
			in.Batches = append(in.Batches, partition.FetchedBatch{Base: hd.Base, Last: hd.LastOffset(), Epoch: hd.LeaderEpoch,
				Bytes: int32(len(b)), Producer: hd.Producer()})
		}
	}
	w.step(h, in, payload)
}

// busy writes n batches that every follower copies, and looks after each thing
// that happens.
func (w *cluster) busy(leader model.BrokerID, n int) {
	w.t.Helper()
	for range n {
		w.produce(leader)
		w.sound()
		for range 2 {
			for _, id := range three {
				w.fetch(id)
				w.sound()
			}
		}
	}
}

func TestAHealthyClusterPasses(t *testing.T) {
	w := newCluster(t)
	w.sound()
	w.busy(1, 10)
	p := w.set.parts[tpid]
	if p.commitEnd != 10 || len(p.nodes) != 10 || p.mirrors[2].agree != 10 {
		t.Fatalf("%d committed, %d batches, %d compared", p.commitEnd, len(p.nodes), p.mirrors[2].agree)
	}
	w.fetch(2)
	w.h.ProduceReturned(w.h.ProduceCalled(values("v3")), 2, OK)
	w.must(w.set.AtEnd(&w.c, nil))
	w.h.ProduceReturned(w.h.ProduceCalled(values("v4")), 2, OK)
	w.finds("AckedCommitted")
}

// A leader that is cut off goes on alone; its records are not committed, and it
// drops them when it follows.
func TestDivergenceAndItsEndPass(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 3)
	w.produce(1)
	w.sound()
	old := w.c.Brokers[0].Running
	w.c.Brokers[0].Running = false // hears nothing, but nobody stopped it
	w.assign(metalog.Partition{Leader: 2, ISR: []model.BrokerID{2, 3}, LeaderEpoch: 1, PartitionEpoch: 1})
	w.c.Brokers[0].Running = old
	w.sound()
	w.busy(2, 2)
	w.assign(metalog.Partition{Leader: 2, ISR: []model.BrokerID{2, 3}, LeaderEpoch: 1, PartitionEpoch: 2})
	w.busy(2, 2)
	p := w.set.parts[tpid]
	if m := p.mirrors[0]; m.end != 7 || m.batches[3] != p.mirrors[1].batches[3] {
		t.Errorf("b1 holds %v to %d", m.batches, m.end)
	}
}

func TestAKilledBrokerKeepsItsLog(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 3)
	w.stop(3, Killed)
	w.assign(metalog.Partition{Leader: 1, ISR: three[:2], PartitionEpoch: 1})
	w.hosts[2].disk = w.hosts[2].disk.Clone()
	w.start(w.hosts[2])
	w.sound()
	if w.set.parts[tpid].mirrors[2].lossy {
		t.Error("it counts as one that lost records")
	}
	w.stop(3, Killed)
	w.hosts[2].disk = w.hosts[2].disk.CrashClone(vfs.CrashOptions{})
	w.start(w.hosts[2])
	w.finds("KeptOnDisk")
}

// A log start that was not written down is taken back by a crash; the records
// that come with it are no loss.
func TestALogStartMayComeBack(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 6)
	w.must(w.hosts[2].log.Flush(began))
	w.must(w.hosts[2].log.RaiseStart(4))
	w.step(w.hosts[2], &partition.LogStartMoved{To: 4}, nil)
	w.sound()
	w.stop(3, PowerCut)
	w.hosts[2].disk = w.hosts[2].disk.CrashClone(vfs.CrashOptions{})
	w.assign(metalog.Partition{Leader: 1, ISR: three[:2], PartitionEpoch: 1})
	w.start(w.hosts[2])
	w.sound()
	if m := w.set.parts[tpid].mirrors[2]; m.lossy || m.start != 0 || len(m.batches) != 6 {
		t.Errorf("lossy %v, starts at %d with %d batches", m.lossy, m.start, len(m.batches))
	}
}

// What is below the recovery point was synced.
func TestAPowerCutMayNotTakeWhatWasSynced(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 3)
	w.must(w.hosts[2].log.Flush(began))
	w.step(w.hosts[2], &partition.Tick{}, nil)
	w.sound()
	w.stop(3, PowerCut)
	w.hosts[2].disk = vfs.NewMem()
	w.assign(metalog.Partition{Leader: 1, ISR: three[:2], PartitionEpoch: 1})
	w.start(w.hosts[2])
	w.finds("KeptOnDisk")
}

// A broker that still may be elected although it stopped without an end is found
// when it registers.
func TestARegistrationThatLetsInIsFound(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 3)
	w.stop(3, Killed)
	w.hosts[2].disk = w.hosts[2].disk.Clone()
	w.start(w.hosts[2])
	w.finds("UncleanExclusion")
}

func TestAPowerCutExcusesOneBroker(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 3)
	w.stop(3, PowerCut)
	w.assign(metalog.Partition{Leader: 1, ISR: three[:2], PartitionEpoch: 1})
	w.hosts[2].disk = w.hosts[2].disk.CrashClone(vfs.CrashOptions{})
	w.start(w.hosts[2])
	w.sound()
	p := w.set.parts[tpid]
	if !p.mirrors[2].lossy || p.unclean {
		t.Fatalf("lossy %v, unclean %v", p.mirrors[2].lossy, p.unclean)
	}
	// It comes back into the ISR before it has caught up.
	w.assign(metalog.Partition{Leader: 1, ISR: three, LeaderEpoch: 0, PartitionEpoch: 2})
	if v, _ := w.set.AfterStep(&w.c).(*Violation); v == nil || !slices.Contains([]string{"CandidateCompleteness", "StrongISR", "KnowledgeSoundness"}, v.Invariant) {
		t.Errorf("found %v", v)
	}
}

func TestOtherBytesInACopyAreFound(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 3)
	w.produce(1)
	w.sound()
	b := record.NewBuilder(record.PlainOptions())
	b.Add(began, nil, []byte("other"))
	bytes := slices.Clone(b.Bytes())
	_, err := w.hosts[1].log.Append(began, storage.AppendBatch{Bytes: bytes, Stamp: true, Base: 3})
	w.must(err)
	w.step(w.hosts[1], &partition.Tick{}, nil)
	w.finds("LogMatching")
}

func TestACutThatTheCoreKnowsNothingOfIsFound(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 3)
	_, err := w.hosts[1].log.Truncate(2, []model.EpochStart{{}}, began)
	w.must(err)
	w.step(w.hosts[1], &partition.Tick{}, nil)
	w.finds("LogMarks")
}

func TestAWakeUpThatIsLostIsFound(t *testing.T) {
	w := newCluster(t)
	w.busy(1, 1)
	w.c.Brokers[1].Overdue = func() error { return fmt.Errorf("a fetch waits") }
	w.step(w.hosts[1], &partition.Tick{}, nil)
	w.finds("NoLostWakeup")
}

// mine is an invariant of a user.
type mine struct{}

func (mine) Name() string           { return "Mine" }
func (mine) Check(c *Cluster) error { return fmt.Errorf("%d brokers", len(c.Brokers)) }

func TestInvariantsOfUsersAreChecked(t *testing.T) {
	w := newCluster(t)
	w.sound()
	w.set.Add(mine{})
	w.finds("Mine")
}

func BenchmarkNothingChanged(b *testing.B) {
	w := newCluster(b)
	w.busy(1, 100)
	for b.Loop() {
		if err := w.set.AfterStep(&w.c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOneReplicaChanged(b *testing.B) {
	w := newCluster(b)
	w.busy(1, 100)
	for b.Loop() {
		w.step(w.hosts[0], &partition.Tick{}, nil)
		if err := w.set.AfterStep(&w.c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOneBatchEverywhere(b *testing.B) {
	w := newCluster(b)
	for b.Loop() {
		w.busy(1, 1)
	}
}
