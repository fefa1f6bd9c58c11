package controller

import (
	"strconv"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The features and configurations that rules depend on.
const (
	featureMetadata = "metadata.version"
	featureKRaft    = "kraft.version"
	featureELR      = "eligible.leader.replicas.version"

	configMinISR  = "min.insync.replicas"
	configUnclean = "unclean.leader.election.enable"
)

// elrMetadata is the lowest metadata.version whose records can carry an ELR.
const elrMetadata = 23

// decision gathers what one call decides. img shows the state before it; a
// decision of several parts calls settle between them, so that each sees what
// the one before did.
type decision struct {
	s       *State
	call    Call
	img     *image.Image
	elr     bool // eligible.leader.replicas.version is on
	recs    []metalog.Record
	settled int // so many of recs are in img
	res     Result
	cause   ReasonCode // why the broker that leaves does so

	// The effective settings of the topic last asked about.
	topic      string
	topicMin   int
	topicClean bool // it allows no unclean election
}

func (s *State) decide(c Call) *decision {
	return &decision{s: s, call: c, img: s.img, elr: s.img.Feature(featureELR) > 0}
}

// emit adds records.
func (d *decision) emit(recs ...metalog.Record) { d.recs = append(d.recs, recs...) }

// because adds a reason.
func (d *decision) because(r Reason) { d.res.Reasons = append(d.res.Reasons, r) }

// drop takes back what was decided so far, for a request that only validates.
func (d *decision) drop() { d.recs, d.res.Reasons = nil, nil }

// settle applies what was emitted to the image that the rest of the decision
// looks at.
func (d *decision) settle() {
	if d.settled == len(d.recs) {
		return
	}
	end := d.call.NextOffset + model.Offset(len(d.recs))
	d.img = d.img.Apply(d.recs[d.settled:], end, d.img.Epoch())
	d.settled, d.topic = len(d.recs), ""
	d.elr = d.img.Feature(featureELR) > 0
}

// result ends the decision. What does not fit one batch goes into a transaction,
// so that every decision is atomic.
func (d *decision) result(resp kmsg.Response) Result {
	d.res.Response, d.res.Records = resp, d.recs
	if len(d.recs) > MaxBatch {
		recs := make([]metalog.Record, 0, len(d.recs)+2)
		recs = append(recs, &metalog.BeginTransaction{})
		recs = append(recs, d.recs...)
		d.res.Records = append(recs, &metalog.EndTransaction{})
	}
	return d.res
}

// apply emits the record of a change, with the reason if the leader moved or a
// reassignment ended. It reports whether there was anything to change.
func (d *decision) apply(c *change) bool {
	rec := c.build()
	if rec == nil {
		return false
	}
	d.emit(rec)
	c.explain()
	return true
}

// explain adds the reasons of a change that was made. A leader that leaves the
// ISR is part of the election.
func (c *change) explain() {
	if e := c.election; e.Leader != e.Old {
		c.d.because(Reason{Code: ReasonElection, Topic: c.topic.Name, Partition: c.id, Broker: e.Leader, Election: &e})
	}
	if b := c.leaving; b != model.NoBroker && b != c.p.Leader && contains(c.p.ISR, b) {
		c.d.because(Reason{Code: ReasonLeft, Topic: c.topic.Name, Partition: c.id, Broker: b, Cause: c.d.cause})
	}
	if c.done {
		c.d.because(Reason{Code: ReasonReassigned, Topic: c.topic.Name, Partition: c.id, Brokers: c.replicas})
	}
}

// minISR is the effective min.insync.replicas of a topic, before it is bounded
// by the number of replicas.
func (d *decision) minISR(topic string) int {
	d.load(topic)
	return d.topicMin
}

// uncleanAllowed reports whether the topic allows unclean elections.
func (d *decision) uncleanAllowed(topic string) bool {
	d.load(topic)
	return !d.topicClean
}

// load reads the settings of a topic, once for all its partitions.
func (d *decision) load(topic string) {
	if d.topic == topic && topic != "" {
		return
	}
	d.topic, d.topicMin = topic, 1
	if n, err := strconv.Atoi(d.setting(topic, configMinISR)); err == nil && n > 1 {
		d.topicMin = n
	}
	d.topicClean = d.setting(topic, configUnclean) != "true"
}

// setting looks a key up where Kafka does: the topic, this node, all brokers,
// this node's file.
func (d *decision) setting(topic, key string) string {
	if v, ok := d.img.Config(metalog.ResourceTopic, topic)[key]; ok {
		return v
	}
	if v, ok := d.img.Config(metalog.ResourceBroker, d.s.nodeName)[key]; ok {
		return v
	}
	if v, ok := d.img.Config(metalog.ResourceBroker, "")[key]; ok {
		return v
	}
	return d.s.cfg.Configs.Static(key)
}

// leave takes b out of every ISR that it is in, and with lost out of every ELR
// too, with elections where it led (R6.12, R6.15).
func (d *decision) leave(b model.BrokerID, lost bool, cause ReasonCode) {
	d.cause = cause
	for t, id := range d.img.PartitionsOf(b) {
		p := t.Partitions[id]
		if !contains(p.ISR, b) && !(lost && contains(p.ELR, b)) {
			continue
		}
		c := d.change(t, id)
		c.isr = without(p.ISR, b)
		c.leaving, c.lost = b, lost
		c.unclean = d.uncleanAllowed(t.Name)
		d.apply(c)
	}
}

// join tries to elect a leader for every leaderless partition that b has a
// replica of (R6.15).
func (d *decision) join(b model.BrokerID) {
	for t, id := range d.img.PartitionsOf(b) {
		if t.Partitions[id].Leader != model.NoBroker {
			continue
		}
		c := d.change(t, id)
		c.unclean = d.uncleanAllowed(t.Name)
		d.apply(c)
	}
}

// revive tries to elect leaders for leaderless partitions of all topics, at most
// limit of them, and reports whether it stopped there.
func (d *decision) revive(limit int) (more bool) {
	elected := 0
	for tp := range d.img.Leaderless() {
		t := d.img.TopicByID(tp.TopicID)
		if t == nil {
			continue
		}
		c := d.change(t, tp.Partition)
		c.unclean = d.uncleanAllowed(t.Name)
		if !d.apply(c) {
			continue
		}
		if elected++; elected == limit {
			return true
		}
	}
	return false
}

// fence fences b, leaving ISRs and leaderships first (R6.15).
func (d *decision) fence(b *image.Broker, why Reason) {
	d.because(why)
	d.leave(b.ID, false, why.Code)
	d.emit(&metalog.BrokerRegistrationChange{
		BrokerID: b.ID, BrokerEpoch: b.Epoch, Fenced: metalog.FencedSet,
	})
}

// unfence lets b serve, and lead what nobody leads (R6.15).
func (d *decision) unfence(b *image.Broker) {
	d.because(Reason{Code: ReasonUnfenced, Broker: b.ID, Epoch: b.Epoch})
	d.emit(&metalog.BrokerRegistrationChange{
		BrokerID: b.ID, BrokerEpoch: b.Epoch, Fenced: metalog.FencedCleared,
	})
	d.settle()
	d.join(b.ID)
}
