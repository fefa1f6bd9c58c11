package replicas

import (
	"maps"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
)

// fetchOp is one fetch request in the loop. It is answered when its partitions
// hold enough bytes, when one of them has something that cannot wait, or when
// its time is up (R3.16, R3.17).
type fetchOp struct {
	f     *api.Fetch // until it is completed
	l     *Loop
	from  model.BrokerID // whose it is; NoBroker for a consumer
	bytes int64
	now   bool
	// newsAt is when the follower could first be told of a HW, and nothing else;
	// partition.Never before.
	newsAt model.Time
	// parking is its number among the parked fetches of followers.
	parking uint64
	// s is the follower's session, nil outside of any, and request the number of
	// this one in it.
	s       *standing
	request uint64
}

// expectWait is how long a fetch waits at most while its follower has yet to
// fetch a partition that this broker just became leader of, and expectFor how
// long that is believed: the follower's next request will name it.
const (
	expectWait = 10 * time.Millisecond
	expectFor  = 3 * time.Second
)

// newsWait is how long news of a HW wait for records to go with. A follower that
// gets records all the time hears of each HW with the next ones; without the wait,
// half of the answers under load would carry news alone (ADR 0018).
const newsWait = 5 * time.Millisecond

// Fetch posts a fetch request (Walk 2).
func (l *Loop) Fetch(f *api.Fetch) {
	if !l.inbox.Post(&fetchOp{f: f, l: l, from: f.Replica, newsAt: partition.Never}) {
		for i := range f.Parts {
			f.Parts[i].Refuse(model.ErrNotLeaderOrFollower)
		}
		f.Done()
	}
}

func (op *fetchOp) turn(l *Loop) {
	if op.f.Standing != nil {
		l.ask(op)
	}
	for i := range op.f.Parts {
		p := &op.f.Parts[i]
		if p.Hosted == nil {
			op.now = true
			continue
		}
		r := p.Hosted.Owner.(*replica)
		p.Request.Retry, p.Request.Answering = false, false
		if op.from >= 0 && !p.Request.Pos.Known() {
			p.Request.Pos = r.ends.of(p.Request.Offset)
		}
		l.hearBefore(r, op.from)
		op.take(p, l.step(r, &p.Request))
		if op.from >= 0 {
			l.heardFrom(op.from, r)
		}
	}
	wait := op.f.MaxWait
	if op.from >= 0 && len(l.expected[op.from]) > 0 {
		wait = min(wait, l.expectedWait(op.from))
	}
	if op.newsAt != partition.Never {
		wait = min(wait, newsWait)
	}
	if op.now || wait <= 0 || op.empty() || op.bytes >= op.f.MinBytes {
		op.Complete()
		return
	}
	op.park(wait)
}

// park lets the request wait under its partitions, and under the bell of its
// session.
func (op *fetchOp) park(wait time.Duration) {
	l := op.l
	l.keys = l.keys[:0]
	for i := range op.f.Parts {
		l.keys = append(l.keys, op.f.Parts[i].Hosted.Owner.(*replica))
	}
	if op.from >= 0 {
		l.parkFollower(op)
	}
	if op.s != nil {
		op.s.op = op
		l.keys = append(l.keys, op.s.bell)
	}
	l.fetches.Park(l.now, op, l.now.Add(wait), l.keys...)
	clear(l.keys)
}

// empty says that the request is for nothing, not even for what is quiet.
func (op *fetchOp) empty() bool {
	return len(op.f.Parts) == 0 && (op.s == nil || len(op.s.quiet) == 0)
}

// parkFollower remembers a follower's request, so that hurry can find it.
func (l *Loop) parkFollower(op *fetchOp) {
	m := l.parked[op.from]
	if m == nil {
		m = map[uint64]*fetchOp{}
		l.parked[op.from] = m
	}
	l.parkings++
	op.parking = l.parkings
	m[op.parking] = op
}

// hurry answers what a follower has parked here.
func (l *Loop) hurry(b model.BrokerID) {
	waiting := l.parked[b]
	for _, n := range slices.Sorted(maps.Keys(waiting)) {
		op := waiting[n]
		op.now = true
		l.wakes = append(l.wakes, pendingWake{op.key(), partition.WakeFetch})
	}
}

// key is one of those that the request waits under.
func (op *fetchOp) key() *replica {
	if op.s != nil {
		return op.s.bell
	}
	return op.f.Parts[0].Hosted.Owner.(*replica)
}

// take adds one partition's reply to what the request has.
func (op *fetchOp) take(p *api.FetchPart, rd partition.Ready) {
	old := p.Reply.Bytes
	if rd.Reply != nil {
		p.Reply = *rd.Reply
	}
	if rd.Err != model.None {
		p.Refuse(rd.Err)
		if r := p.Hosted.Owner.(*replica); !r.stopped() {
			p.Reply.Leader, p.Reply.LeaderEpoch = r.p.Leader()
		}
	}
	op.bytes += p.Reply.Bytes - old
	op.now = op.now || p.Reply.Now
	if p.Reply.News && op.newsAt == partition.Never {
		op.newsAt = op.l.now
	}
}

// tellNews answers a request that waited for records long enough. It may have been
// completed before.
func (op *fetchOp) tellNews() {
	if l := op.l; l.parked[op.from][op.parking] == op {
		op.now = true
		l.wakes = append(l.wakes, pendingWake{op.key(), partition.WakeFetch})
	}
}

// retry steps one partition again without moving any follower state (R3.8).
func (op *fetchOp) retry(p *api.FetchPart, answering bool) {
	p.Request.Retry, p.Request.Answering = true, answering
	op.take(p, op.l.step(p.Hosted.Owner.(*replica), &p.Request))
}

// TryComplete looks again at the partition that something happened to, or at
// all of them when the request is new here.
func (op *fetchOp) TryComplete() bool {
	if op.now {
		return true
	}
	waking, before := op.l.waking, op.newsAt
	for i := range op.f.Parts {
		p := &op.f.Parts[i]
		if waking == nil {
			break // nothing moved since the request was stepped in this turn
		}
		if p.Hosted.Owner == waking {
			op.retry(p, false)
		}
	}
	if op.newsAt != before {
		op.l.timers.Add(op.newsAt.Add(newsWait), op.tellNews)
	}
	return op.now || op.bytes >= op.f.MinBytes
}

// Expire has nothing to mark: a fetch whose time is up is answered with what
// there is.
func (op *fetchOp) Expire() {}

// Complete reads all partitions once more, so that the answer is one cut of
// now, and gives the request back.
func (op *fetchOp) Complete() {
	if op.from >= 0 {
		delete(op.l.parked[op.from], op.parking)
	}
	for i := range op.f.Parts {
		if p := &op.f.Parts[i]; p.Hosted != nil {
			op.retry(p, true)
		}
	}
	op.settle()
	op.f.Done()
}

// expect notes that the followers of a new leader have yet to fetch from it. A
// fetch of theirs that is parked here does not name the partition: it is
// answered soon, so that the next one can.
func (l *Loop) expect(r *replica, followers []model.BrokerID) {
	for _, b := range followers {
		if b == l.id {
			continue
		}
		if l.expected[b] == nil {
			l.expected[b] = map[*replica]model.Time{}
		}
		l.expected[b][r] = l.now.Add(expectFor)
		l.hurry(b)
	}
}

// heardFrom notes that a follower fetched r.
func (l *Loop) heardFrom(b model.BrokerID, r *replica) {
	if m := l.expected[b]; m != nil {
		delete(m, r)
		if len(m) == 0 {
			delete(l.expected, b)
		}
	}
}

// forgetExpected drops r, or with nil all that was expected in vain.
func (l *Loop) forgetExpected(r *replica) {
	for b, m := range l.expected {
		if delete(m, r); r == nil {
			l.expectedWait(b)
		}
		if len(m) == 0 {
			delete(l.expected, b)
		}
	}
}

// expectedWait drops what was expected in vain and returns how long a fetch of
// b may wait.
func (l *Loop) expectedWait(b model.BrokerID) time.Duration {
	for r, until := range l.expected[b] {
		if until <= l.now || r.stopped() || r.p.Role() != partition.Leader {
			delete(l.expected[b], r)
		}
	}
	if len(l.expected[b]) == 0 {
		delete(l.expected, b)
		return time.Hour
	}
	return expectWait
}
