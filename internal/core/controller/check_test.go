package controller

import (
	"slices"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// checker holds the invariants of the controller, R11: I13 to I17 and I25. It
// sees every decision with the images before and after it.
type checker struct {
	t       testing.TB
	request kmsg.Request // what is being decided, nil for a tick
	// epochs are the highest broker epochs ever registered, kept over
	// unregistrations.
	epochs map[model.BrokerID]model.BrokerEpoch
	// barred are replicas that restarted uncleanly and have not been let back in.
	barred  map[replica]bool
	configs Configs
}

type replica struct {
	tp model.TopicIDPartition
	b  model.BrokerID
}

func newChecker(t testing.TB, configs Configs) *checker {
	return &checker{t: t, epochs: map[model.BrokerID]model.BrokerEpoch{}, barred: map[replica]bool{}, configs: configs}
}

// step checks one decision.
func (k *checker) step(old, now *image.Image, r Result) {
	k.t.Helper()
	k.brokers(old, now, r)
	changes := map[model.TopicIDPartition]int{}
	for _, rec := range r.Records {
		if c, ok := rec.(*metalog.PartitionChange); ok {
			changes[model.TopicIDPartition{TopicID: c.TopicID, Partition: c.PartitionID}]++
		}
	}
	for t := range now.Topics() {
		for id, p := range t.Partitions {
			tp := model.TopicIDPartition{TopicID: t.ID, Partition: int32(id)}
			if was := old.Partition(t.ID, int32(id)); was != nil {
				k.transition(old, tp, was, p, changes[tp])
			}
			k.partition(now, t.Name, tp, p)
		}
	}
}

// brokers checks I17 and notes unclean restarts.
func (k *checker) brokers(old, now *image.Image, r Result) {
	k.t.Helper()
	for _, rec := range r.Records {
		reg, ok := rec.(*metalog.RegisterBroker)
		if !ok {
			continue
		}
		was := old.Broker(reg.BrokerID)
		if was != nil && was.Incarnation == reg.IncarnationID {
			if was.Epoch != reg.BrokerEpoch {
				k.t.Fatalf("I17: broker %d kept its incarnation and changed its epoch", reg.BrokerID)
			}
			continue
		}
		if last, ok := k.epochs[reg.BrokerID]; ok && reg.BrokerEpoch <= last {
			k.t.Fatalf("I17: broker %d got epoch %d after %d", reg.BrokerID, reg.BrokerEpoch, last)
		}
		k.epochs[reg.BrokerID] = reg.BrokerEpoch
		req, _ := k.request.(*kmsg.BrokerRegistrationRequest)
		if now.Feature(featureELR) > 0 && (was == nil || int64(was.Epoch) != req.PreviousBrokerEpoch) {
			for t, id := range now.PartitionsOf(reg.BrokerID) {
				k.barred[replica{model.TopicIDPartition{TopicID: t.ID, Partition: id}, reg.BrokerID}] = true
			}
		}
	}
}

// partition checks what must hold of a partition at any time: I13, I14, I15, and
// that nobody who may lead is left waiting.
func (k *checker) partition(img *image.Image, topic string, tp model.TopicIDPartition, p *image.Partition) {
	k.t.Helper()
	elr := img.Feature(featureELR) > 0
	fail := func(what string) { k.t.Helper(); k.t.Fatalf("%s: %s-%d is %s", what, topic, tp.Partition, show(p)) }
	if p.Leader != model.NoBroker && !contains(p.ISR, p.Leader) {
		fail("I13, the leader is not in the ISR")
	}
	if !containsAll(p.Replicas, p.ISR) || !containsAll(p.Replicas, p.ELR) || len(within(p.ISR, p.ELR)) > 0 ||
		!containsAll(p.Replicas, p.LastKnownELR) {
		fail("I13, ISR and ELR")
	}
	if !containsAll(p.Replicas, p.Adding) || !containsAll(p.Replicas, p.Removing) || len(within(p.Adding, p.Removing)) > 0 {
		fail("I13, adding and removing")
	}
	if len(p.Directories) != len(p.Replicas) {
		fail("directories and replicas do not match")
	}
	if !elr && len(p.ISR) == 0 {
		fail("R6.9, an empty ISR without ELR")
	}
	for _, b := range p.ISR {
		if br := img.Broker(b); br != nil && !br.Fenced && !br.InControlledShutdown {
			continue
		}
		if elr || len(p.ISR) > 1 || p.Leader != model.NoBroker {
			fail("I14, a broker that does not serve is in the ISR")
		}
	}
	d := (&State{img: img, cfg: Config{Configs: k.configs}}).decide(Call{})
	if len(p.ISR) >= min(d.minISR(topic), len(p.Replicas)) && len(p.ELR) > 0 {
		fail("I15, an ELR beside a large ISR")
	}
	if p.Recovering && len(p.ISR) > 1 {
		fail("I15, recovering with a larger ISR")
	}
	for _, b := range slices.Concat(p.ISR, p.ELR) {
		if k.barred[replica{tp, b}] {
			fail("I25, a replica that restarted uncleanly")
		}
	}
	k.noIdleCandidate(d, img.TopicByID(tp.TopicID), tp.Partition, fail)
}

// noIdleCandidate: where nobody leads, nobody may.
func (k *checker) noIdleCandidate(d *decision, t *image.Topic, id int32, fail func(string)) {
	k.t.Helper()
	if t.Partitions[id].Leader != model.NoBroker {
		return
	}
	c := d.change(t, id)
	c.elr, c.unclean = t.Partitions[id].ELR, d.uncleanAllowed(t.Name)
	if b, _ := c.choose(); b != model.NoBroker {
		fail("a replica may lead and is not asked to")
	}
}

// transition checks I16 and lets replicas back in.
func (k *checker) transition(old *image.Image, tp model.TopicIDPartition, was, p *image.Partition, changes int) {
	k.t.Helper()
	fail := func(what string) { k.t.Helper(); k.t.Fatalf("%s: %s became %s", what, show(was), show(p)) }
	if p.PartitionEpoch != was.PartitionEpoch+model.PartitionEpoch(changes) {
		fail("I16, the partition epoch counts the changes")
	}
	if changes > 1 {
		fail("two changes of a partition in one decision")
	}
	bumped := p.LeaderEpoch - was.LeaderEpoch
	if (p.Leader != was.Leader || !containsAll(p.Replicas, was.Replicas)) != (bumped == 1) || bumped < 0 || bumped > 1 {
		fail("I16, the leader epoch")
	}
	elected := p.Leader != was.Leader && len(p.ISR) == 1 && p.ISR[0] == p.Leader
	for _, b := range without(p.ISR, was.ISR...) {
		if elected && (contains(was.ELR, b) || p.Recovering) {
			delete(k.barred, replica{tp, b})
			continue
		}
		k.joined(old, tp, b, fail)
		delete(k.barred, replica{tp, b})
	}
}

// joined checks that b entered the ISR by an AlterPartition that named its
// registered epoch: I16, I17.
func (k *checker) joined(old *image.Image, tp model.TopicIDPartition, b model.BrokerID, fail func(string)) {
	k.t.Helper()
	req, ok := k.request.(*kmsg.AlterPartitionRequest)
	if !ok {
		fail("I16, the ISR grew by itself")
	}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			if t.TopicID != tp.TopicID || p.Partition != tp.Partition {
				continue
			}
			for _, m := range p.NewEpochISR {
				if m.BrokerID == int32(b) && m.BrokerEpoch != -1 && m.BrokerEpoch != int64(old.Broker(b).Epoch) {
					fail("I17, an old incarnation vouched for a new one")
				}
			}
			return
		}
	}
	fail("I16, the ISR grew by itself")
}
