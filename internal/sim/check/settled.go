package check

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Converged reports what a cluster whose faults have ended still has to do
// (J1-J9); nil when it has settled. The world lets time go by until then, and
// calls it a failure when that takes too long.
func (s *Set) Converged(c *Cluster) error {
	for _, r := range s.rules.settled {
		if p, text := r.settled(s, c); text != "" {
			return s.violated(r, p, text)
		}
	}
	return nil
}

// Unfenced is J1.
type Unfenced struct{}

func (Unfenced) settled(s *Set, c *Cluster) (*part, string) {
	for i := range c.Brokers {
		b := &c.Brokers[i]
		reg := s.truth.Broker(b.ID)
		switch {
		case !b.Running:
			return nil, fmt.Sprintf("b%d does not run", b.ID)
		case reg == nil || reg.Epoch != b.Epoch:
			return nil, fmt.Sprintf("b%d is not registered with its epoch %d", b.ID, b.Epoch)
		case reg.Fenced || reg.InControlledShutdown:
			return nil, fmt.Sprintf("b%d is fenced or leaves", b.ID)
		}
	}
	return nil, ""
}

// alive yields the partitions that the metadata has.
func (s *Set) alive(yield func(*part) bool) {
	for _, p := range s.list {
		if !p.deleted && p.truth != nil && !yield(p) {
			return
		}
	}
}

// ISRFull is J2.
type ISRFull struct{}

func (ISRFull) settled(s *Set, _ *Cluster) (*part, string) {
	for p := range s.alive {
		leader := p.mirror(p.truth.Leader)
		if leader == nil || !leader.leads() || leader.stale() {
			return p, fmt.Sprintf("nobody leads: %s", stateOf(p.truth))
		}
		for _, id := range p.truth.Replicas {
			switch m := p.mirror(id); {
			case m == nil || !m.live():
				return p, fmt.Sprintf("b%d does not host its replica", id)
			case m.now.marks.LEO != leader.now.marks.LEO:
				return p, fmt.Sprintf("b%d ends at %d, leader b%d at %d", id, m.now.marks.LEO, leader.id(), leader.now.marks.LEO)
			case !slices.Contains(p.truth.ISR, id):
				return p, fmt.Sprintf("b%d is outside the ISR: %s", id, stateOf(p.truth))
			}
		}
	}
	return nil, ""
}

// ConfigsObeyed is J9. The config that makes records durable before they are
// acknowledged stands for all of them.
type ConfigsObeyed struct{}

func (ConfigsObeyed) settled(s *Set, _ *Cluster) (*part, string) {
	for p := range s.alive {
		want, err := strconv.ParseInt(s.truth.Config(metalog.ResourceTopic, p.tp.Topic)["flush.messages"], 10, 64)
		if err != nil {
			continue // the topic leaves it to its brokers
		}
		for _, m := range p.mirrors {
			if m.live() && m.now.flushes != want {
				return p, fmt.Sprintf("b%d syncs its log every %d records, and its topic wants %d", m.id(), m.now.flushes, want)
			}
		}
	}
	return nil, ""
}

// HWReachesLEO is J3.
type HWReachesLEO struct{}

func (HWReachesLEO) settled(s *Set, _ *Cluster) (*part, string) {
	for p := range s.alive {
		for _, m := range p.mirrors {
			if k := m.now.marks; m.live() && k.HW != k.LEO {
				return p, fmt.Sprintf("b%d has the HW %d, LEO %d", m.id(), k.HW, k.LEO)
			}
		}
	}
	return nil, ""
}

// Answered is J4.
type Answered struct{}

func (Answered) settled(s *Set, _ *Cluster) (*part, string) {
	if h := s.o.History; h != nil && h.Pending() > 0 {
		return nil, fmt.Sprintf("%d produce calls have not returned", h.Pending())
	}
	return nil, ""
}

// ISRSettled is J5.
type ISRSettled struct{}

func (ISRSettled) settled(s *Set, _ *Cluster) (*part, string) {
	for p := range s.alive {
		for _, m := range p.mirrors {
			if m.leads() && m.now.pending {
				return p, fmt.Sprintf("b%d waits for an answer about its ISR", m.id())
			}
		}
	}
	return nil, ""
}

// MetadataConverged is J6.
type MetadataConverged struct{}

func (MetadataConverged) settled(s *Set, c *Cluster) (*part, string) {
	same := func(who string, id model.BrokerID, i *image.Image) string {
		if i == nil {
			return fmt.Sprintf("%s %d knows no metadata", who, id)
		}
		d := image.Diff(i, s.truth)
		if len(d.Topics)+len(d.Brokers)+len(d.Configs) == 0 || !unlike(d) {
			return ""
		}
		return fmt.Sprintf("%s %d knows the metadata up to %d, committed is %d", who, id, i.End(), s.truth.End())
	}
	for i := range c.Controllers {
		if k := &c.Controllers[i]; k.Running {
			if text := same("controller", k.ID, k.Image); text != "" {
				return nil, text
			}
		}
	}
	for i := range c.Brokers {
		if b := &c.Brokers[i]; b.Running {
			if text := same("broker", b.ID, b.Image); text != "" {
				return nil, text
			}
		}
	}
	for p := range s.alive {
		for _, m := range p.mirrors {
			if m.live() && (m.stale() || m.now.pepoch < p.truth.PartitionEpoch) {
				return p, fmt.Sprintf("b%d has applied partition epoch %d of %d", m.id(), m.now.pepoch, p.truth.PartitionEpoch)
			}
		}
	}
	return nil, ""
}

// unlike says that what differs is not only where it is kept: two nodes have
// images of their own, which share nothing.
func unlike(d *image.Delta) bool {
	if len(d.Configs) > 0 {
		return true
	}
	for _, t := range d.Topics {
		if t.Old == nil || t.New == nil || len(t.Old.Partitions) != len(t.New.Partitions) {
			return true
		}
		for _, n := range t.Partitions {
			if a, b := t.Old.Partitions[n], t.New.Partitions[n]; a.PartitionEpoch != b.PartitionEpoch || !sameState(a, b) {
				return true
			}
		}
	}
	for _, b := range d.Brokers {
		if b.Old == nil || b.New == nil || b.Old.Epoch != b.New.Epoch || b.Old.Fenced != b.New.Fenced ||
			b.Old.InControlledShutdown != b.New.InControlledShutdown {
			return true
		}
	}
	return false
}

// ReassignmentDone is J7.
type ReassignmentDone struct{}

func (ReassignmentDone) settled(s *Set, _ *Cluster) (*part, string) {
	for p := range s.alive {
		if len(p.truth.Adding)+len(p.truth.Removing) > 0 {
			return p, fmt.Sprintf("adds %v and removes %v still: %s", p.truth.Adding, p.truth.Removing, stateOf(p.truth))
		}
	}
	return nil, ""
}
