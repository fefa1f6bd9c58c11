package check

import (
	"fmt"
	"slices"

	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// CleanStopKept is R6.12: a broker that stopped in order says so when it comes
// back, by the epoch that it left on its disk, and loses no claim by that.
type CleanStopKept struct{}

func (CleanStopKept) image(s *Set, d *image.Delta) (*part, string) {
	for _, b := range d.Brokers {
		if !s.elr || b.Old == nil || b.New == nil || b.Old.Epoch == b.New.Epoch || !s.leftInOrder(b.Old) {
			continue
		}
		for i := range d.Topics {
			if p, text := s.keeps(&d.Topics[i], b.New.ID); text != "" {
				return p, fmt.Sprintf("b%d stopped in order in its epoch %d, and is registered anew without its claim: %s",
					b.New.ID, b.Old.Epoch, text)
			}
		}
	}
	return nil, ""
}

// leftInOrder says that the disk of a broker, as its present life found it, holds
// the sign that the registered life ended in order.
func (s *Set) leftInOrder(b *image.Broker) bool {
	return slices.ContainsFunc(s.seats, func(t *seat) bool { return t.id == b.ID && t.clean == b.Epoch })
}

// keeps says which claim a broker has lost by one change. Whoever is not in an ISR
// below its minimum is in the ELR beside it, unless that election was unclean.
func (s *Set) keeps(t *image.TopicDelta, id model.BrokerID) (*part, string) {
	if t.Old == nil || t.New == nil {
		return nil, ""
	}
	claims := func(p *image.Partition) bool { return slices.Contains(p.ISR, id) || slices.Contains(p.ELR, id) }
	for _, n := range t.Partitions {
		p := s.parts[model.TopicIDPartition{TopicID: t.New.ID, Partition: n}]
		if p == nil || int(n) >= len(t.Old.Partitions) || int(n) >= len(t.New.Partitions) {
			continue
		}
		old, is := t.Old.Partitions[n], t.New.Partitions[n]
		if is.PartitionEpoch == old.PartitionEpoch+1 && claims(old) && !claims(is) && slices.Contains(is.Replicas, id) &&
			!is.Recovering && len(is.ISR) < p.effectiveMinISR() {
			return p, stateOf(is) + ", before: " + stateOf(old)
		}
	}
	return nil, ""
}

// ISRNotEmpty is R6.9: without an ELR nobody else says who has all that was
// committed, so the last member of an ISR stays in it.
type ISRNotEmpty struct{}

func (ISRNotEmpty) change(s *Set, _ *part, _, is *image.Partition) string {
	if s.elr || len(is.ISR) > 0 {
		return ""
	}
	return "the ISR is empty, and there is no ELR: " + stateOf(is)
}

// OneLife is R6.14: see Set.beating.
type OneLife struct{}

// beatOf names what a controller knows of a broker, in one epoch of its own.
type beatOf struct {
	broker model.BrokerID
	leads  model.Epoch
}

// beating judges the registrations of a controller. Its clock says when it heard
// of the life before, and of the new one: that was when it took it.
func (s *Set) beating(k *Controller) (err error) {
	if k.Beats == nil || s.o.SessionTimeout <= 0 || !s.rules.has(OneLife{}) {
		return nil
	}
	if s.beats == nil {
		s.beats = map[beatOf]controlplane.Beat{}
	}
	k.Beats(func(is controlplane.Beat) {
		key := beatOf{is.Broker, k.Leads}
		was := s.beats[key]
		s.beats[key] = is
		if is.Epoch > was.Epoch && was.Stands && !was.Fenced && is.Last.Sub(was.Last) < s.o.SessionTimeout {
			err = s.violated(OneLife{}, nil, fmt.Sprintf("controller %d registers b%d with epoch %d, %v after a word of its life of epoch %d",
				k.ID, is.Broker, is.Epoch, is.Last.Sub(was.Last), was.Epoch))
		}
	})
	return err
}
