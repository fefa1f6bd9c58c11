// Package history judges what clients of a cluster saw while faults were injected.
//
// Writers note when they handed over a record and what they were told. Readers
// note what they read. At the end, when every partition was read from its first
// to its last offset, Check holds all of that against what Kafka promises.
package history

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// History is what all clients of one run saw.
type History struct {
	Verdict Verdict
	start   time.Time
	silence silence

	mu         sync.Mutex
	partitions []*Partition
	groups     []*Group
}

// New starts a history whose stamps count from start.
func New(start time.Time) *History { return &History{start: start, Verdict: Verdict{start: start}} }

// Stamp is microseconds since the start of the history, at least 1; 0 is never.
type Stamp uint32

// Duration is the time since the start of the history.
func (s Stamp) Duration() time.Duration { return time.Duration(s) * time.Microsecond }

// Now is the stamp of this moment.
func (h *History) Now() Stamp { return Stamp(time.Since(h.start).Microseconds()) + 1 }

// Partition adds a partition whose writers ask for acks.
func (h *History) Partition(topic string, number int32, acks Acks) *Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &Partition{Topic: topic, Number: number, Acks: acks, h: h, lanes: map[int]*Lane{}}
	h.partitions = append(h.partitions, p)
	return p
}

// Silence is the longest time in which no record with acks=all was acknowledged,
// and when it began.
func (h *History) Silence() (length, from time.Duration) {
	h.silence.mu.Lock()
	defer h.silence.mu.Unlock()
	return h.silence.gap.Duration(), h.silence.from.Duration()
}

// Find returns the partition, or nil.
func (h *History) Find(topic string, number int32) *Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.partitions, func(p *Partition) bool { return p.Topic == topic && p.Number == number })
	if i < 0 {
		return nil
	}
	return h.partitions[i]
}

// Partitions lists all partitions in the order in which they were added.
func (h *History) Partitions() []*Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.partitions)
}

// Check judges everything and returns what the writers got. All readers must have
// ended, and one of them must have read every partition whole.
func (h *History) Check() []Tally {
	var out []Tally
	for _, p := range h.Partitions() {
		out = append(out, p.check())
	}
	for _, g := range h.groups {
		g.check()
	}
	return out
}

// Property names what was promised.
type Property string

// What is promised.
const (
	ExactlyOnce   Property = "ExactlyOnce"   // a record acknowledged with acks=all is there once, where the acknowledgement said
	ProducerOrder Property = "ProducerOrder" // the records of an idempotent producer are in the order in which they were sent
	LossExplained Property = "LossExplained" // what acks=1 acknowledged is lost only where the leader changed
	Linear        Property = "Linear"        // a record acknowledged before another was sent has the smaller offset
	Repeatable    Property = "Repeatable"    // whoever reads an offset reads the same record of the same epoch
	Contiguous    Property = "Contiguous"    // a reader gets every offset, in rising order
	Committed     Property = "Committed"     // what a reader got is in the log at the end
	Authentic     Property = "Authentic"     // only what was written is read
	GroupOffsets  Property = "GroupOffsets"  // committed offsets of a group never go back
	GroupDelivers Property = "GroupDelivers" // a group got every record below its committed offset
	Alive         Property = "Alive"         // after the faults, everything works again
	Replicas      Property = "Replicas"      // at the end the replicas are equal
	Process       Property = "Process"       // no process ends or complains of a bug by itself
)

// Violation is one broken promise and when, after the start, that was found.
type Violation struct {
	After    time.Duration
	Property Property
	Text     string
}

// shown is how many violations of one property are kept with their words.
const shown = 5

// Verdict collects violations.
type Verdict struct {
	start time.Time
	mu    sync.Mutex
	count map[Property]int
	list  []Violation
}

// Violate notes a violation.
func (v *Verdict) Violate(p Property, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.count == nil {
		v.count = map[Property]int{}
	}
	v.count[p]++
	if v.count[p] <= shown {
		v.list = append(v.list, Violation{time.Since(v.start), p, fmt.Sprintf(format, args...)})
	}
}

// Violations returns how many there were and the first ones of each property.
func (v *Verdict) Violations() (int, []Violation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, c := range v.count {
		n += c
	}
	return n, slices.Clone(v.list)
}
