package controller

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// change builds the one PartitionChange record that takes a partition from what
// the image says to a target. Every decision about a partition goes through it:
// fencing, unfencing, a new ISR, an election, a reassignment. It first sees
// whether the target completes a reassignment, then who may lead, and last what
// that means for the ISR and the ELR.
type change struct {
	d     *decision
	topic *image.Topic
	id    int32
	p     *image.Partition

	// The target, starting as the partition is.
	isr, replicas    []model.BrokerID
	adding, removing []model.BrokerID
	recovering       bool
	dirOf            model.BrokerID // this replica moves to dir; NoBroker: none does
	dir              model.UUID
	replaced         bool // dirOf's disk was replaced: there is nothing of what it last led

	// leaving is a broker that may not lead although the image still calls it
	// active; lost says that it also lost the guarantee of holding all committed
	// data, by an unclean restart.
	leaving   model.BrokerID
	lost      bool
	preferred bool // PREFERRED election (R6.5)
	unclean   bool // an unclean election is allowed (R6.4); never with preferred

	// The outcome, after build.
	election Election
	elr      []model.BrokerID
	known    []model.BrokerID
	done     bool // a reassignment was completed
}

// change starts a change of a partition.
func (d *decision) change(t *image.Topic, id int32) *change {
	p := t.Partitions[id]
	return &change{
		d: d, topic: t, id: id, p: p,
		isr: p.ISR, replicas: p.Replicas, adding: p.Adding, removing: p.Removing,
		recovering: p.Recovering, dirOf: model.NoBroker, leaving: model.NoBroker,
	}
}

// build returns the record of the change, or nil if nothing changes.
func (c *change) build() *metalog.PartitionChange {
	c.complete()
	c.isr = within(c.isr, c.replicas)
	c.elr = c.eligible(c.isr, c.p.ELR)
	c.elect()
	c.settleISR()
	c.settleKnown()
	return c.record()
}

// complete ends a reassignment once the ISR without the removing replicas holds
// every target replica. It then is no smaller than the effective minimum, which
// the size of the target bounds (R6.16).
func (c *change) complete() {
	if len(c.adding) == 0 && len(c.removing) == 0 {
		return
	}
	target, isr := without(c.replicas, c.removing...), without(c.isr, c.removing...)
	if len(isr) == 0 || !containsAll(isr, target) {
		return
	}
	c.replicas, c.isr, c.adding, c.removing = target, isr, nil, nil
	c.done = true
}

// eligible returns the ELR that goes with isr: empty at the minimum, else all
// who were in the ISR or the ELR, are not any more, and lost nothing (R6.10).
func (c *change) eligible(isr, elr []model.BrokerID) []model.BrokerID {
	if !c.d.elr || len(isr) >= c.minISR() {
		return nil
	}
	out := slices.Concat(elr, c.p.ISR)
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(b model.BrokerID) bool {
		return slices.Contains(isr, b) || c.lost && b == c.leaving || !slices.Contains(c.replicas, b)
	})
}

// minISR is the effective minimum of in-sync replicas (R1.17).
func (c *change) minISR() int {
	return min(c.d.minISR(c.topic.Name), len(c.replicas))
}

// settleISR makes the ISR and the ELR follow from who was elected (R6.7, R6.9).
func (c *change) settleISR() {
	e := c.election
	switch {
	case e.Leader == model.NoBroker:
		if !c.d.elr && len(c.isr) == 0 {
			c.isr = within(c.p.ISR, c.replicas)
		}
	case !e.Clean:
		c.isr, c.elr, c.recovering = []model.BrokerID{e.Leader}, nil, true
	case !slices.Contains(c.isr, e.Leader):
		c.isr = []model.BrokerID{e.Leader}
		c.elr = c.eligible(c.isr, c.elr)
	}
}

// settleKnown keeps the last leader of a partition whose ISR became empty, and
// forgets it when there is a leader again (R6.13) or its disk was replaced.
func (c *change) settleKnown() {
	switch {
	case !c.d.elr || c.election.Leader != model.NoBroker:
		c.known = nil
	case len(c.isr) == 0 && c.p.Leader != model.NoBroker:
		c.known = within([]model.BrokerID{c.p.Leader}, c.replicas)
	case len(c.isr) == 0 && len(c.p.ISR) == 1:
		c.known = within(c.p.ISR, c.replicas)
	default:
		c.known = within(c.p.LastKnownELR, c.replicas)
	}
	if c.replaced {
		c.known = without(c.known, c.dirOf)
	}
}

// record compares the target with what is and writes down the differences. The
// leader is written, and its epoch so bumped, when it changes and whenever a
// replica leaves the assignment (R6.8).
func (c *change) record() *metalog.PartitionChange {
	rec := metalog.NewPartitionChange(c.topic.ID, c.id)
	changed := differ(&rec.ISR, c.isr, c.p.ISR, sameSet)
	changed = differ(&rec.ELR, c.elr, c.p.ELR, sameSet) || changed
	changed = differ(&rec.LastKnownELR, c.known, c.p.LastKnownELR, sameSet) || changed
	changed = differ(&rec.Adding, c.adding, c.p.Adding, sameSet) || changed
	changed = differ(&rec.Removing, c.removing, c.p.Removing, sameSet) || changed
	changed = differ(&rec.Replicas, c.replicas, c.p.Replicas, slices.Equal) || changed
	if c.election.Leader != c.p.Leader || !containsAll(c.replicas, c.p.Replicas) {
		rec.Leader, changed = c.election.Leader, true
	}
	if c.recovering != c.p.Recovering {
		rec.RecoveryState, changed = metalog.Recovered, true
		if c.recovering {
			rec.RecoveryState = metalog.Recovering
		}
	}
	if dirs := c.directories(); !slices.Equal(dirs, c.p.Directories) {
		rec.Directories, changed = dirs, true
	}
	if !changed {
		return nil
	}
	return rec
}

// directories returns the directory of every replica of the target, in order.
func (c *change) directories() []model.UUID {
	if c.dirOf == model.NoBroker && slices.Equal(c.replicas, c.p.Replicas) {
		return c.p.Directories
	}
	dirs := make([]model.UUID, len(c.replicas))
	for i, b := range c.replicas {
		switch old := slices.Index(c.p.Replicas, b); {
		case b == c.dirOf:
			dirs[i] = c.dir
		case old >= 0 && old < len(c.p.Directories):
			dirs[i] = c.p.Directories[old]
		case old < 0:
			dirs[i] = c.d.defaultDir(b)
		}
	}
	return dirs
}

// directory is where the partition's replica on b is, or will be.
func (c *change) directory(b model.BrokerID) model.UUID {
	if b == c.dirOf {
		return c.dir
	}
	if i := slices.Index(c.p.Replicas, b); i >= 0 && i < len(c.p.Directories) {
		return c.p.Directories[i]
	}
	return metalog.DirUnassigned
}

// defaultDir is the directory of a replica that is new on the broker: its only
// one, or left to the broker to report.
func (d *decision) defaultDir(b model.BrokerID) model.UUID {
	br := d.img.Broker(b)
	switch {
	case br == nil || len(br.Directories) == 0:
		return metalog.DirMigrating
	case len(br.Directories) == 1:
		return br.Directories[0]
	}
	return metalog.DirUnassigned
}

// differ stores target in field, never as nil, if it is not the same as old.
func differ(field *[]model.BrokerID, target, old []model.BrokerID, same func(a, b []model.BrokerID) bool) bool {
	if same(target, old) {
		return false
	}
	*field = append([]model.BrokerID{}, target...)
	return true
}
