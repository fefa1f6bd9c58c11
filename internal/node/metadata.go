package node

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// applier is the metadata loop: it publishes each newer image to the broker's
// cache, then makes the replicas follow it (R4.1).
type applier struct {
	id       model.BrokerID
	cfg      *config.Config
	clock    Clock
	log      *slog.Logger
	dir      *storage.Dir
	writer   *logWriter
	replicas *replicas
	epoch    func() model.BrokerEpoch // of our own registration; unknown before it
	fail     func(error)
	after    []func(d *image.Delta) // called in order once the replicas follow

	img      atomic.Pointer[image.Image]
	last     *image.Image
	swept    bool         // logs that nobody hosts are set aside
	followed atomic.Int64 // end of the last image that the replicas follow
}

// Image returns the newest image that the broker's cache holds.
func (a *applier) Image() *image.Image { return a.img.Load() }

// Followed is the end of the metadata that the replicas follow (R4.1).
func (a *applier) Followed() model.Offset { return model.Offset(a.followed.Load()) }

// apply is called for every newer image, by one goroutine.
func (a *applier) apply(img *image.Image) {
	delta := image.Diff(a.last, img)
	a.img.Store(img)
	a.last = img
	ev := &imageEvent{applier: a}
	if len(delta.Brokers) > 0 {
		ev.peers = peersOf(img)
	}
	err := a.remove(delta)
	if err == nil {
		err = a.collect(delta, ev)
	}
	if err != nil {
		a.fail(err)
		return
	}
	if !ev.empty() {
		a.replicas.do(func(l *replicas) { ev.turn(l) })
	}
	if err := a.sweep(img.End()); err != nil {
		a.fail(err)
		return
	}
	for _, f := range a.after {
		f(delta)
	}
	a.followed.Store(int64(img.End()))
}

// sweep sets aside the logs that nobody hosts, once the metadata has passed our
// own registration: what was deleted or moved away while we were down.
func (a *applier) sweep(end model.Offset) error {
	epoch := a.epoch()
	if a.swept || epoch == model.UnknownBrokerEpoch || int64(end) <= int64(epoch) {
		return nil
	}
	a.swept = true
	for _, log := range a.dir.Logs() {
		tp := log.TP()
		if a.replicas.ByName(tp) != nil {
			continue
		}
		if err := a.writer.do(func() error { return a.dir.Stray(tp) }); err != nil {
			return fmt.Errorf("set the log of %s aside: %w", tp, err)
		}
	}
	return nil
}

// peersOf is the broker view that partitions judge eligibility by.
func peersOf(img *image.Image) partition.Peers {
	peers := partition.Peers{}
	for _, b := range img.Brokers() {
		p := partition.Peer{Epoch: b.Epoch, Fenced: b.Fenced, ShuttingDown: b.InControlledShutdown}
		if b.Rack != nil {
			p.Rack = *b.Rack
		}
		peers[b.ID] = p
	}
	return peers
}

// collect opens the logs of what is new here and lists what changed.
func (a *applier) collect(d *image.Delta, ev *imageEvent) error {
	for i := range d.Topics {
		t := d.Topics[i].New
		if t == nil {
			continue
		}
		for _, n := range d.Topics[i].Partitions {
			if err := a.changed(t, n, ev); err != nil {
				return err
			}
		}
	}
	for _, c := range d.Configs {
		if c.Resource == metalog.ResourceTopic {
			if t := d.New.TopicByName(c.Name); t != nil {
				ev.configs = append(ev.configs, t)
			}
		} else {
			ev.allConfigs = true
		}
	}
	return nil
}

func (a *applier) changed(t *image.Topic, n int32, ev *imageEvent) error {
	id := model.TopicIDPartition{TopicID: t.ID, Partition: n}
	p := t.Partitions[n]
	if !hosts(p.Replicas, a.id) {
		return nil
	}
	h := a.replicas.ByID(id)
	if h == nil {
		var err error
		if h, err = a.open(model.TopicPartition{Topic: t.Name, Partition: n}, id, ev); err != nil {
			return err
		}
	}
	ev.assigned = append(ev.assigned, assigned{h: h, p: p})
	return nil
}

func hosts(replicas []model.BrokerID, id model.BrokerID) bool {
	for _, r := range replicas {
		if r == id {
			return true
		}
	}
	return false
}

// open finds or makes the log of a replica. A log that belongs to an earlier
// topic of the same name is set aside first.
func (a *applier) open(tp model.TopicPartition, id model.TopicIDPartition, ev *imageEvent) (*api.Hosted, error) {
	cfg := a.topicConfig(tp.Topic)
	var log *storage.Log
	err := a.writer.do(func() error {
		var err error
		if old := a.dir.Log(tp); old != nil {
			if old.TopicID() == id.TopicID {
				log = old
				return nil
			}
			if old.TopicID().IsZero() {
				log = old
				return old.SetTopicID(id.TopicID)
			}
			if err = a.dir.Stray(tp); err != nil {
				return err
			}
		}
		log, err = a.dir.Create(tp, id.TopicID, logConfig(cfg), a.clock.Wall())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", tp, err)
	}
	h := &api.Hosted{TP: tp, ID: id, Log: log}
	ev.opened = append(ev.opened, opened{h: h, minISR: cfg.MinISR})
	return h, nil
}

// topicConfig is the effective configuration of a topic in the newest image.
func (a *applier) topicConfig(topic string) config.Topic {
	img := a.img.Load()
	return config.TopicConfig(brokerDefaults(a.cfg, img), img.Config(metalog.ResourceTopic, topic))
}

// remove takes out what is hosted here no more. The loop lets go of the replicas
// first and sends off what it had ordered for their logs; then the logs go, ahead
// of new ones with their names.
func (a *applier) remove(d *image.Delta) error {
	var gone []*api.Hosted
	for i := range d.Topics {
		t := &d.Topics[i]
		for _, n := range t.Partitions {
			if t.New != nil && hosts(t.New.Partitions[n].Replicas, a.id) {
				continue
			}
			if h := a.replicas.ByID(model.TopicIDPartition{TopicID: topicOf(t).ID, Partition: n}); h != nil {
				gone = append(gone, h)
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	a.replicas.do(func(l *replicas) {
		for _, h := range gone {
			l.drop(h)
		}
		l.wakeAll()
		l.order()
	})
	for _, h := range gone {
		if err := a.writer.do(func() error { return a.dir.Delete(h.TP) }); err != nil {
			return fmt.Errorf("delete the log of %s: %w", h.TP, err)
		}
	}
	return nil
}

func topicOf(t *image.TopicDelta) *image.Topic {
	if t.New != nil {
		return t.New
	}
	return t.Old
}

// imageEvent is what one image changes for the replicas loop.
type imageEvent struct {
	applier    *applier
	peers      partition.Peers
	opened     []opened
	assigned   []assigned
	configs    []*image.Topic
	allConfigs bool
}

type opened struct {
	h      *api.Hosted
	minISR int
}

type assigned struct {
	h *api.Hosted
	p *image.Partition
}

func (e *imageEvent) empty() bool {
	return e.peers == nil && len(e.opened) == 0 && len(e.assigned) == 0 && len(e.configs) == 0 && !e.allConfigs
}

func (e *imageEvent) turn(l *replicas) {
	if e.peers != nil {
		l.peers = e.peers
		defer l.lookAgain()
	}
	for _, o := range e.opened {
		l.host(o)
	}
	// A raised minimum counts before an ISR that was shrunk under it does.
	e.configure(l)
	// Leaders first, then followers (R4.1).
	for _, leading := range [...]bool{true, false} {
		for _, as := range e.assigned {
			if (as.p.Leader == l.id) == leading {
				l.assign(as)
			}
		}
	}
	l.wakeAll()
}

// lookAgain tries the marks of every leader with other peers: a high watermark
// or a deletion does not wait for a broker that was fenced (R3.21, R3.27).
func (l *replicas) lookAgain() {
	for _, r := range l.all {
		if r.p.Role() == partition.Leader {
			l.step(r, &l.in.tick)
			l.wakes = append(l.wakes, pendingWake{r, partition.WakeDelete})
		}
	}
	l.wakeAll()
}

// host takes a replica in with what its log was found to hold.
func (l *replicas) host(o opened) {
	log := o.h.Log
	end, pos := log.End()
	r := &replica{hosted: o.h, log: log, checkpointed: log.CheckpointedHW(), cuts: l.cuts.of(o.h.ID)}
	r.p = partition.New(partition.Config{
		ID: l.id, LagMax: l.cfg.lagMax, MinISR: o.minISR, ProducerExpiry: l.cfg.producerExpiry, Peers: &l.peers,
		LEO: end, LEOPos: pos, HW: log.CheckpointedHW(), LogStart: log.Start(),
		Epochs: log.Epochs(), Producers: log.Producers(),
	})
	o.h.Owner = r
	o.h.Generation.Store(r.p.Generation())
	l.all[o.h.ID] = r
	l.hosted.add(o.h)
	if l.offline {
		l.goOffline(r)
	}
}

// drop stops a replica and answers what waits for it.
func (l *replicas) drop(h *api.Hosted) {
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
	delete(l.all, h.ID)
	l.forgetExpected(r)
	l.hosted.remove(h)
	h.Gone.Store(true)
}

// assign tells a replica what the metadata log says about its partition.
func (l *replicas) assign(as assigned) {
	r := as.h.Owner.(*replica)
	_, before := r.p.Leader()
	rd := l.step(r, &partition.Assign{
		Leader: as.p.Leader, LeaderEpoch: as.p.LeaderEpoch, PartitionEpoch: as.p.PartitionEpoch,
		Replicas: as.p.Replicas, ISR: as.p.ISR, Recovering: as.p.Recovering,
	})
	if rd.Err != model.None && !r.stopped() {
		l.log.Error("metadata that cannot be true is ignored", "partition", r.tp().String(), "leader", int32(as.p.Leader),
			"leaderEpoch", int32(as.p.LeaderEpoch), "isr", as.p.ISR)
	}
	r.epoch = as.p.PartitionEpoch
	if a := r.answer; a != nil && a.PartitionEpoch <= r.epoch {
		r.answer = nil
		l.step(r, a)
	}
	l.release(r)
	if as.p.Leader == l.id && as.p.LeaderEpoch > before {
		l.expect(r, as.p.Replicas)
	}
}

// configure hands changed topic configs to the cores and the logs.
func (e *imageEvent) configure(l *replicas) {
	for _, t := range e.configs {
		for n := range t.Partitions {
			if r := l.all[model.TopicIDPartition{TopicID: t.ID, Partition: int32(n)}]; r != nil {
				e.configureOne(l, r)
			}
		}
	}
	if e.allConfigs {
		for _, r := range l.all {
			e.configureOne(l, r)
		}
	}
}

func (e *imageEvent) configureOne(l *replicas, r *replica) {
	cfg := e.applier.topicConfig(r.tp().Topic)
	l.step(r, &partition.Configure{MinISR: cfg.MinISR})
	log := r.log
	l.jobs = append(l.jobs, job{kind: jobCall, call: func() error { log.SetConfig(logConfig(cfg)); return nil }})
}

// brokerDefaults are the broker-level keys that a topic's configs fall back to:
// those of the file, under the dynamic ones of the metadata log.
func brokerDefaults(cfg *config.Config, img *image.Image) map[string]string {
	return cfg.BrokerDefaults(dynamic(cfg, img))
}

// dynamic is what the metadata log says about this broker's keys.
func dynamic(cfg *config.Config, img *image.Image) config.Dynamic {
	return config.Dynamic{
		Cluster: img.Config(metalog.ResourceBroker, ""),
		Broker:  img.Config(metalog.ResourceBroker, fmt.Sprint(int32(cfg.NodeID))),
	}
}
