package controller

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Rule is the reason that made a replica leader, or left a partition without one.
type Rule uint8

// The rules, in the order in which an election tries them (R6.4, R6.5).
const (
	RulePreferred Rule = iota + 1 // the first replica of the assignment, asked for
	RuleKept                      // the current leader is still valid
	RuleISR                       // the first valid member of the ISR
	RuleELR                       // the ISR is empty; the first valid member of the ELR
	RuleLastKnown                 // ISR and ELR are empty; the last known leader is back
	RuleUnclean                   // nobody is eligible; the first live replica
	RuleNone                      // no replica may lead
)

// Election is who leads a partition after a decision, and why.
type Election struct {
	Old, Leader model.BrokerID // NoBroker: none
	LeaderEpoch model.Epoch    // after the decision
	Rule        Rule
	Clean       bool // the leader holds everything committed
	// Candidates are all replicas in the order of the assignment, each with what
	// spoke against it. They are listed only when the leader changes.
	Candidates []Candidate
}

// Candidate is one replica in an election.
type Candidate struct {
	Broker model.BrokerID
	InISR  bool
	InELR  bool
	// Bar says why it may not lead at all; BarNone if it may.
	Bar Bar
}

// Bar is why a broker may not lead (R6.2).
type Bar uint8

// The bars.
const (
	BarNone         Bar = iota
	BarUnregistered     // nobody is registered under the id
	BarFenced
	BarShutdown // in controlled shutdown
	BarLeaving  // this very decision takes it out
	BarDir      // the replica's directory is offline
)

// bar says what keeps b from leading: it must be registered, not fenced, not
// shutting down, and the replica's directory must be online (R6.2).
func (c *change) bar(b model.BrokerID) Bar {
	if b == c.leaving {
		return BarLeaving
	}
	br := c.d.img.Broker(b)
	switch {
	case br == nil:
		return BarUnregistered
	case br.Fenced:
		return BarFenced
	case br.InControlledShutdown:
		return BarShutdown
	}
	switch dir := c.directory(b); {
	case dir == metalog.DirUnassigned || dir == metalog.DirMigrating || len(br.Directories) == 0:
	case !slices.Contains(br.Directories, dir):
		return BarDir
	}
	return BarNone
}

// valid reports whether b may lead without loss of data (R6.3).
func (c *change) valid(b model.BrokerID) bool {
	if b == model.NoBroker || !slices.Contains(c.replicas, b) || c.bar(b) != BarNone {
		return false
	}
	return slices.Contains(c.isr, b) || len(c.isr) == 0 && slices.Contains(c.elr, b)
}

// elect fills in c.election for the target ISR and ELR.
func (c *change) elect() {
	leader, rule := c.choose()
	e := Election{
		Old: c.p.Leader, Leader: leader, LeaderEpoch: c.p.LeaderEpoch, Rule: rule,
		Clean: rule != RuleUnclean && rule != RuleLastKnown,
	}
	if leader != c.p.Leader {
		e.Candidates = make([]Candidate, len(c.replicas))
		for i, b := range c.replicas {
			e.Candidates[i] = Candidate{
				Broker: b, Bar: c.bar(b),
				InISR: slices.Contains(c.isr, b), InELR: slices.Contains(c.elr, b),
			}
		}
	}
	if leader != c.p.Leader || !containsAll(c.replicas, c.p.Replicas) {
		e.LeaderEpoch++
	}
	c.election = e
}

// choose tries the rules in order.
func (c *change) choose() (model.BrokerID, Rule) {
	if c.preferred && len(c.replicas) > 0 && c.valid(c.replicas[0]) {
		return c.replicas[0], RulePreferred
	}
	if c.valid(c.p.Leader) {
		return c.p.Leader, RuleKept
	}
	for _, b := range c.replicas {
		if c.valid(b) {
			if len(c.isr) == 0 {
				return b, RuleELR
			}
			return b, RuleISR
		}
	}
	if b, ok := c.lastKnown(); ok {
		return b, RuleLastKnown
	}
	if c.unclean {
		for _, b := range c.replicas {
			if c.bar(b) == BarNone {
				return b, RuleUnclean
			}
		}
	}
	return model.NoBroker, RuleNone
}

// lastKnown returns the last known leader if ISR and ELR are empty, it is the
// only entry and it may lead (R6.13). It is preferred to others for what it holds:
// with a new disk that is nothing, and all others would cut their logs to that.
func (c *change) lastKnown() (model.BrokerID, bool) {
	if !c.d.elr || len(c.isr) > 0 || len(c.elr) > 0 || len(c.p.LastKnownELR) != 1 {
		return model.NoBroker, false
	}
	b := c.p.LastKnownELR[0]
	if c.replaced && b == c.dirOf {
		return model.NoBroker, false
	}
	return b, slices.Contains(c.replicas, b) && c.bar(b) == BarNone
}
