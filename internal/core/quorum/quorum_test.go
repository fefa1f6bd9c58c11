package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// world is nodes with disks that keep what was persisted, and a network that
// loses and reorders messages.
type world struct {
	t     *testing.T
	rng   *rand.Rand
	nodes []*member
	net   []*pb.Message
	cut   map[model.BrokerID]bool // isolated nodes
	wall  model.Millis
}

// member is one node and what it has applied.
type member struct {
	id   model.BrokerID
	node *Node
	log  *Log
	// disk is what a restart finds.
	state   *pb.HardState
	snap    Snapshot
	entries []*pb.Entry
	applied []byte // the batches, one after the other
	leads   map[model.Epoch]bool
}

const voters = 3

func newWorld(t *testing.T, seed uint64) *world {
	cryptotest.SetGlobalRandom(t, seed)
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), cut: map[model.BrokerID]bool{}}
	ids := []model.BrokerID{0, 1, 2}
	for _, id := range ids {
		m := &member{id: id, snap: Snapshot{Conf: Conf(ids)}, leads: map[model.Epoch]bool{}}
		w.nodes = append(w.nodes, m)
		w.restart(m)
	}
	return w
}

// restart starts a node on its disk: it applies everything anew.
func (w *world) restart(m *member) {
	m.log = NewLog(m.state, m.snap)
	if err := m.log.Append(m.entries); err != nil {
		w.t.Fatal(err)
	}
	node, err := New(Config{
		ID: m.id, Log: m.log, ElectionTicks: 10, HeartbeatTicks: 3, Logger: quiet{},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	m.node, m.applied = node, nil
}

// quiet is a raft logger that says nothing and panics as raft expects.
type quiet struct{ raft.Logger }

func (quiet) Debug(...any)              {}
func (quiet) Debugf(string, ...any)     {}
func (quiet) Info(...any)               {}
func (quiet) Infof(string, ...any)      {}
func (quiet) Warning(...any)            {}
func (quiet) Warningf(string, ...any)   {}
func (quiet) Error(...any)              {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (quiet) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }

// work carries out what a node asks for. With crash it stops between the disk
// and everything else, and restarts.
func (w *world) work(m *member, crash bool) {
	for {
		rd, ok := m.node.Ready()
		if !ok {
			return
		}
		w.net = append(w.net, rd.Early...)
		if rd.State != nil {
			m.state = rd.State
		}
		for _, e := range rd.Entries {
			m.entries = append(m.entries[:e.GetIndex()-1:e.GetIndex()-1], e)
		}
		if crash {
			w.restart(m)
			return
		}
		if err := m.node.Persisted(rd); err != nil {
			w.t.Fatal(err)
		}
		w.net = append(w.net, rd.Late...)
		for _, e := range rd.Committed {
			before := m.node.Applied()
			at, err := m.node.Apply(e)
			if err != nil {
				w.t.Fatalf("node %d: %v", m.id, err)
			}
			if len(e.GetData()) == 0 && at.End != before.End {
				w.t.Fatalf("node %d: an empty entry took offsets [%d, %d)", m.id, before.End, at.End)
			}
			m.applied = append(m.applied, e.GetData()...)
		}
		w.wall++
		if err := m.node.Advance(w.wall); err != nil {
			w.t.Fatal(err)
		}
		if epoch, ok := m.node.Leading(); ok && !m.leads[epoch] {
			w.checkOneLeader(m, epoch)
		}
	}
}

func (w *world) checkOneLeader(m *member, epoch model.Epoch) {
	m.leads[epoch] = true
	for _, o := range w.nodes {
		if o != m && o.leads[epoch] {
			w.t.Fatalf("nodes %d and %d both lead in epoch %d", m.id, o.id, epoch)
		}
	}
}

// step does one random thing.
func (w *world) step() {
	m := w.nodes[w.rng.IntN(voters)]
	switch k := w.rng.IntN(100); {
	case k < 30:
		m.node.Tick()
	case k < 80 && len(w.net) > 0:
		w.deliver()
		return
	case k < 95:
		w.propose(m)
	case k < 96:
		w.cut[m.id] = !w.cut[m.id]
	case k < 97:
		w.restart(m)
	}
	w.work(m, w.rng.IntN(200) == 0)
}

func (w *world) deliver() {
	i := w.rng.IntN(len(w.net))
	msg := w.net[i]
	w.net = append(w.net[:i:i], w.net[i+1:]...)
	from, to := NodeID(msg.GetFrom()), NodeID(msg.GetTo())
	if w.cut[from] || w.cut[to] || w.rng.IntN(20) == 0 || msg.GetType() == pb.MsgSnap {
		return
	}
	m := w.nodes[to]
	if err := m.node.Step(msg); err != nil && !errors.Is(err, raft.ErrProposalDropped) {
		w.t.Fatal(err)
	}
	w.work(m, w.rng.IntN(200) == 0)
}

// propose has a node that thinks it leads propose one or two batches, whose
// offsets it says.
func (w *world) propose(m *member) {
	epoch, ok := m.node.Leading()
	if !ok {
		if _, err := m.node.Propose(1, metalog.Level, []metalog.Record{&metalog.NoOp{}}); !errors.Is(err, ErrNotLeader) {
			w.t.Fatalf("a follower proposes: %v", err)
		}
		return
	}
	next := m.node.Next()
	one := []metalog.Record{&metalog.Topic{Name: fmt.Sprint(next, "-", epoch)}, &metalog.NoOp{}}
	two := []metalog.Record{&metalog.NoOp{}}
	end, err := m.node.Propose(w.wall, metalog.Level, one, two)
	if err == nil && (end != next+3 || m.node.Next() != end) {
		w.t.Fatalf("three records at %d end at %d, the next is %d", next, end, m.node.Next())
	}
}

// settle heals the network and lets the nodes agree.
func (w *world) settle() {
	clear(w.cut)
	for range 3000 {
		for _, m := range w.nodes {
			m.node.Tick()
			w.work(m, false)
		}
		for len(w.net) > 0 {
			msg := w.net[0]
			w.net = w.net[1:]
			m := w.nodes[NodeID(msg.GetTo())]
			if err := m.node.Step(msg); err != nil {
				w.t.Fatal(err)
			}
			w.work(m, false)
		}
		if w.agreed() {
			return
		}
	}
	w.t.Fatal("the nodes do not agree")
}

func (w *world) agreed() bool {
	leads := 0
	for _, m := range w.nodes {
		if _, ok := m.node.Leading(); ok {
			leads++
		}
		if m.node.Applied() != w.nodes[0].node.Applied() || m.node.Applied().End != m.log.End() {
			return false
		}
	}
	return leads == 1
}

// checkLog reads the log of a node as Kafka does: offsets without a gap, epochs
// that do not fall, a LeaderChange first in each.
func (w *world) checkLog(m *member) {
	next, epoch := model.Offset(0), model.Epoch(0)
	n, err := metalog.DecodeBatches(m.applied, func(b metalog.Batch) error {
		if b.Base != next || b.Epoch < epoch {
			return fmt.Errorf("a batch at %d of epoch %d follows %d of epoch %d", b.Base, b.Epoch, next, epoch)
		}
		if b.Epoch > epoch {
			c, ok := firstControl(b).(*metalog.LeaderChange)
			if !ok || !w.nodes[c.Leader].leads[b.Epoch] {
				return fmt.Errorf("epoch %d begins with %+v", b.Epoch, firstControl(b))
			}
		}
		next, epoch = b.End, b.Epoch
		return nil
	})
	if err != nil || n != len(m.applied) {
		w.t.Fatalf("node %d: %d of %d bytes: %v", m.id, n, len(m.applied), err)
	}
	if next != m.node.Applied().End || epoch != m.node.Applied().Epoch {
		w.t.Fatalf("node %d applied up to %+v, its log ends at %d of epoch %d", m.id, m.node.Applied(), next, epoch)
	}
}

func firstControl(b metalog.Batch) metalog.Control {
	if len(b.Control) == 0 {
		return nil
	}
	return b.Control[0]
}

func TestStampsFitOnEveryReplicaWhateverTheNetworkDoes(t *testing.T) {
	overwritten, records := 0, model.Offset(0)
	for seed := range uint64(40) {
		w := newWorld(t, seed)
		for range 4000 {
			lengths := [voters]int{}
			for i, m := range w.nodes {
				lengths[i] = len(m.entries)
			}
			w.step()
			for i, m := range w.nodes {
				if len(m.entries) < lengths[i] {
					overwritten += lengths[i] - len(m.entries)
				}
			}
		}
		w.settle()
		for _, m := range w.nodes {
			w.checkLog(m)
			if !bytes.Equal(m.applied, w.nodes[0].applied) {
				t.Fatalf("seed %d: nodes %d and 0 applied different logs", seed, m.id)
			}
		}
		records += w.nodes[0].node.Applied().End
	}
	t.Logf("%d records, %d entries overwritten", records, overwritten)
	if records < 1000 || overwritten == 0 {
		t.Fatal("the runs do not reach what they are to test")
	}
}

// A voter comes back with a new disk, or with a tail cut off, to a leader that
// knows what it had acknowledged.
func TestAVoterThatLostWhatItAcknowledgedIsBroughtUpAgain(t *testing.T) {
	for seed := range uint64(20) {
		for name, keep := range map[string]func(entries int) int{
			"everything":     func(int) int { return 0 },
			"half":           func(n int) int { return n / 2 },
			"the last entry": func(n int) int { return n - 1 },
		} {
			w := newWorld(t, seed)
			w.settle()
			for range 5 {
				w.propose(w.leader())
				w.settle()
			}
			m := w.nodes[int(w.leader().id+1+model.BrokerID(seed%2))%voters]
			w.lose(m, keep(len(m.entries)))
			w.propose(w.leader())
			w.settle()
			for _, m := range w.nodes {
				w.checkLog(m)
				if !bytes.Equal(m.applied, w.nodes[0].applied) {
					t.Fatalf("seed %d, %s lost: nodes %d and 0 applied different logs", seed, name, m.id)
				}
			}
		}
	}
}

// lose restarts a node with n entries left, or none and an empty disk.
func (w *world) lose(m *member, n int) {
	m.entries = m.entries[:n:n]
	commit := min(m.state.GetCommit(), uint64(n))
	m.state = &pb.HardState{Term: m.state.Term, Vote: m.state.Vote, Commit: &commit}
	if n == 0 {
		m.state = nil
	}
	w.restart(m)
}

func (w *world) leader() *member {
	for _, m := range w.nodes {
		if _, ok := m.node.Leading(); ok {
			return m
		}
	}
	w.t.Fatal("nobody leads")
	return nil
}

func TestAForeignStampStopsTheNode(t *testing.T) {
	w := newWorld(t, 1)
	w.settle()
	m := w.nodes[0]
	p := m.node.Applied()
	good := metalog.AppendBatch(nil, p.End, model.Epoch(p.Term), 1, []metalog.Record{&metalog.NoOp{}}, metalog.Level)
	for name, data := range map[string][]byte{
		"offset too high": metalog.AppendBatch(nil, p.End+1, model.Epoch(p.Term), 1, []metalog.Record{&metalog.NoOp{}}, metalog.Level),
		"offset too low":  metalog.AppendBatch(nil, p.End-1, model.Epoch(p.Term), 1, []metalog.Record{&metalog.NoOp{}}, metalog.Level),
		"epoch":           metalog.AppendBatch(nil, p.End, model.Epoch(p.Term+1), 1, []metalog.Record{&metalog.NoOp{}}, metalog.Level),
		"second batch":    append(bytes.Clone(good), good...),
		"half a batch":    good[:len(good)-1],
		"no batch":        []byte("metadata"),
	} {
		e := &pb.Entry{Index: new(p.Index + 1), Term: new(p.Term), Type: pb.EntryNormal.Enum(), Data: data}
		if _, err := m.node.Apply(e); err == nil {
			t.Errorf("%s: applied", name)
		}
		if m.node.Applied() != p {
			t.Errorf("%s: the applied point moved", name)
		}
	}
	e := &pb.Entry{Index: new(p.Index + 1), Term: new(p.Term), Type: pb.EntryNormal.Enum(), Data: good}
	if at, err := m.node.Apply(e); err != nil || at.End != p.End+1 {
		t.Errorf("a good stamp: %+v, %v", at, err)
	}
}

func TestANodeRefusesWhatIsNotMeantForIt(t *testing.T) {
	w := newWorld(t, 1)
	w.settle()
	to := func(from, to uint64, typ pb.MessageType, term uint64) *pb.Message {
		return &pb.Message{From: new(from), To: new(to), Type: typ.Enum(), Term: new(term)}
	}
	for name, m := range map[string]*pb.Message{
		"another node":   to(RaftID(1), RaftID(2), pb.MsgHeartbeat, 1),
		"itself":         to(RaftID(0), RaftID(0), pb.MsgHeartbeat, 1),
		"nobody":         to(0, RaftID(0), pb.MsgHeartbeat, 1),
		"a local thread": to(raft.LocalAppendThread, RaftID(0), pb.MsgStorageAppendResp, 1),
		"a local type":   to(RaftID(1), RaftID(0), pb.MsgHup, 1),
		"a huge term":    to(RaftID(1), RaftID(0), pb.MsgHeartbeat, 1<<31),
	} {
		if err := w.nodes[0].node.Step(m); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestALogKeepsAFewEntriesBehindItsSnapshot(t *testing.T) {
	w := newWorld(t, 5)
	w.settle()
	var m *member
	for _, n := range w.nodes {
		if _, ok := n.node.Leading(); ok {
			m = n
		}
	}
	for range 50 {
		w.propose(m)
		w.settle()
	}
	p := m.node.Applied()
	size := int64(len(m.entries[len(m.entries)-1].GetData()))
	m.log.Compact(Snapshot{Point: p, Conf: m.node.Conf()}, 5*size)
	first, _ := m.log.FirstIndex()
	if first != p.Index-4 {
		t.Errorf("the first entry is %d, five are to stay behind %d", first, p.Index)
	}
	if got, err := m.log.Term(first - 1); err != nil || got != p.Term {
		t.Errorf("the term before the first entry: %d, %v", got, err)
	}
	if _, err := m.log.Term(first - 2); !errors.Is(err, raft.ErrCompacted) {
		t.Errorf("a dropped entry: %v", err)
	}
	if _, err := m.log.Entries(first-1, first, 1<<20); !errors.Is(err, raft.ErrCompacted) {
		t.Errorf("a dropped entry: %v", err)
	}
	if m.log.Bytes() != 5*size || m.log.End() != p.End {
		t.Errorf("%d bytes up to %d are kept", m.log.Bytes(), m.log.End())
	}
	s, err := m.log.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := DecodeSnapshot(s); err != nil || back.Point != p {
		t.Errorf("the snapshot names %+v, not %+v (%v)", back.Point, p, err)
	}
	w.propose(m)
	w.settle()
}

func TestASeedGivesOneRun(t *testing.T) {
	var logs [2][]byte
	for i := range logs {
		w := newWorld(t, 11)
		for range 2000 {
			w.step()
		}
		w.settle()
		logs[i] = w.nodes[0].applied
	}
	if !bytes.Equal(logs[0], logs[1]) {
		t.Fatal("the same seed gave two logs")
	}
}

func TestADroppedProposalTakesNoOffset(t *testing.T) {
	w := newWorld(t, 9)
	w.settle()
	for _, m := range w.nodes {
		if _, ok := m.node.Leading(); !ok {
			continue
		}
		value, big := string(make([]byte, 30_000)), []metalog.Record{}
		for range 100 {
			big = append(big, &metalog.Config{ResourceType: metalog.ResourceBroker, Name: "x", Value: &value})
		}
		var err error
		next := m.node.Next()
		for range 100 { // nothing is delivered, so nothing is committed
			next = m.node.Next()
			if _, err = m.node.Propose(1, metalog.Level, big); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrDropped) || m.node.Next() != next {
			t.Fatalf("err %v, the next offset went from %d to %d", err, next, m.node.Next())
		}
		w.work(m, false)
		w.settle()
		w.propose(m)
		w.settle()
		w.checkLog(m)
		return
	}
}
