package coretest

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// cmdState prints every replica's marks.
func (w *World) cmdState(*args) error {
	if w.quiet {
		return nil
	}
	w.say("     role      epoch  LEO  HW  RemoteLEO")
	for _, b := range w.brokers {
		switch {
		case b.down:
			w.say("b%d   down", b.id)
		case b.p != nil:
			w.sayState(b)
		}
	}
	return nil
}

func (w *World) sayState(b *broker) {
	v := b.p.View()
	line := fmt.Sprintf("b%d   %-8s  %5d  %3d  %2d  ", b.id, v.Role, v.LeaderEpoch, v.Marks.LEO, v.Marks.HW)
	var remotes []string
	var osr []model.BrokerID
	for _, r := range v.Remotes {
		remotes = append(remotes, fmt.Sprintf("b%d=%s", r.ID, offset(r.LEO)))
		if !r.InISR {
			osr = append(osr, r.ID)
		}
	}
	line += strings.Join(remotes, " ")
	if v.Role == partition.Leader {
		line += "  ISR=" + set(v.ISR)
		if len(osr) > 0 {
			line += " OSR=" + set(osr)
		}
		if v.PendingISR {
			line += " maximal=" + set(v.MaximalISR)
		}
	}
	if v.Marks.LogStart > 0 {
		line += fmt.Sprintf("  log start %d", v.Marks.LogStart)
	}
	w.say("%s", strings.TrimRight(line, " "))
}

// cmdWhy prints what holds the HW of a broker, and why followers are out.
func (w *World) cmdWhy(a *args) error {
	b, err := w.running(a)
	if err != nil {
		return err
	}
	v := b.p.View()
	w.tell(b, "%v", v.HoldsHW)
	for _, r := range v.Remotes {
		if r.Why.Code != partition.NoReason {
			w.tell(b, "%v", r.Why)
		}
	}
	return nil
}

// cmdLog prints what is on every disk.
func (w *World) cmdLog(*args) error {
	for _, b := range w.brokers {
		if !w.quiet && (b.p != nil || b.down) {
			parts := make([]string, 0, len(b.log.batches))
			for _, x := range b.log.batches {
				parts = append(parts, fmt.Sprintf("%d:%s@%d", x.base, strings.Join(x.values, "+"), x.epoch))
			}
			w.say("%s", strings.TrimRight(fmt.Sprintf("b%d  %s", b.id, strings.Join(parts, " ")), " "))
		}
	}
	return nil
}

// cmdEpochs prints the epoch file of every disk.
func (w *World) cmdEpochs(*args) error {
	for _, b := range w.brokers {
		if !w.quiet && b.p != nil {
			parts := make([]string, 0, len(b.log.epochs))
			for _, e := range b.log.epochs {
				parts = append(parts, fmt.Sprintf("%d@%d", e.Epoch, e.Start))
			}
			w.say("b%d  %s", b.id, strings.Join(parts, " "))
		}
	}
	return nil
}

// cmdClocks prints when each follower of a broker fetched, and when it had all
// that its leader had: clocks 1
func (w *World) cmdClocks(a *args) error {
	b, err := w.running(a)
	if err != nil {
		return err
	}
	for _, r := range b.p.View().Remotes {
		w.tell(b, "b%d fetched %s, was caught up %s", r.ID, at(r.LastFetch), at(r.LastCaughtUp))
	}
	return nil
}

func at(t model.Time) string {
	if t == partition.Never {
		return "never"
	}
	return "at " + time.Duration(t).String()
}
