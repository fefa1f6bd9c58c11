package check

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

var (
	topic = model.UUID{7}
	tpid  = model.TopicIDPartition{TopicID: topic}
	tp    = model.TopicPartition{Topic: "t"}
	three = []model.BrokerID{1, 2, 3}
)

// state is a sound cluster of three brokers with one partition: b1 leads in epoch
// 1, its log is [0,1]@0 [2,3]@1 [4,4]@1 with the HW 4, the others follow.
type state struct {
	*Set
	p          *part
	m1, m2, m3 *mirror
	seen       map[model.BrokerID]*Broker
	c          Cluster
	h          *History
}

func sound() *state {
	h := NewHistory()
	s := &state{Set: New(Options{MinISR: 2, History: h}), h: h}
	s.truth = image.New().Apply([]metalog.Record{
		&metalog.FeatureLevel{Name: featureELR, FeatureLevel: 1},
		&metalog.RegisterBroker{BrokerID: 1, BrokerEpoch: 1, IncarnationID: model.UUID{1}},
		&metalog.RegisterBroker{BrokerID: 2, BrokerEpoch: 2, IncarnationID: model.UUID{2}},
		&metalog.RegisterBroker{BrokerID: 3, BrokerEpoch: 3, IncarnationID: model.UUID{3}},
		&metalog.Topic{Name: "t", TopicID: topic},
		&metalog.Partition{TopicID: topic, Replicas: three, ISR: three, Leader: 1, LeaderEpoch: 1, PartitionEpoch: 5},
	}, 6, 1)
	s.elr = true
	s.p = s.partOf(tpid, tp)
	s.p.truth = s.truth.Partition(topic, 0)
	a := &node{base: 0, last: 1, epoch: 0, crc: 1, producer: -1, values: []string{"a", "b"}}
	b := &node{base: 2, last: 3, epoch: 1, crc: 2, producer: 9, count: 2, parent: a, values: []string{"c", "d"}}
	c := &node{base: 4, last: 4, epoch: 1, crc: 3, producer: 9, count: 1, seq: 2, parent: b, values: []string{"e"}}
	for _, n := range []*node{a, b, c} {
		s.p.nodes[nodeKey{n.base, n.epoch}] = n
	}
	s.p.commits, s.p.commitEnd, s.p.highest = []*node{a, b}, 4, 4
	for id := model.BrokerID(1); id <= 3; id++ {
		seat := &seat{id: id, life: 1, running: true, epoch: model.BrokerEpoch(id), mirrors: map[model.TopicIDPartition]*mirror{}}
		m := &mirror{seat: seat, part: s.p, p: core(id), batches: []*node{a, b, c}, end: 5}
		m.now = facts{steps: 5, role: partition.Follower, leader: 1, epoch: 1, pepoch: 5, marks: partition.Marks{LSO: 4, HW: 4, LEO: 5},
			epochStart: model.UnknownOffset, all: three}
		s.seats, s.p.mirrors = append(s.seats, seat), append(s.p.mirrors, m)
		seat.mirrors[tpid] = m
		s.c.Brokers = append(s.c.Brokers, Broker{ID: id, Life: 1, Running: true, Epoch: seat.epoch, Image: s.truth})
	}
	s.c.Controllers = []Controller{{ID: 4, Running: true, Image: s.truth, End: s.truth.End()}}
	s.m1, s.m2, s.m3 = s.p.mirrors[0], s.p.mirrors[1], s.p.mirrors[2]
	s.m1.now.role, s.m1.now.epochStart, s.m1.now.isr, s.m1.now.maximal, s.m1.now.minISR = partition.Leader, 2, three, three, 2
	s.m1.now.remotes = []partition.RemoteView{{ID: 2, LEO: 5, Epoch: 2}, {ID: 3, LEO: 4, Epoch: 3}}
	for _, m := range s.p.mirrors {
		m.was = m.now
		m.was.steps, m.was.marks.HW, m.was.marks.LSO = 4, 2, 2
	}
	return s
}

// core is a replica of the sound log without a role.
func core(id model.BrokerID) *partition.Partition {
	return partition.New(partition.Config{ID: id, LEO: 5, HW: 4, MinISR: 1, Epochs: []model.EpochStart{{Epoch: 0}, {Epoch: 1, Start: 2}}})
}

// broken runs one rule over the whole state.
func (s *state) broken(name string) string {
	for _, r := range s.rules.replica {
		for _, m := range s.p.mirrors {
			if text := r.replica(s.Set, m); text != "" && nameOf(r) == name {
				return text
			}
		}
	}
	for _, r := range s.rules.part {
		if text := r.part(s.Set, s.p); text != "" && nameOf(r) == name {
			return text
		}
	}
	for _, r := range s.rules.settled {
		if _, text := r.settled(s.Set, &s.c); text != "" && nameOf(r) == name {
			return text
		}
	}
	return ""
}

func TestASoundStatePasses(t *testing.T) {
	s := sound()
	for _, a := range All() {
		if text := s.broken(a.Name); text != "" && a.Name != "HWReachesLEO" { // the cluster is not at rest
			t.Errorf("%s: %s", a.Name, text)
		}
	}
}

// other is a batch that nobody committed.
var other = &node{base: 2, last: 3, epoch: 1, crc: 99, producer: -1}

// unsound is what makes a sound state unsound, and who minds.
var unsound = []struct {
	rule, why string
	breaks    func(s *state)
}{
	{"LogMarks", "LSO above HW", func(s *state) { s.m2.now.marks.LSO = 5 }},
	{"LogMarks", "a log shorter than the LEO", func(s *state) { s.m2.end = 4 }},
	{"LogMarks", "a recovery point above the log", func(s *state) { s.m2.now.recovery = 6 }},
	{"HWStep", "a leader's HW falls", func(s *state) { s.m1.now.marks.HW = 1 }},
	{"HWStep", "too small an ISR", func(s *state) { s.m1.now.isr, s.m1.was.isr = three[:1], three[:1] }},
	{"HWStep", "a member known below", func(s *state) { s.m1.now.remotes[1].LEO = 3 }},
	{"HWStep", "a member that has less", func(s *state) { s.m3.end = 3 }},
	{"RoleState", "the leader epoch falls", func(s *state) { s.m2.now.epoch = 0 }},
	{"RoleState", "the partition epoch falls", func(s *state) { s.m2.now.pepoch = 4 }},
	{"RoleState", "a follower with followers", func(s *state) { s.m2.now.remotes = s.m1.now.remotes }},
	{"RoleState", "a leader outside its ISR", func(s *state) { s.m1.now.isr = three[1:] }},
	{"RoleState", "an ISR that counts another", func(s *state) { s.m1.now.isr = three[:2] }},
	{"RoleState", "an epoch above the log", func(s *state) { s.m1.now.epochStart = 6 }},
	{"EpochCache", "another epoch", func(s *state) {
		s.m2.p = partition.New(partition.Config{ID: 2, LEO: 5, Epochs: []model.EpochStart{{Epoch: 0}}})
	}},
	{"EpochCache", "no epoch", func(s *state) { s.m2.p = partition.New(partition.Config{ID: 2, LEO: 5}) }},
	{"LatestMonotone", "the end falls", func(s *state) {
		ids := three[:1]
		s.m1.p.Step(0, 0, &partition.Assign{Leader: 1, LeaderEpoch: 1, Replicas: ids, ISR: ids})
		s.m1.p.Step(0, 0, &partition.EpochPersisted{Epoch: 1})
		s.m1.now.serving, s.p.latest = true, 9
	}},
	{"DivergenceEnds", "cuts without end", func(s *state) { s.m2.now.cuts = 6 }},
	{"StablePrefix", "another batch below the HW", func(s *state) { s.m2.batches = []*node{s.m2.batches[0], other} }},
	{"StablePrefix", "a HW above all leaders'", func(s *state) { s.m2.now.marks.HW = 5 }},
	{"StrongISR", "a candidate lacks a batch", func(s *state) { s.m2.batches = s.m2.batches[:1] }},
	{"LeaderCompleteness", "the leader lacks a batch", func(s *state) { s.m1.batches = s.m1.batches[:1] }},
	{"CandidateCompleteness", "a candidate lacks a batch", func(s *state) { s.m3.batches = s.m3.batches[:1] }},
	{"QuorumSuperset", "the ISR is larger", func(s *state) { s.m1.now.maximal = three[:2] }},
	{"QuorumSuperset", "the ELR is not counted", func(s *state) {
		p := *s.p.truth
		p.ISR, p.ELR = three[:2], three[2:]
		s.p.truth, s.m1.now.isr, s.m1.now.maximal = &p, three[:2], three[:2]
	}},
	{"KnowledgeSoundness", "a follower has less", func(s *state) { s.m2.batches, s.m2.end = s.m2.batches[:2], 4 }},
	{"KnowledgeSoundness", "a follower has something else", func(s *state) { s.m3.batches = []*node{s.m3.batches[0], other} }},
	{"Unfenced", "a broker is down", func(s *state) { s.c.Brokers[1].Running = false }},
	{"Unfenced", "an old registration", func(s *state) { s.c.Brokers[1].Epoch = 77 }},
	{"ISRFull", "a follower is behind", func(s *state) { s.m3.now.marks.LEO = 4 }},
	{"ISRFull", "nobody leads", func(s *state) { s.m1.now.role = partition.Follower }},
	{"HWReachesLEO", "a HW below the end", func(*state) {}},
	{"Answered", "a produce without an answer", func(s *state) { s.h.ProduceCalled(Produce{TP: tpid, Values: []string{"x"}}) }},
	{"ConfigsObeyed", "a log that is synced less often", func(s *state) {
		every := "1"
		s.truth = s.truth.Apply([]metalog.Record{&metalog.Config{ResourceType: metalog.ResourceTopic, ResourceName: "t", Name: "flush.messages", Value: &every}}, 7, 1)
		s.m1.now.flushes, s.m2.now.flushes, s.m3.now.flushes = 1, 1, 1<<63-1
	}},
	{"ISRSettled", "an ISR that nobody decides", func(s *state) { s.m1.now.pending = true }},
	{"MetadataConverged", "a broker without metadata", func(s *state) { s.c.Brokers[2].Image = image.New() }},
	{"MetadataConverged", "a replica that has not heard", func(s *state) { s.m3.now.pepoch = 4 }},
	{"ReassignmentDone", "a replica is to go", func(s *state) { p := *s.p.truth; p.Removing = three[2:]; s.p.truth = &p }},
}

// Each checker fails on a state that only differs from a sound one in what the
// checker is there for.
func TestEveryCheckerOfStatesCanFail(t *testing.T) {
	for _, test := range unsound {
		t.Run(test.rule+"/"+test.why, func(t *testing.T) {
			s := sound()
			test.breaks(s)
			text := s.broken(test.rule)
			if text == "" {
				t.Fatal("nothing is found")
			}
			t.Log(text)
		})
	}
}

// What holds only while a partition is clean is not demanded after.
func TestLossBeyondTheMinimumExcusesLoss(t *testing.T) {
	s := sound()
	s.m1.batches, s.m2.batches = s.m1.batches[:1], s.m2.batches[:1]
	s.noteLoss(s.m1)
	s.m1.lossy = false
	if s.broken("LeaderCompleteness") == "" {
		t.Error("one lossy replica of a minimum of two excuses a loss")
	}
	s.noteLoss(s.m2)
	if s.Clean(tpid) {
		t.Error("two lossy replicas of a minimum of two leave a partition clean")
	}
	for _, a := range All() {
		if a.Clean && s.broken(a.Name) != "" {
			t.Errorf("%s is still checked", a.Name)
		}
	}
}

// arrivals are batches that may not come to the log of b1.
var arrivals = []struct {
	rule, why string
	seen      node
	alters    func(s *state)
}{
	{"LogOrder", "an overlap", node{base: 4, last: 5, epoch: 1, producer: -1}, nil},
	{"LogOrder", "an epoch that falls", node{base: 5, last: 5, epoch: 0, producer: -1}, nil},
	{"SequenceContiguous", "a gap", node{base: 5, last: 5, epoch: 1, producer: 9, seq: 4, count: 1}, nil},
	{"SequenceContiguous", "a repeat", node{base: 5, last: 5, epoch: 1, producer: 9, seq: 2, count: 1}, nil},
	{"SequenceContiguous", "a new epoch that goes on", node{base: 5, last: 5, epoch: 1, producer: 9, pepoch: 1, seq: 3, count: 1}, nil},
	{"SequenceContiguous", "an old epoch", node{base: 5, last: 5, epoch: 1, producer: 9, pepoch: -1, count: 1}, nil},
	{"OneWriterPerEpoch", "another life", node{base: 5, last: 5, epoch: 1, producer: -1}, func(s *state) {
		s.p.writers[1] = writer{1, 7}
	}},
	{"LogMatching", "other bytes", node{base: 5, last: 5, epoch: 1, crc: 8, producer: -1}, func(s *state) {
		s.p.nodes[nodeKey{5, 1}] = &node{base: 5, last: 5, epoch: 1, crc: 9, producer: -1}
	}},
	{"LogMatching", "something else before", node{base: 5, last: 5, epoch: 1, producer: -1}, func(s *state) {
		n := &node{base: 5, last: 5, epoch: 1, producer: -1, parent: s.p.commits[0]}
		s.p.nodes[nodeKey{5, 1}] = n
		s.m2.batches = []*node{s.p.commits[0], n}
	}},
}

// A batch that comes to a log is compared with those before it, there and
// elsewhere.
func TestEveryCheckerOfBatchesCanFail(t *testing.T) {
	for _, test := range arrivals {
		t.Run(test.rule+"/"+test.why, func(t *testing.T) {
			s := sound()
			if test.alters != nil {
				test.alters(s)
			}
			err := s.take(s.m1, []*node{&test.seen}, test.seen.last+1, true, s.arrived)
			if v, ok := err.(*Violation); !ok || v.Invariant != test.rule {
				t.Fatalf("found %v", err)
			}
		})
	}
	s := sound()
	good := &node{base: 5, last: 6, epoch: 1, producer: 9, seq: 3, count: 2}
	for _, m := range s.p.mirrors {
		copied := *good
		if err := s.take(m, []*node{&copied}, 7, true, s.arrived); err != nil {
			t.Errorf("a sound batch: %v", err)
		}
	}
	if s.m1.batches[3] != s.m2.batches[3] || s.m2.batches[3].parent != s.m3.batches[2] {
		t.Error("copies of a batch are not one node")
	}
}

func TestEveryCheckerOfTheControllerCanFail(t *testing.T) {
	part := func(change func(p *metalog.Partition)) []metalog.Record {
		p := &metalog.Partition{TopicID: topic, Replicas: three, ISR: three, Leader: 1, LeaderEpoch: 1, PartitionEpoch: 6}
		change(p)
		return []metalog.Record{p}
	}
	for _, test := range []struct {
		rule, why string
		recs      []metalog.Record
	}{
		{"ControllerState", "a leader outside the ISR", part(func(p *metalog.Partition) { p.ISR = three[1:] })},
		{"ControllerState", "a member without a replica", part(func(p *metalog.Partition) { p.ISR = []model.BrokerID{1, 2, 4} })},
		{"ControllerState", "ISR and ELR overlap", part(func(p *metalog.Partition) { p.ISR, p.ELR = three[:1], three[:1] })},
		{"ControllerState", "an ELR at the minimum", part(func(p *metalog.Partition) { p.ISR, p.ELR = three[:2], three[2:] })},
		{"ControllerState", "recovers with two", part(func(p *metalog.Partition) { p.RecoveryState = metalog.Recovering })},
		{"ControllerState", "adds and removes one", part(func(p *metalog.Partition) { p.Adding, p.Removing = three[2:], three[2:] })},
		{"ControllerState", "a fenced member", []metalog.Record{&metalog.FenceBroker{BrokerID: 3, BrokerEpoch: 3}}},
		{"ChangeSteps", "the partition epoch stays", part(func(p *metalog.Partition) { p.ISR, p.PartitionEpoch = three[:2], 5 })},
		{"ChangeSteps", "a leader in the same epoch", part(func(p *metalog.Partition) { p.Leader = 2 })},
		{"ChangeSteps", "an epoch for nothing", part(func(p *metalog.Partition) { p.LeaderEpoch = 2 })},
		{"ChangeSteps", "a replica leaves in the same epoch", part(func(p *metalog.Partition) { p.Replicas, p.ISR = three[:2], three[:2] })},
		{"BrokerEpochs", "an epoch that falls", []metalog.Record{&metalog.RegisterBroker{BrokerID: 3, BrokerEpoch: 1, IncarnationID: model.UUID{9}}}},
	} {
		t.Run(test.rule+"/"+test.why, func(t *testing.T) {
			s := sound()
			s.c.Controllers[0].Image = s.truth.Apply(test.recs, s.truth.End()+1, 1)
			err := s.heard(viewOf{4, true}, s.c.Controllers[0].Image)
			if v, ok := err.(*Violation); !ok || v.Invariant != test.rule {
				// The same state under the same epoch is another rule's matter.
				if test.why == "the partition epoch stays" && ok && v.Invariant == "MetadataViews" {
					return
				}
				t.Fatalf("found %v", err)
			}
		})
	}
}

func TestTwoStatesOfOnePartitionEpochAreFound(t *testing.T) {
	s := sound()
	if err := s.heard(viewOf{4, true}, s.truth); err != nil {
		t.Fatal(err)
	}
	img := s.truth.Apply([]metalog.Record{&metalog.Partition{TopicID: topic, Replicas: three, ISR: three[:2], Leader: 1, LeaderEpoch: 1, PartitionEpoch: 5}}, 7, 1)
	if v, ok := s.heard(viewOf{1, false}, img).(*Violation); !ok || v.Invariant != "MetadataViews" {
		t.Errorf("found %v", v)
	}
}

// Who stops in the midst of its life may not be a candidate when it registers
// again.
func TestUncleanExclusionIsDemanded(t *testing.T) {
	for how, want := range map[How]bool{Orderly: false, Killed: true, PowerCut: true} {
		s := sound()
		if err := s.ended(stop{3, 1, how}); err != nil {
			t.Fatal(err)
		}
		s.truth = s.truth.Apply([]metalog.Record{&metalog.RegisterBroker{BrokerID: 3, BrokerEpoch: 9, IncarnationID: model.UUID{9}}}, 10, 1)
		err := s.registered(&Broker{ID: 3, Life: 2, Running: true, Epoch: 9}, s.seats[2])
		if (err != nil) != want {
			t.Errorf("%v: %v", how, err)
		}
	}
}

// A committed batch that leaves the last log is a loss.
func TestNoGlobalLossIsDemanded(t *testing.T) {
	s := sound()
	lost := s.m1.batches[1:]
	s.m1.shorten(1)
	if err := s.checkGone(s.p, s.m1, lost); err != nil {
		t.Errorf("others hold it: %v", err)
	}
	s.m2.shorten(1)
	s.m3.shorten(1)
	if v, ok := s.checkGone(s.p, s.m1, lost).(*Violation); !ok || v.Invariant != "NoGlobalLoss" {
		t.Errorf("found %v", v)
	}
}

// An election of one who was no candidate and lacks records excuses their loss;
// of one who has them all it does not.
func TestUncleanElectionsExcuseLoss(t *testing.T) {
	for lacks, clean := range map[bool]bool{true: false, false: true} {
		s := sound()
		old := *s.p.truth
		old.ISR, old.ELR, old.Leader = three[:1], nil, model.NoBroker
		is := old
		is.Leader, is.ISR, is.Recovering, is.PartitionEpoch = 2, three[1:2], true, old.PartitionEpoch+1
		s.m1.now.role = partition.Follower
		if lacks {
			s.m2.shorten(1)
		}
		s.elected(s.p, &old, &is)
		if s.Clean(tpid) != clean {
			t.Errorf("lacks records %v, clean %v", lacks, s.Clean(tpid))
		}
	}
}
