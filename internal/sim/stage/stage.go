// Package stage is a simulated machine room: machines whose processes run as
// tasks, one at a time, in an order that a seed decides.
package stage

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Stage holds the machines, their network and what is going to happen. It is
// turned by one goroutine, and every process runs in it.
type Stage struct {
	// Rand decides everything that is left to chance here.
	Rand *rand.Rand
	// Net connects the machines.
	Net *Network
	// Trace, if set, is told of what Note is told.
	Trace func(at time.Duration, who, what string)

	now     time.Duration
	steps   uint64
	ready   []*thread
	events  eventQueue
	nextSeq uint64
	current *thread
	digest  uint64
	threads uint64 // threads started so far
	fault   error  // a process panicked
	watched bool   // who looks from outside reads files
}

// New returns an empty stage.
func New(r *rand.Rand) *Stage {
	s := &Stage{Rand: r, digest: fnvOffset}
	s.Net = newNetwork(s)
	return s
}

const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211

// Now is how long the stage has run, by a clock that no machine has.
func (s *Stage) Now() time.Duration { return s.now }

// Steps is how many steps were made.
func (s *Stage) Steps() uint64 { return s.steps }

// Digest sums up which task ran when, from the start to now: two runs with the
// same digest went the same way.
func (s *Stage) Digest() uint64 { return s.digest }

// Err is the panic of a process, if there was one.
func (s *Stage) Err() error { return s.fault }

func (s *Stage) mix(v uint64) {
	for range 8 {
		s.digest = (s.digest ^ v&0xff) * fnvPrime
		v >>= 8
	}
}

// Note tells the trace of an event and takes it into the digest.
func (s *Stage) Note(who, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	h.Write([]byte(who))
	h.Write([]byte(text))
	s.mix(h.Sum64())
	if s.Trace != nil {
		s.Trace(s.now, who, text)
	}
}

// event is something that happens at a time.
type event struct {
	at   time.Duration
	seq  uint64
	do   func()
	pos  int // in the queue; -1 when it is not
	list *eventQueue
}

type eventQueue []*event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].pos, q[j].pos = i, j
}
func (q *eventQueue) Push(x any) {
	e := x.(*event)
	e.pos = len(*q)
	*q = append(*q, e)
}
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	e.pos = -1
	return e
}

// At has do called at a time, between two steps.
func (s *Stage) At(at time.Duration, do func()) { s.schedule(&event{do: do}, at) }

// After has do called after a time, between two steps.
func (s *Stage) After(d time.Duration, do func()) { s.At(s.now+d, do) }

func (s *Stage) schedule(e *event, at time.Duration) {
	s.nextSeq++
	e.at, e.seq = max(at, s.now), s.nextSeq
	heap.Push(&s.events, e)
}

func (s *Stage) cancel(e *event) {
	if e.pos >= 0 && e.pos < len(s.events) && s.events[e.pos] == e {
		heap.Remove(&s.events, e.pos)
	}
}

// stepCost is what a step takes at most; so time passes where there is much to do.
const stepCost = 16 * time.Microsecond

// Step lets what is due happen and runs one task until it waits. It reports
// false when nothing can happen any more, or a process has panicked.
func (s *Stage) Step() bool {
	for len(s.ready) == 0 || len(s.events) > 0 && s.events[0].at <= s.now {
		if len(s.events) == 0 || s.fault != nil {
			return false
		}
		e := heap.Pop(&s.events).(*event)
		s.now = max(s.now, e.at)
		e.do()
	}
	i := s.Rand.IntN(len(s.ready))
	t := s.ready[i]
	last := len(s.ready) - 1
	s.ready[i] = s.ready[last]
	s.ready[last] = nil
	s.ready = s.ready[:last]
	s.steps++
	s.mix(uint64(s.now)<<20 ^ t.id)
	s.now += time.Duration(s.Rand.Int64N(int64(stepCost)))
	if t.process.pausedBy > 0 {
		t.process.held = append(t.process.held, t)
		return true
	}
	s.run(t)
	return s.fault == nil
}

// Watch runs f, which looks at the processes from outside: what it reads from
// their disks takes no time and meets no fault.
func (s *Stage) Watch(f func()) {
	s.watched = true
	defer func() { s.watched = false }()
	f()
}

// Last is who ran in the last step: a machine and a task of it.
func (s *Stage) Last() (*Process, string) {
	if s.current == nil {
		return nil, ""
	}
	return s.current.process, s.current.name
}
