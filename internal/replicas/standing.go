package replicas

import (
	"slices"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// standing is the fetch session of a follower. A partition of it that is idle is
// not looked at with each request: it takes a seat at its replica, and what
// happens there rouses it. So a request costs what has changed since the last one,
// not what there is (ADR 0014).
type standing struct {
	follower model.BrokerID
	epoch    model.BrokerEpoch // of the follower, in its last request
	asked    model.Time        // when it last asked
	requests uint64
	op       *fetchOp // its request that waits; nil when none does
	quiet    []*seat
	roused   []*seat // something happened to them since the last answer
	left     bool    // the session is no more
	// bell wakes op for what was roused while it waits, and heard are the replicas
	// that ring it.
	bell  *replica
	heard []*replica
}

// seat is a partition of a standing that is quiet, or was roused.
type seat struct {
	s    *standing
	r    *replica
	part api.FetchPart
	at   int // in s.quiet; -1 once it is roused or dismissed
}

func newStanding(follower model.BrokerID) *standing {
	return &standing{follower: follower, epoch: model.UnknownBrokerEpoch, bell: &replica{}}
}

// leave is the event of a session that ends.
type leave struct{ of *api.Standing }

// Leave ends a follower's session: nothing is watched for it any more.
func (l *Loop) Leave(s *api.Standing) { l.inbox.Post(leave{s}) }

func (e leave) turn(l *Loop) {
	s, _ := e.of.Owner.(*standing)
	if s == nil {
		s = newStanding(model.NoBroker)
		e.of.Owner = s
	}
	s.left, s.roused = true, nil
	for len(s.quiet) > 0 {
		q := s.quiet[len(s.quiet)-1]
		l.hear(q) // the follower may come back in another session
		q.leave()
	}
}

// ask begins a request of a standing: what it names takes the place of what was
// known, and what was roused is looked at with it.
func (l *Loop) ask(op *fetchOp) *standing {
	f := op.f
	s, _ := f.Standing.Owner.(*standing)
	if s == nil {
		s = newStanding(f.Replica)
		f.Standing.Owner = s
	}
	if s.op != nil { // overtaken by this request: its answer will not count
		s.op.now = true
		l.wakes = append(l.wakes, pendingWake{s.bell, partition.WakeFetch})
		s.hush()
	}
	if s.epoch != f.Epoch { // the follower is another one
		for len(s.quiet) > 0 {
			l.rouseSeat(s.quiet[len(s.quiet)-1])
		}
	}
	for _, gone := range f.Left {
		l.dismiss(gone)
	}
	for i := range f.Parts {
		l.dismiss(f.Parts[i].Seat)
	}
	for i, q := range s.roused {
		if q.part.Seat.Owner == q {
			q.part.Seat.Owner = nil
			q.part.Request.ReplicaEpoch = f.Epoch
			f.Parts = append(f.Parts, q.part)
		}
		s.roused[i] = nil
	}
	s.roused, s.epoch, s.asked = s.roused[:0], f.Epoch, l.now
	s.requests++
	op.s, op.request = s, s.requests
	return s
}

// dismiss ends what is watched at a seat.
func (l *Loop) dismiss(of *api.Seat) {
	if of == nil {
		return
	}
	if q, _ := of.Owner.(*seat); q != nil {
		if q.at >= 0 {
			l.hear(q)
			q.leave()
		}
		of.Owner = nil
	}
}

// rested says until when a follower asked for nothing new while it was quiet.
type rested struct {
	follower model.BrokerID
	until    model.Time
}

// leave takes a quiet seat out of its lists.
func (q *seat) leave() {
	at := slices.IndexFunc(q.r.rested, func(u rested) bool { return u.follower == q.s.follower })
	if at < 0 {
		at, q.r.rested = len(q.r.rested), append(q.r.rested, rested{follower: q.s.follower, until: q.s.asked})
	}
	q.r.rested[at].until = max(q.r.rested[at].until, q.s.asked)
	s, last := q.s, len(q.s.quiet)-1
	s.quiet[q.at] = s.quiet[last]
	s.quiet[q.at].at = q.at
	s.quiet[last] = nil
	s.quiet = s.quiet[:last]
	q.at = -1
	i := slices.Index(q.r.quiet, q)
	q.r.quiet = slices.Delete(q.r.quiet, i, i+1)
}

// hear tells the core when a quiet follower last asked (R3.10).
func (l *Loop) hear(q *seat) {
	l.in.heard = partition.Heard{Replica: q.s.follower, At: q.s.asked}
	l.step(q.r, &l.in.heard)
}

// hearBefore tells the core what a follower that fetches anew asked before, in a
// session that it may have left without a word.
func (l *Loop) hearBefore(r *replica, follower model.BrokerID) {
	for _, q := range r.quiet {
		if q.s.follower == follower {
			l.hear(q)
		}
	}
}

// rouse has all who are quiet where something happened look again.
func (l *Loop) rouse(w pendingWake) {
	for w.what&partition.WakeFetch != 0 && len(w.r.quiet) > 0 {
		l.rouseSeat(w.r.quiet[0])
	}
}

// rouseSeat makes a quiet seat part of the request that waits, or of the next one.
func (l *Loop) rouseSeat(q *seat) {
	s := q.s
	l.hear(q)
	q.leave()
	if s.op == nil {
		s.roused = append(s.roused, q)
		return
	}
	q.part.Seat.Owner = nil
	s.op.f.Parts = append(s.op.f.Parts, q.part)
	s.heard = append(s.heard, q.r)
	q.r.bells = append(q.r.bells, s)
}

// hush ends the bells of the request that waited.
func (s *standing) hush() {
	for i, r := range s.heard {
		if at := slices.Index(r.bells, s); at >= 0 {
			r.bells = slices.Delete(r.bells, at, at+1)
		}
		s.heard[i] = nil
	}
	s.op, s.heard = nil, s.heard[:0]
}

// settle ends the wait of a request that is answered, and gives a seat to what of
// it is idle.
func (op *fetchOp) settle() {
	s := op.s
	if s == nil || op.request != s.requests {
		return
	}
	s.hush()
	if s.left {
		return
	}
	for i := range op.f.Parts {
		p := &op.f.Parts[i]
		if p.Seat == nil || p.Hosted == nil || !p.Reply.Idle() {
			continue
		}
		r := p.Hosted.Owner.(*replica)
		if !r.p.Quiet(s.follower) || p.Seat.Owner != nil {
			continue
		}
		p.Quiet = true
		q := &seat{s: s, r: r, at: len(s.quiet), part: api.FetchPart{Hosted: p.Hosted, Request: p.Request, Seat: p.Seat}}
		q.part.Request.Pos = model.UnknownPosition // its segment may be rolled meanwhile
		p.Seat.Owner = q
		s.quiet, r.quiet = append(s.quiet, q), append(r.quiet, q)
	}
}

// ring wakes the requests that were told of r while they waited.
func (l *Loop) ring(r *replica) {
	for i := 0; i < len(r.bells); i++ {
		s := r.bells[i]
		l.fetches.Wake(s.bell)
		if i < len(r.bells) && r.bells[i] != s {
			i-- // it was answered and rings no more
		}
	}
}
