package controller

import (
	"maps"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ghost is what a partition's replicas hold. Records are counted, not kept:
// a replica holds the first has[b] of the commit records that were ever
// committed.
type ghost struct {
	commit int
	has    map[model.BrokerID]int
	// lossy replicas crashed, lost the end of their log, and have not registered
	// since; the controller cannot know yet.
	lossy map[model.BrokerID]bool
	// excused says that more was lost at once than min.insync.replicas covers.
	excused bool
	since   model.Epoch // the last unclean election; what older leaders commit is lost
}

// process is a broker as it really is, which may differ from what the
// controller believes.
type process struct {
	id          model.BrokerID
	up          bool
	stopping    bool
	incarnation int
	epoch       model.BrokerEpoch // as the controller answered; -1 not registered
	clean       model.BrokerEpoch // what its clean-shutdown file says; -1 none
	view        *image.Image      // the metadata that it has applied; nil none yet
	leads       map[model.TopicIDPartition]*leadership
}

// leadership is what a leader remembers within one leader epoch.
type leadership struct {
	epoch   model.Epoch
	pe      model.PartitionEpoch
	isr     []model.BrokerID
	pending []model.BrokerID // proposed and not answered; nil none
	sent    int              // copies of the pending proposal that are on their way
	// heard are followers that fetched up to the end, by the broker epoch of that
	// fetch.
	heard map[model.BrokerID]model.BrokerEpoch
}

// message is an AlterPartition on its way.
type message struct {
	from        model.BrokerID
	incarnation int
	tp          model.TopicIDPartition
	isr         []model.BrokerID
	epochs      []model.BrokerEpoch
	leaderEpoch model.Epoch
	pe          model.PartitionEpoch
	senderEpoch model.BrokerEpoch
}

// maximal is the ISR that counts for a commit (R5.7).
func (l *leadership) maximal() []model.BrokerID {
	out := slices.Concat(l.isr, l.pending)
	slices.Sort(out)
	return slices.Compact(out)
}

// apply makes a process see metadata up to img.
func (d *driver) apply(p *process, img *image.Image) {
	p.view = img
	for _, tp := range d.sorted() {
		part := img.Partition(tp.TopicID, tp.Partition)
		if part == nil || !contains(part.Replicas, p.id) {
			delete(d.ghosts[tp].has, p.id) // the log is deleted
			delete(p.leads, tp)
			continue
		}
		l := p.leads[tp]
		switch {
		case part.Leader != p.id:
			delete(p.leads, tp)
		case l == nil || l.epoch != part.LeaderEpoch:
			p.leads[tp] = &leadership{
				epoch: part.LeaderEpoch, pe: part.PartitionEpoch, isr: part.ISR,
				heard: map[model.BrokerID]model.BrokerEpoch{},
			}
		case part.PartitionEpoch > l.pe:
			l.pe, l.isr, l.pending = part.PartitionEpoch, part.ISR, nil
		}
	}
}

// fetch copies what the leader has to a follower that agrees with it on the
// epoch. A follower that may join is proposed.
func (d *driver) fetch(leader, f *process, tp model.TopicIDPartition) {
	l, g := leader.leads[tp], d.ghosts[tp]
	if !d.follows(f, leader, l, tp) {
		return
	}
	g.has[f.id] = g.has[leader.id]
	l.heard[f.id] = f.epoch
	br := leader.view.Broker(f.id)
	if contains(l.isr, f.id) || l.pending != nil || br == nil || br.Fenced || br.InControlledShutdown || br.Epoch != f.epoch {
		return
	}
	l.pending, l.sent = append(slices.Clone(l.isr), f.id), 0
	d.send(leader, l, tp)
}

// follows reports whether f fetches from leader in the leadership l.
func (d *driver) follows(f, leader *process, l *leadership, tp model.TopicIDPartition) bool {
	if f == leader || !f.up || f.view == nil || f.epoch < 0 {
		return false
	}
	part := f.view.Partition(tp.TopicID, tp.Partition)
	return part != nil && part.Leader == leader.id && part.LeaderEpoch == l.epoch && contains(part.Replicas, f.id)
}

// send puts what is pending on its way to the controller.
func (d *driver) send(leader *process, l *leadership, tp model.TopicIDPartition) {
	m := &message{
		from: leader.id, incarnation: leader.incarnation, tp: tp, isr: l.pending,
		leaderEpoch: l.epoch, pe: l.pe, senderEpoch: leader.epoch,
	}
	for _, b := range l.pending {
		e, ok := l.heard[b]
		if b == leader.id {
			e, ok = leader.epoch, true
		}
		if !ok {
			e = model.UnknownBrokerEpoch
		}
		m.epochs = append(m.epochs, e)
	}
	d.mail = append(d.mail, m)
	l.sent++
}

// produce commits one more record, if the leader's maximal ISR takes part and
// its ISR is large enough (R3.20).
func (d *driver) produce(leader *process, tp model.TopicIDPartition) {
	l, g := leader.leads[tp], d.ghosts[tp]
	part := leader.view.Partition(tp.TopicID, tp.Partition)
	t := leader.view.TopicByID(tp.TopicID)
	see := (&State{img: leader.view, cfg: d.w.cfg}).decide(Call{})
	if len(l.isr) < min(see.minISR(t.Name), len(part.Replicas)) || l.epoch < g.since {
		return
	}
	members := l.maximal()
	for _, b := range members {
		if b != leader.id && !d.follows(d.procs[b], leader, l, tp) {
			return
		}
	}
	if !g.excused && g.has[leader.id] < g.commit {
		d.w.t.Fatalf("I23: leader %d of %v in epoch %d holds %d of %d committed records", leader.id, tp, l.epoch, g.has[leader.id], g.commit)
	}
	g.commit = max(g.commit, g.has[leader.id]) + 1
	clear(l.heard)
	for _, b := range members {
		g.has[b] = g.commit
		if b != leader.id {
			l.heard[b] = d.procs[b].epoch
		}
	}
}

// deliver brings a message to the controller, and the answer back unless it is
// lost (R5.10).
func (d *driver) deliver(m *message, lost bool) {
	r := kmsg.NewPtrAlterPartitionRequest()
	r.Version, r.BrokerID, r.BrokerEpoch = 3, int32(m.from), int64(m.senderEpoch)
	rt, rp := kmsg.NewAlterPartitionRequestTopic(), kmsg.NewAlterPartitionRequestTopicPartition()
	rt.TopicID, rp.Partition = m.tp.TopicID, m.tp.Partition
	rp.LeaderEpoch, rp.PartitionEpoch = int32(m.leaderEpoch), int32(m.pe)
	for i, b := range m.isr {
		rm := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
		rm.BrokerID, rm.BrokerEpoch = int32(b), int64(m.epochs[i])
		rp.NewEpochISR = append(rp.NewEpochISR, rm)
	}
	rt.Partitions = append(rt.Partitions, rp)
	r.Topics = append(r.Topics, rt)
	resp := d.do(r).(*kmsg.AlterPartitionResponse)
	p := d.procs[m.from]
	l := p.leads[m.tp]
	if lost || !p.up || p.incarnation != m.incarnation || l == nil || l.epoch != m.leaderEpoch ||
		resp.ErrorCode != 0 || !slices.Equal(l.pending, m.isr) {
		return
	}
	switch a := resp.Topics[0].Partitions[0]; model.Error(a.ErrorCode) {
	case model.None:
		if model.Epoch(a.LeaderEpoch) == l.epoch && model.PartitionEpoch(a.PartitionEpoch) >= l.pe {
			l.isr, l.pe, l.pending = toBrokers(a.ISR), model.PartitionEpoch(a.PartitionEpoch), nil
		}
	case model.ErrIneligibleReplica, model.ErrOperationNotAttempted:
		// This copy was not applied. Another one still may be: the partition epoch
		// that both carry has not moved.
		if l.sent == 1 && !slices.Contains(d.mail, m) {
			l.pending = nil
		}
	}
}

// crash ends a process without a word; with loss, it may lose the end of any log.
func (d *driver) crash(p *process, loss bool) {
	p.up, p.stopping, p.clean, p.view = false, false, -1, nil
	clear(p.leads)
	if !loss {
		return
	}
	img := d.w.s.Image()
	for _, tp := range d.sorted() {
		g, part := d.ghosts[tp], img.Partition(tp.TopicID, tp.Partition)
		if part == nil || g.has[p.id] == 0 || d.rng.IntN(2) == 0 {
			continue
		}
		g.has[p.id] = d.rng.IntN(g.has[p.id])
		g.lossy[p.id] = true
		see := d.w.s.decide(Call{})
		whole, hit := 0, 0
		for _, b := range slices.Concat(part.ISR, part.ELR) {
			if g.lossy[b] {
				hit++
			} else if g.has[b] >= g.commit {
				whole++
			}
		}
		if whole == 0 || hit >= min(see.minISR(img.TopicByID(tp.TopicID).Name), len(part.Replicas)) {
			g.excused = true
		}
	}
}

// follow keeps the ghosts in step with the metadata after every decision.
func (d *driver) follow(r Result) {
	img := d.w.s.Image()
	for t := range img.Topics() {
		for id := range t.Partitions {
			tp := model.TopicIDPartition{TopicID: t.ID, Partition: int32(id)}
			if d.ghosts[tp] == nil {
				d.ghosts[tp] = &ghost{has: map[model.BrokerID]int{}, lossy: map[model.BrokerID]bool{}}
			}
		}
	}
	for _, reason := range r.Reasons {
		e := reason.Election
		t := img.TopicByName(reason.Topic)
		if e == nil || e.Clean || e.Leader == model.NoBroker || t == nil {
			continue
		}
		g := d.ghosts[model.TopicIDPartition{TopicID: t.ID, Partition: reason.Partition}]
		g.commit, g.since, g.excused = g.has[e.Leader], e.LeaderEpoch, false
		for b := range g.has {
			g.has[b] = min(g.has[b], g.commit)
		}
	}
	d.complete(img)
}

// complete: whoever may be elected cleanly holds all that is committed (I24).
func (d *driver) complete(img *image.Image) {
	for _, tp := range d.sorted() {
		g, part := d.ghosts[tp], img.Partition(tp.TopicID, tp.Partition)
		if part == nil {
			delete(d.ghosts, tp)
			continue
		}
		for _, b := range slices.Concat(part.ISR, part.ELR) {
			if !g.excused && !g.lossy[b] && g.has[b] < g.commit {
				d.w.t.Fatalf("I24: replica %d of %s-%d holds %d of %d committed records and may be elected: %s",
					b, img.TopicByID(tp.TopicID).Name, tp.Partition, g.has[b], g.commit, show(part))
			}
		}
	}
}

// sorted lists the partitions in a fixed order.
func (d *driver) sorted() []model.TopicIDPartition {
	return slices.SortedFunc(maps.Keys(d.ghosts), func(a, b model.TopicIDPartition) int {
		if c := slices.Compare(a.TopicID[:], b.TopicID[:]); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
}
