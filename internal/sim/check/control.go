package check

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

const (
	featureELR   = "eligible.leader.replicas.version"
	configMinISR = "min.insync.replicas"
)

// nothing is the image before the first.
var nothing = image.New()

// heard takes in what somebody's picture of the metadata has become.
func (s *Set) heard(v viewOf, img *image.Image) error {
	old := s.views[v]
	if old == img {
		return nil
	}
	s.views[v] = img
	if old == nil {
		old = nothing
	}
	d := image.Diff(old, img)
	for i := range d.Topics {
		if t := d.Topics[i].New; t != nil {
			for _, n := range d.Topics[i].Partitions {
				if err := s.told(v, t, n); err != nil {
					return err
				}
			}
		}
	}
	for _, b := range d.Brokers {
		if b.New == nil {
			continue
		}
		key := incarnation{b.New.ID, b.New.Epoch}
		was, known := s.brokers[key]
		if known && was != b.New.Incarnation && s.rules.has(MetadataViews{}) {
			return s.violated(MetadataViews{}, nil, fmt.Sprintf("b%d has two incarnations with the epoch %d", key.id, key.epoch))
		}
		s.brokers[key] = b.New.Incarnation
	}
	if v.controller && img.End() > s.truth.End() {
		return s.advance(img)
	}
	return nil
}

// told compares one partition of a picture with what others say about the same
// partition epoch (I18).
func (s *Set) told(v viewOf, t *image.Topic, n int32) error {
	if int(n) >= len(t.Partitions) {
		return nil
	}
	p := s.partOf(model.TopicIDPartition{TopicID: t.ID, Partition: n}, model.TopicPartition{Topic: t.Name, Partition: n})
	is := t.Partitions[n]
	if is.PartitionEpoch == model.NoPartitionEpoch {
		return nil
	}
	was := p.states[is.PartitionEpoch]
	if was == nil {
		p.states[is.PartitionEpoch] = is
		return nil
	}
	if sameState(was, is) || !s.rules.has(MetadataViews{}) {
		return nil
	}
	who := "broker"
	if v.controller {
		who = "controller"
	}
	return s.violated(MetadataViews{}, p, fmt.Sprintf("%s %d sees another state of partition epoch %d: %s, not %s",
		who, v.id, is.PartitionEpoch, stateOf(is), stateOf(was)))
}

func sameState(a, b *image.Partition) bool {
	return a == b || a.Leader == b.Leader && a.LeaderEpoch == b.LeaderEpoch && a.Recovering == b.Recovering &&
		slices.Equal(a.Replicas, b.Replicas) && slices.Equal(a.ISR, b.ISR) && slices.Equal(a.ELR, b.ELR) &&
		slices.Equal(a.Adding, b.Adding) && slices.Equal(a.Removing, b.Removing)
}

func stateOf(p *image.Partition) string {
	return fmt.Sprintf("leader %d@%d, replicas %v, ISR %v, ELR %v, last known %v", p.Leader, p.LeaderEpoch, p.Replicas, p.ISR, p.ELR, p.LastKnownELR)
}

// advance takes in what was committed since.
func (s *Set) advance(img *image.Image) error {
	d := image.Diff(s.truth, img)
	s.truth, s.elr = img, img.Feature(featureELR) >= 1
	if len(d.Configs) > 0 {
		for _, p := range s.list {
			p.minISR = s.configuredMinISR(p.tp.Topic)
		}
	}
	for i := range d.Topics {
		if err := s.advanceTopic(&d.Topics[i]); err != nil {
			return err
		}
	}
	for _, r := range s.rules.image {
		if p, text := r.image(s, d); text != "" {
			return s.violated(r, p, text)
		}
	}
	return nil
}

func (s *Set) advanceTopic(t *image.TopicDelta) error {
	if t.New == nil {
		for n := range t.Old.Partitions {
			if p := s.parts[model.TopicIDPartition{TopicID: t.Old.ID, Partition: int32(n)}]; p != nil {
				p.deleted, p.truth = true, nil
			}
		}
		return nil
	}
	for _, n := range t.Partitions {
		p := s.parts[model.TopicIDPartition{TopicID: t.New.ID, Partition: n}]
		if p == nil || int(n) >= len(t.New.Partitions) {
			continue
		}
		old, is := p.truth, t.New.Partitions[n]
		if old != nil && old.PartitionEpoch == is.PartitionEpoch && sameState(old, is) {
			p.truth = is // the image of another controller
			continue
		}
		s.elected(p, old, is)
		s.joined(p, old, is)
		p.truth = is
		s.touch(p)
		for _, r := range s.rules.change {
			if text := r.change(s, p, old, is); text != "" {
				return s.violated(r, p, text)
			}
		}
	}
	return nil
}

// configuredMinISR is min.insync.replicas of a topic as the metadata says.
func (s *Set) configuredMinISR(topic string) int {
	for _, m := range []map[string]string{s.truth.Config(metalog.ResourceTopic, topic), s.truth.Config(metalog.ResourceBroker, "")} {
		if n, err := strconv.Atoi(m[configMinISR]); err == nil {
			return max(n, 1)
		}
	}
	return max(s.o.MinISR, 1)
}

// registered looks at the registration of a broker's life (I25).
func (s *Set) registered(b *Broker, t *seat) error {
	if b.Epoch == t.epoch {
		return nil
	}
	unclean := t.dirty && b.Epoch >= 0
	t.epoch = b.Epoch
	if !unclean {
		return nil
	}
	t.dirty = false
	reg := s.truth.Broker(b.ID)
	if reg == nil || reg.Epoch != b.Epoch || !s.rules.has(UncleanExclusion{}) {
		return nil
	}
	for _, p := range s.list {
		if !p.deleted && p.candidate(b.ID) && s.elr {
			return s.violated(UncleanExclusion{}, p, fmt.Sprintf("b%d stopped without an orderly end, and may still be elected after it registered: %s",
				b.ID, stateOf(p.truth)))
		}
	}
	return nil
}

// imageRule looks at what was committed.
type imageRule interface {
	rule
	image(s *Set, d *image.Delta) (*part, string)
}

// changeRule looks at one change of a partition; old is nil at its creation.
type changeRule interface {
	rule
	change(s *Set, p *part, old, is *image.Partition) string
}

// ControllerState is I13-I15.
type ControllerState struct{}

func (ControllerState) change(s *Set, p *part, _, is *image.Partition) string {
	known := func(list []model.BrokerID) bool {
		return !slices.ContainsFunc(list, func(id model.BrokerID) bool { return !slices.Contains(is.Replicas, id) })
	}
	both := func(a, b []model.BrokerID) bool {
		return slices.ContainsFunc(a, func(id model.BrokerID) bool { return slices.Contains(b, id) })
	}
	switch {
	case is.Leader != model.NoBroker && !slices.Contains(is.ISR, is.Leader):
		return "the leader is outside the ISR: " + stateOf(is)
	case !known(is.ISR) || !known(is.ELR):
		return "the ISR or ELR has a broker without a replica: " + stateOf(is)
	case both(is.ISR, is.ELR):
		return "a broker is in ISR and ELR: " + stateOf(is)
	case !known(is.Adding) || !known(is.Removing) || both(is.Adding, is.Removing):
		return fmt.Sprintf("adds %v, removes %v, replicas %v", is.Adding, is.Removing, is.Replicas)
	case len(is.ISR) >= p.effectiveMinISR() && len(is.ELR) > 0:
		return fmt.Sprintf("an ELR beside an ISR of the minimum %d: %s", p.effectiveMinISR(), stateOf(is))
	case is.Recovering && len(is.ISR) > 1: // none when its leader is gone too
		return "recovers with another ISR than its leader: " + stateOf(is)
	case !s.elr && len(is.ELR) > 0:
		return "an ELR though that feature is off: " + stateOf(is)
	}
	return ""
}

// image has every ISR free of brokers that may not be in one (I14).
func (ControllerState) image(s *Set, d *image.Delta) (*part, string) {
	if len(d.Brokers) == 0 && len(d.Topics) == 0 {
		return nil, ""
	}
	for _, b := range s.truth.Brokers() {
		if !b.Fenced && !b.InControlledShutdown {
			continue
		}
		for _, p := range s.list {
			if p.truth == nil || !slices.Contains(p.truth.ISR, b.ID) {
				continue
			}
			if s.elr || len(p.truth.ISR) != 1 || p.truth.Leader != model.NoBroker {
				return p, fmt.Sprintf("b%d is in the ISR though it is fenced or leaves: %s", b.ID, stateOf(p.truth))
			}
		}
	}
	return nil, ""
}

// ChangeSteps is I16.
type ChangeSteps struct{}

func (ChangeSteps) change(_ *Set, _ *part, old, is *image.Partition) string {
	if old == nil {
		return ""
	}
	steps, epochs := is.PartitionEpoch-old.PartitionEpoch, is.LeaderEpoch-old.LeaderEpoch
	shrank := slices.ContainsFunc(old.Replicas, func(id model.BrokerID) bool { return !slices.Contains(is.Replicas, id) })
	bumps := is.Leader != old.Leader || shrank
	switch {
	case steps < 1 || epochs < 0 || int(epochs) > int(steps):
		return fmt.Sprintf("partition epoch %d to %d, leader epoch %d to %d", old.PartitionEpoch, is.PartitionEpoch, old.LeaderEpoch, is.LeaderEpoch)
	case bumps && epochs == 0:
		return fmt.Sprintf("the leader epoch stays at %d though the leader or the replicas went: %s, before: %s", is.LeaderEpoch, stateOf(is), stateOf(old))
	case steps == 1 && !bumps && epochs != 0:
		return fmt.Sprintf("the leader epoch grows for nothing: %s, before: %s", stateOf(is), stateOf(old))
	}
	if steps != 1 || old.Leader != model.NoBroker { // a leader may take in who completes a reassignment
		return ""
	}
	for _, id := range is.ISR {
		if id != is.Leader && !slices.Contains(old.ISR, id) {
			return fmt.Sprintf("b%d comes into the ISR without a leader that asked for it: %s, before: %s", id, stateOf(is), stateOf(old))
		}
	}
	return ""
}

// BrokerEpochs is I17.
type BrokerEpochs struct{}

func (BrokerEpochs) image(_ *Set, d *image.Delta) (*part, string) {
	for _, b := range d.Brokers {
		if b.Old != nil && b.New != nil && (b.New.Epoch < b.Old.Epoch || b.New.Epoch == b.Old.Epoch && b.New.Incarnation != b.Old.Incarnation) {
			return nil, fmt.Sprintf("b%d registers with epoch %d after %d", b.New.ID, b.New.Epoch, b.Old.Epoch)
		}
	}
	return nil, ""
}

func (BrokerEpochs) change(s *Set, p *part, old, is *image.Partition) string {
	if old == nil || is.PartitionEpoch != old.PartitionEpoch+1 {
		return ""
	}
	for _, id := range is.ISR {
		if b := s.truth.Broker(id); !slices.Contains(old.ISR, id) && b == nil {
			return fmt.Sprintf("b%d comes into the ISR unregistered", id)
		}
	}
	return ""
}

// OneControllerPerEpoch is R6.1: the quorum elects one controller for an epoch, so
// a voter keeps its vote.
type OneControllerPerEpoch struct{}

// elects notes who decides in an epoch.
func (s *Set) elects(k *Controller) error {
	if s.deciders == nil {
		s.deciders = map[model.Epoch]model.BrokerID{}
	}
	was, known := s.deciders[k.Leads]
	s.deciders[k.Leads] = k.ID
	if known && was != k.ID && s.rules.has(OneControllerPerEpoch{}) {
		return &Violation{Invariant: nameOf(OneControllerPerEpoch{}),
			Text: fmt.Sprintf("controllers %d and %d both decide in epoch %d", was, k.ID, k.Leads)}
	}
	return nil
}

// MetadataViews is I18: see Set.told.
type MetadataViews struct{}

// UncleanExclusion is I25: see Set.registered.
type UncleanExclusion struct{}
