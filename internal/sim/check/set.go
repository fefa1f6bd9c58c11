package check

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// Set is all checkers with what they remember. It has one owner.
type Set struct {
	o     Options
	rules ruleSet
	own   []Invariant

	seats    []*seat // in the order of Cluster.Brokers
	parts    map[model.TopicIDPartition]*part
	list     []*part // the same, in the order in which they came
	touched  []*part // changed by this step
	stops    []stop
	clients  clients
	broken   error     // what a visit found
	cur      *seat     // whose replicas are visited
	visited  []*mirror // so far
	same     bool      // they are those of the last visit
	round    uint64    // of visits
	visitFn  func(Replica)
	freshFn  func(arrival) error
	truth    *image.Image // the newest that a controller committed
	views    map[viewOf]*image.Image
	brokers  map[incarnation]model.UUID
	elr      bool
	buf      []byte
	deciders map[model.Epoch]model.BrokerID // controllers that decided, by epoch
	beats    map[beatOf]controlplane.Beat
}

// viewOf names who has a picture of the metadata.
type viewOf struct {
	id         model.BrokerID
	controller bool
}

// incarnation names a registration.
type incarnation struct {
	id    model.BrokerID
	epoch model.BrokerEpoch
}

// stop is the end of a life.
type stop struct {
	id   model.BrokerID
	life uint64
	how  How
}

// seat is one broker id with its present life and its disk.
type seat struct {
	id      model.BrokerID
	life    uint64
	running bool
	steps   uint64
	epoch   model.BrokerEpoch
	image   *image.Image
	mirrors map[model.TopicIDPartition]*mirror
	order   []*mirror         // as visited last
	clean   model.BrokerEpoch // see Broker.Clean
	synced  func(model.TopicPartition) []byte
	// dirty says that a registered life ended other than orderly, since the last
	// registration.
	dirty bool
}

// part is one partition: what an observer of the whole cluster knows of it.
type part struct {
	tp      model.TopicPartition
	id      model.TopicIDPartition
	mirrors []*mirror // in the order of broker ids
	nodes   map[nodeKey]*node
	// commits is every batch that was below the HW of a replica that presumed to
	// lead, in offset order; commitEnd is where it ends.
	commits   []*node
	commitEnd model.Offset
	highest   model.Offset // HW of a leader; above commitEnd only if a log could not be read
	writers   map[model.Epoch]writer
	latest    model.Offset // the greatest end told by a leader that was not stale
	// unclean is set once more replicas lost records than min.insync.replicas
	// protects from, or once a replica without all committed records was elected
	// although it was no candidate. Loss is allowed then.
	unclean bool
	deleted bool
	touched bool
	truth   *image.Partition
	states  map[model.PartitionEpoch]*image.Partition
	minISR  int // as configured
	deletes model.Offset
}

// writer is one life of a broker.
type writer struct {
	id   model.BrokerID
	life uint64
}

// New returns the checkers of a cluster that has not begun.
func New(o Options) *Set {
	s := &Set{o: o, rules: newRuleSet(o.Skip), parts: map[model.TopicIDPartition]*part{}, clients: newClients(),
		views: map[viewOf]*image.Image{}, brokers: map[incarnation]model.UUID{}, truth: image.New()}
	s.visitFn, s.freshFn = s.visit, s.arrived
	return s
}

// Add brings an invariant of the user's.
func (s *Set) Add(own Invariant) { s.own = append(s.own, own) }

// Stopped tells that a life of a broker has ended, before the next AfterStep.
func (s *Set) Stopped(id model.BrokerID, life uint64, how How) {
	s.stops = append(s.stops, stop{id, life, how})
}

// Clean reports whether the partition has lost no more than it must survive, so
// that all invariants are checked on it.
func (s *Set) Clean(id model.TopicIDPartition) bool {
	p := s.parts[id]
	return p == nil || !p.unclean
}

// AllClean reports whether every partition is Clean.
func (s *Set) AllClean() bool {
	return !slices.ContainsFunc(s.list, func(p *part) bool { return p.unclean })
}

func (s *Set) quietly(f func()) {
	if s.o.Quietly != nil {
		s.o.Quietly(f)
		return
	}
	f()
}

// AfterStep looks at what the last step changed. It returns a *Violation for the
// first invariant that does not hold.
func (s *Set) AfterStep(c *Cluster) error {
	if err := s.look(c); err != nil {
		return err
	}
	for len(s.touched) > 0 {
		p := s.touched[len(s.touched)-1]
		s.touched = s.touched[:len(s.touched)-1]
		p.touched = false
		if err := s.checkPart(p); err != nil {
			return err
		}
	}
	if err := s.hear(); err != nil {
		return err
	}
	for _, own := range s.own {
		if err := own.Check(c); err != nil {
			return &Violation{Invariant: own.Name(), Text: err.Error()}
		}
	}
	return nil
}

// look brings all that is remembered up to date, and has every change checked.
func (s *Set) look(c *Cluster) error {
	for i := range c.Brokers {
		if id := c.Brokers[i].ID; i == len(s.seats) || s.seats[i].id != id {
			s.seats = slices.Insert(s.seats, i, &seat{id: id, epoch: model.UnknownBrokerEpoch,
				mirrors: map[model.TopicIDPartition]*mirror{}})
		}
	}
	for i := range c.Brokers {
		s.seats[i].clean = c.Brokers[i].Clean
	}
	if err := s.lookAtControllers(c); err != nil {
		return err
	}
	for _, st := range s.stops {
		if err := s.ended(st); err != nil {
			return err
		}
	}
	s.stops = s.stops[:0]
	for i := range c.Brokers {
		b, seat := &c.Brokers[i], s.seats[i]
		if b.Running != seat.running || b.Running && (b.Life != seat.life || b.Steps != seat.steps ||
			b.Image != seat.image || b.Epoch != seat.epoch) {
			if err := s.lookAt(b, seat); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAtControllers takes in who decides, and what each has seen committed.
func (s *Set) lookAtControllers(c *Cluster) error {
	for i := range c.Controllers {
		k := &c.Controllers[i]
		if k.Running && k.Leads >= 0 {
			if err := s.elects(k); err != nil {
				return err
			}
			if err := s.beating(k); err != nil {
				return err
			}
		}
		if k.Running && k.Image != nil {
			if err := s.heard(viewOf{k.ID, true}, k.Image); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAt looks at one broker.
func (s *Set) lookAt(b *Broker, t *seat) error {
	if t.running && (!b.Running || b.Life != t.life) {
		s.vacate(t)
	}
	if t.running = b.Running; !b.Running {
		return nil
	}
	if b.Life != t.life {
		t.life, t.steps, t.image, t.epoch = b.Life, 0, nil, model.UnknownBrokerEpoch
		delete(s.views, viewOf{b.ID, false})
	}
	if b.Image != nil && b.Image != t.image {
		if err := s.heard(viewOf{b.ID, false}, b.Image); err != nil {
			return err
		}
	}
	t.image, t.steps, t.synced = b.Image, b.Steps, b.Synced
	if err := s.registered(b, t); err != nil {
		return err
	}
	if b.Replicas != nil {
		if err := s.visitAll(b, t); err != nil {
			return err
		}
	}
	if b.Parked != nil && !b.Paused {
		if err := s.waits(b, t); err != nil {
			return err
		}
	}
	if b.Overdue != nil && !b.Paused && s.rules.has(NoLostWakeup{}) {
		if err := b.Overdue(); err != nil {
			return &Violation{Invariant: nameOf(NoLostWakeup{}), Text: fmt.Sprintf("b%d: %v", b.ID, err)}
		}
	}
	return nil
}

// visitAll looks at every replica of a broker.
func (s *Set) visitAll(b *Broker, t *seat) error {
	s.cur, s.same, s.broken = t, true, nil
	s.round++
	s.visited = s.visited[:0]
	b.Replicas(s.visitFn)
	if s.broken != nil {
		return s.broken
	}
	if s.same && len(s.visited) == len(t.order) {
		return nil
	}
	t.order = slices.Clone(s.visited)
	return s.sweep(t)
}

// visit looks at one replica.
func (s *Set) visit(r Replica) {
	if s.broken != nil {
		return
	}
	t, n := s.cur, len(s.visited)
	var m *mirror
	if n < len(t.order) && t.order[n].p == r.P {
		m = t.order[n]
	} else {
		m, s.same = s.mirrorOf(t, r), false
	}
	s.visited = append(s.visited, m)
	m.round = s.round
	if m.p != r.P || m.now.steps != r.P.Steps() {
		s.broken = s.lookAtReplica(m, r)
	}
}

// mirrorOf finds or makes the mirror of a replica.
func (s *Set) mirrorOf(t *seat, r Replica) *mirror {
	if m := t.mirrors[r.ID]; m != nil {
		return m
	}
	p := s.partOf(r.ID, r.TP)
	m := &mirror{seat: t, part: p, first: true}
	t.mirrors[r.ID] = m
	at, _ := slices.BinarySearchFunc(p.mirrors, t.id, func(m *mirror, id model.BrokerID) int { return int(m.id()) - int(id) })
	p.mirrors = slices.Insert(p.mirrors, at, m)
	return m
}

func (s *Set) partOf(id model.TopicIDPartition, tp model.TopicPartition) *part {
	if p := s.parts[id]; p != nil {
		return p
	}
	p := &part{tp: tp, id: id, nodes: map[nodeKey]*node{}, writers: map[model.Epoch]writer{},
		states: map[model.PartitionEpoch]*image.Partition{}}
	p.minISR = s.configuredMinISR(tp.Topic)
	s.parts[id], s.list = p, append(s.list, p)
	return p
}

func (s *Set) touch(p *part) {
	if !p.touched {
		p.touched = true
		s.touched = append(s.touched, p)
	}
}

// lookAtReplica takes in what changed of a replica.
func (s *Set) lookAtReplica(m *mirror, r Replica) error {
	before, cutting := m.now, m.cutsRead != m.now.cuts
	if m.first = m.p != r.P; m.first {
		m.was, m.rounds, m.cutsRead = facts{}, 0, 0
		if !m.compare && m.log != nil && m.log != r.Log {
			m.compare, m.removed = true, true // deleted and made anew in one life
		}
		m.p, m.log = r.P, r.Log
	} else {
		m.was = m.now
	}
	m.looked(look(r))
	gone, err := s.follow(m, s.freshFn)
	if err != nil {
		return err
	}
	p := m.part
	if s.noteHW(m); m.unread {
		return nil
	}
	if m.compare {
		m.compare = false
		if err := s.compared(m, gone, before.recovery, cutting); err != nil {
			return err
		}
	}
	s.touch(p)
	if p.deleted || m.now.role == partition.Stopped {
		return nil
	}
	if err := s.checkGone(p, m, gone); err != nil {
		return err
	}
	for _, r := range s.rules.replica {
		if text := r.replica(s, m); text != "" {
			return s.violated(r, p, text)
		}
	}
	return nil
}

// look reads what a replica tells of itself.
func look(r Replica) facts {
	p := r.P
	f := facts{steps: p.Steps(), role: p.Role(), leadership: p.Leadership(), cuts: p.Generation(), marks: p.Marks(),
		inFlight: p.InFlight(), serving: p.Serving(), recovery: r.Log.RecoveryPoint(), logStart: r.Log.Start(),
		flushes: r.Log.Config().FlushMessages}
	f.leader, f.epoch = p.Leader()
	v := p.View()
	f.pepoch, f.isr, f.maximal, f.all = v.PartitionEpoch, v.ISR, v.MaximalISR, v.Replicas
	f.minISR, f.pending, f.epochStart, f.remotes, f.proposed = v.MinISR, v.PendingISR, v.EpochStart, v.Remotes, v.Proposed
	f.lives = v.ProposedLives
	f.at, f.hwPos, f.next = v.Now, v.HWPos, v.Next
	for i := range f.remotes {
		a := asks{at: partition.Never}
		if r.Asked != nil {
			a.at, a.quiet = r.Asked(f.remotes[i].ID)
		}
		f.asks = append(f.asks, a)
	}
	return f
}

func (s *Set) violated(r rule, p *part, text string) error {
	v := &Violation{Invariant: nameOf(r), Text: text}
	if p != nil {
		v.Partition = p.tp
	}
	return v
}

// arrived has one batch that came to a log checked.
func (s *Set) arrived(a arrival) error {
	for _, r := range s.rules.batch {
		if text := r.batch(s, a); text != "" {
			return s.violated(r, a.m.part, text)
		}
	}
	return nil
}

// checkPart runs what compares the replicas of a partition.
func (s *Set) checkPart(p *part) error {
	if p.deleted {
		return nil
	}
	for _, r := range s.rules.part {
		if text := r.part(s, p); text != "" {
			return s.violated(r, p, text)
		}
	}
	return nil
}
