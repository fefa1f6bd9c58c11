package replicas

import (
	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// Change is what newer metadata changes for the replicas hosted here.
type Change struct {
	Peers      partition.Peers // every broker; nil when none changed
	Opened     []Opened        // new here
	Configured []Configured
	Assigned   []Assigned
	Lanes      int // num.replica.fetchers; 0 when it did not change
}

// Opened is a replica that is hosted from now on; its log is open.
type Opened struct {
	Hosted *api.Hosted
	MinISR int // min.insync.replicas of its topic
}

// Configured is a replica whose topic's configs changed.
type Configured struct {
	Hosted *api.Hosted
	MinISR int
	Log    storage.LogConfig
}

// Assigned is a replica whose partition changed. To is kept.
type Assigned struct {
	Hosted *api.Hosted
	To     *image.Partition
}

// Change makes the replicas follow newer metadata. It returns when they do.
func (l *Loop) Change(c *Change) {
	if c.Peers != nil || c.Lanes > 0 || len(c.Opened)+len(c.Configured)+len(c.Assigned) > 0 {
		l.do(c.turn)
	}
}

func (c *Change) turn(l *Loop) {
	if c.Peers != nil {
		l.peers = c.Peers
		defer l.lookAgain()
	}
	if c.Lanes > 0 {
		l.spread(c.Lanes)
	}
	for _, o := range c.Opened {
		l.host(o)
	}
	// One change may hold what came one after the other. So a raised minimum counts
	// before an ISR that was shrunk under it does, and a lowered one only after a
	// leadership that had ended by then.
	var lowered []*Configured
	for i := range c.Configured {
		if k := &c.Configured[i]; k.MinISR < k.Hosted.Owner.(*replica).p.MinISR() {
			lowered = append(lowered, k)
		} else {
			l.configure(k)
		}
	}
	// Leaders first, then followers (R4.1).
	for _, leading := range [...]bool{true, false} {
		for _, as := range c.Assigned {
			if (as.To.Leader == l.id) == leading {
				l.assign(as)
			}
		}
	}
	for _, k := range lowered {
		l.configure(k)
	}
	l.wakeAll()
}

// lookAgain tries the marks of every leader with other peers: a high watermark
// or a deletion does not wait for a broker that was fenced (R3.21, R3.27).
func (l *Loop) lookAgain() {
	for _, r := range l.ordered {
		if r.p.Role() == partition.Leader {
			l.step(r, &l.in.tick)
			l.wakes = append(l.wakes, pendingWake{r, partition.WakeDelete})
		}
	}
	l.wakeAll()
}

// host takes a replica in with what its log was found to hold.
func (l *Loop) host(o Opened) {
	h, log := o.Hosted, o.Hosted.Log
	end, pos := log.End()
	r := &replica{hosted: h, log: log, checkpointed: log.CheckpointedHW(), cuts: l.cuts.Of(h.ID)}
	r.p = partition.New(partition.Config{
		ID: l.id, LagMax: l.opts.LagMax, MinISR: o.MinISR, ProducerExpiry: l.opts.ProducerExpiry, Peers: &l.peers,
		LEO: end, LEOPos: pos, HW: log.CheckpointedHW(), LogStart: log.Start(),
		Epochs: log.Epochs(), Producers: log.Producers(),
	})
	h.Owner = r
	h.Generation.Store(r.p.Generation())
	l.include(r)
	l.hosted.Add(h)
	if l.offline {
		l.goOffline(r)
	}
}

// Drop stops replicas, answers what waits for them and sends off what was
// ordered for their logs, which the caller may delete then.
func (l *Loop) Drop(gone []*api.Hosted) {
	l.do(func(l *Loop) {
		for _, h := range gone {
			l.drop(h)
		}
		l.wakeAll()
		l.order()
	})
}

func (l *Loop) drop(h *api.Hosted) {
	r, ok := h.Owner.(*replica)
	if !ok || l.all[h.ID] != r {
		return
	}
	l.leave(r)
	l.step(r, &partition.Stop{Err: model.ErrNotLeaderOrFollower})
	l.release(r)
	if r.flying != nil { // what its log still takes will not be reported to a core
		l.jobs = append(l.jobs, job{kind: jobPass, r: r})
	}
	l.exclude(r)
	l.forgetExpected(r)
	l.hosted.Remove(h)
	h.Gone.Store(true)
}

// assign tells a replica what the metadata log says about its partition.
func (l *Loop) assign(as Assigned) {
	r, p := as.Hosted.Owner.(*replica), as.To
	_, before := r.p.Leader()
	rd := l.step(r, &partition.Assign{
		Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.PartitionEpoch,
		Replicas: p.Replicas, ISR: p.ISR, Recovering: p.Recovering,
	})
	if rd.Err != model.None && !r.stopped() {
		l.log.Error("metadata that cannot be true is ignored", "partition", r.tp().String(), "leader", int32(p.Leader),
			"leaderEpoch", int32(p.LeaderEpoch), "isr", p.ISR)
	}
	r.epoch = p.PartitionEpoch
	if a := r.answer; a != nil && a.PartitionEpoch <= r.epoch {
		r.answer = nil
		l.step(r, a)
	}
	l.release(r)
	if p.Leader == l.id && p.LeaderEpoch > before {
		l.expect(r, p.Replicas)
	}
}

// configure hands changed topic configs to the core and to the log.
func (l *Loop) configure(c *Configured) {
	r := c.Hosted.Owner.(*replica)
	l.step(r, &partition.Configure{MinISR: c.MinISR})
	l.jobs = append(l.jobs, job{kind: jobCall, call: func() error { r.log.SetConfig(c.Log); return nil }})
}
