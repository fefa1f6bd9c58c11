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
	"github.com/tidemark-log/tidemark/internal/replicas"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// applier is the metadata loop: it publishes each newer image to the broker's
// cache, then makes the replicas follow it (R4.1).
type applier struct {
	id       model.BrokerID
	cfg      *config.Config
	clock    replicas.Clock
	log      *slog.Logger
	dir      *storage.Dir
	replicas *replicas.Loop
	fail     func(error)
	after    []func(d *image.Delta) // called in order once the replicas follow

	img      atomic.Pointer[image.Image]
	last     *image.Image
	strays   strays
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
	var c replicas.Change
	if len(delta.Brokers) > 0 {
		c.Peers = peersOf(img)
	}
	err := a.remove(delta)
	if err == nil {
		err = a.collect(delta, &c)
	}
	if err != nil {
		a.fail(err)
		return
	}
	a.replicas.Change(&c)
	if err := a.sweep(); err != nil {
		a.fail(err)
		return
	}
	for _, f := range a.after {
		f(delta)
	}
	a.followed.Store(int64(img.End()))
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
func (a *applier) collect(d *image.Delta, c *replicas.Change) error {
	a.configure(d, c)
	for i := range d.Topics {
		t := d.Topics[i].New
		if t == nil {
			continue
		}
		for _, n := range d.Topics[i].Partitions {
			if err := a.changed(t, n, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// configure lists the replicas whose topic's configs changed, and takes what
// changed for the broker.
func (a *applier) configure(d *image.Delta, c *replicas.Change) {
	topics := map[string]bool{}
	all := false // for the broker's configs are the defaults of its topics
	for i := range d.Configs {
		switch name := d.Configs[i].Name; d.Configs[i].Resource {
		case metalog.ResourceTopic:
			topics[name] = true
		case metalog.ResourceBroker:
			all = all || name == "" || name == fmt.Sprint(int32(a.id))
		}
	}
	if !all && len(topics) == 0 {
		return
	}
	if all {
		c.Lanes = a.cfg.With(dynamic(a.cfg, a.img.Load())).ReplicaFetchers
	}
	for _, h := range a.replicas.Hosted() {
		if all || topics[h.TP.Topic] {
			cfg := a.topicConfig(h.TP.Topic)
			c.Configured = append(c.Configured, replicas.Configured{Hosted: h, MinISR: cfg.MinISR, Log: logConfig(cfg)})
		}
	}
}

func (a *applier) changed(t *image.Topic, n int32, c *replicas.Change) error {
	id := model.TopicIDPartition{TopicID: t.ID, Partition: n}
	p := t.Partitions[n]
	if !hosts(p.Replicas, a.id) {
		return nil
	}
	h := a.replicas.ByID(id)
	if h == nil {
		var err error
		if h, err = a.open(model.TopicPartition{Topic: t.Name, Partition: n}, id, c); err != nil {
			return err
		}
	}
	c.Assigned = append(c.Assigned, replicas.Assigned{Hosted: h, To: p})
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
// topic of the same name is set aside first. One that was there at the start was
// loaded with the broker's defaults, for its topic's configs were not known yet.
func (a *applier) open(tp model.TopicPartition, id model.TopicIDPartition, c *replicas.Change) (*api.Hosted, error) {
	cfg := a.topicConfig(tp.Topic)
	var log *storage.Log
	err := a.replicas.Write(func() error {
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
			if err = a.strays.setAside(a.dir, old); err != nil {
				return err
			}
		}
		log, err = a.dir.Create(tp, id.TopicID, logConfig(cfg), a.clock.Wall())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", tp, err)
	}
	log.SetConfig(logConfig(cfg))
	h := &api.Hosted{TP: tp, ID: id, Log: log}
	c.Opened = append(c.Opened, replicas.Opened{Hosted: h, MinISR: cfg.MinISR})
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
	a.replicas.Drop(gone)
	for _, h := range gone {
		if err := a.replicas.Write(func() error { return a.dir.Delete(h.TP) }); err != nil {
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
