// Package coretest plays the replication core through the life of a cluster. Its
// commands come from scripts or from chance: a few brokers with one partition, a
// controller, a network that loses and delays, and checkers after every command.
package coretest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// World is a cluster with one partition. It is driven by commands, in one
// goroutine, and tells what they changed.
type World struct {
	out   strings.Builder
	quiet bool // the random driver's first run of a seed prints nothing

	now       model.Time
	fetchWait time.Duration
	cfg       partition.Config
	brokers   []*broker
	ctl       controller
	net       []*message
	ghost     ghost
	// onAnswer hears the answer to the next produce command.
	onAnswer func(model.Error)
	// failures are broken invariants and commands that make no sense.
	failures []string
}

// broker is one process and its disk.
type broker struct {
	id    model.BrokerID
	p     *partition.Partition // nil when it hosts no replica
	down  bool
	epoch model.BrokerEpoch // of this incarnation
	peers partition.Peers   // as the newest image it heard says
	heard int               // metadata versions heard

	log  disk
	jobs []job // for the log writer, in order
	hold bool  // the log writer stands still

	parked []*parkedFetch
	waits  []*waiter
	wake   partition.Wake
	// alter is what this broker has sent to the controller: one at a time.
	alter *alteration
	lossy bool // lost a log suffix and has not joined the ISR since
	hit   bool // lost it while it might have been elected
}

func (b *broker) live() bool { return !b.down && b.p != nil }

func (w *World) broker(id model.BrokerID) *broker {
	for _, b := range w.brokers {
		if b.id == id {
			return b
		}
	}
	return nil
}

func (w *World) say(format string, args ...any) {
	if !w.quiet {
		fmt.Fprintf(&w.out, format+"\n", args...)
	}
}

// tell says something about one broker, in the column of its own.
func (w *World) tell(b *broker, format string, args ...any) {
	if !w.quiet {
		fmt.Fprintf(&w.out, "%-9s %s\n", "b"+itoa(b.id), fmt.Sprintf(format, args...))
	}
}

func (w *World) fail(format string, args ...any) {
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

// step gives one input to the replica, says which marks moved, and carries out
// the Ready. payload is what an Append of this step writes.
func (w *World) step(b *broker, in partition.Input, payload []batch) partition.Ready {
	before := w.marks(b)
	rd := b.p.Step(w.now, wall(w.now), in)
	w.sayMoves(b, before)
	w.noteHW(b, before)
	if !w.quiet {
		w.sayReasons(b, rd.Reasons)
	}
	if rd.Reply != nil { // it must outlive the steps that follow
		reply := *rd.Reply
		rd.Reply = &reply
	}
	b.wake |= rd.Wake
	w.enqueue(b, rd, payload)
	w.runJobs(b)
	if rd.AlterISR != nil {
		w.alterPartition(b, *rd.AlterISR)
	}
	if rd.AskLeader {
		w.askLeader(b)
	}
	return rd
}

func wall(t model.Time) model.Millis {
	return 1_700_000_000_000 + model.Millis(time.Duration(t).Milliseconds())
}

// settle lets everything happen that a command caused: producers are answered
// before fetches.
func (w *World) settle() {
	for again := true; again; {
		again = false
		for _, b := range w.brokers {
			if b.wake == 0 {
				continue
			}
			wake := b.wake
			b.wake, again = 0, true
			if wake&(partition.WakeProduce|partition.WakeFetch) != 0 {
				w.answerProducers(b)
			}
			if wake&partition.WakeFetch != 0 {
				w.completeFetches(b)
			}
		}
	}
}

// start opens the replica of b from its disk.
func (w *World) start(b *broker, hw model.Offset) {
	cfg := w.cfg
	cfg.ID, cfg.Peers = b.id, &b.peers
	cfg.LEO, cfg.LogStart, cfg.HW = b.log.end(), b.log.start, hw
	cfg.LEOPos = b.log.locate(b.log.end())
	cfg.Epochs = b.log.loadEpochs()
	cfg.Producers = b.log.fold()
	b.p = partition.New(cfg)
}

func (d *disk) fold() *producers.State {
	s := producers.New()
	for _, x := range d.batches {
		s.Apply(x.producer)
	}
	return s
}

// marksBefore is what a step may move.
type marksBefore struct {
	partition.Marks
	remotes []partition.RemoteView
	role    partition.Role
	epoch   model.Epoch
}

func (w *World) marks(b *broker) marksBefore {
	m := marksBefore{Marks: b.p.Marks(), role: b.p.Role()}
	_, m.epoch = b.p.Leader()
	if !w.quiet {
		m.remotes = b.p.View().Remotes
	}
	return m
}

// sayMoves prints the marks that moved; what did not move is not mentioned.
func (w *World) sayMoves(b *broker, before marksBefore) {
	if w.quiet {
		return
	}
	after, view := b.p.Marks(), b.p.View()
	for _, r := range view.Remotes {
		i := slices.IndexFunc(before.remotes, func(o partition.RemoteView) bool { return o.ID == r.ID })
		if i >= 0 && before.remotes[i].LEO != r.LEO {
			w.tell(b, "RemoteLEO[b%d] %s -> %s", r.ID, offset(before.remotes[i].LEO), offset(r.LEO))
		}
	}
	if after.LEO != before.LEO {
		w.tell(b, "LEO %d -> %d", before.LEO, after.LEO)
	}
	if after.HW != before.HW {
		w.tell(b, "HW %d -> %d%s", before.HW, after.HW, whyHW(view))
	}
	if after.LSO != before.LSO && after.LSO != after.HW {
		w.tell(b, "LSO %d -> %d", before.LSO, after.LSO)
	}
	if after.LogStart != before.LogStart {
		w.tell(b, "log start %d -> %d", before.LogStart, after.LogStart)
	}
}

// whyHW spells out the minimum that the HW is.
func whyHW(v partition.View) string {
	if v.Role != partition.Leader {
		return fmt.Sprintf(" = min(LEO %d, leader's HW)", v.Marks.LEO)
	}
	terms := []string{fmt.Sprintf("LEO %d", v.Marks.LEO)}
	for _, r := range v.Remotes {
		if slices.Contains(v.MaximalISR, r.ID) {
			terms = append(terms, fmt.Sprintf("b%d %s", r.ID, offset(r.LEO)))
		}
	}
	return " = min(" + strings.Join(terms, ", ") + ")"
}

// untold are decisions that the script tells by other lines, or that would only
// repeat the command.
var untold = map[partition.ReasonCode]bool{
	partition.BecameFollower: true, partition.ISRCommitted: true, partition.CutDiverging: true,
	partition.CutLeaderShort: true, partition.CutNoEpochs: true, partition.ProduceNotLeader: true,
	partition.ProduceRefused: true, partition.ReplicaStopped: true,
}

func (w *World) sayReasons(b *broker, list []partition.Reason) {
	for _, r := range list {
		if !untold[r.Code] {
			w.tell(b, "%v", r)
		}
	}
}

func offset(o model.Offset) string {
	if o < 0 {
		return "?"
	}
	return fmt.Sprint(int64(o))
}

func itoa(id model.BrokerID) string { return fmt.Sprint(int32(id)) }

// set prints broker ids as a set.
func set(list []model.BrokerID) string {
	parts := make([]string, len(list))
	for i, id := range list {
		parts[i] = itoa(id)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func without(list []model.BrokerID, drop ...model.BrokerID) []model.BrokerID {
	out := make([]model.BrokerID, 0, len(list))
	for _, id := range list {
		if !slices.Contains(drop, id) {
			out = append(out, id)
		}
	}
	return out
}
