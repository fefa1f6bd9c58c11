package replicas

import (
	"hash/fnv"
	"maps"
	"slices"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/task"
)

// lane is one of the num.replica.fetchers connections to a peer, from 0 on.
type lane struct {
	leader model.BrokerID
	n      int
}

// laneTo is the lane of a replica: neighbours of a topic take turns.
func (l *Loop) laneTo(leader model.BrokerID, r *replica) lane {
	id, sum := r.hosted.ID, fnv.New32a()
	sum.Write(id.TopicID[:])
	return lane{leader, int((sum.Sum32() + uint32(id.Partition)) % uint32(l.lanes))}
}

// source is one lane to a peer that leads partitions followed here, as the loop
// sees it. Its fetcher carries the requests; the loop says what they ask for.
// There is one request under way at most, and the next one is planned when
// everything that the last one brought is in the log: what a fetch asks for says
// what the follower has. So one lane's bytes travel while another's are written.
type source struct {
	lane
	members map[*replica]struct{}
	inSet   int        // members that the fetch session holds
	dirty   []*replica // members whose part of the session has to change
	forget  []model.TopicIDPartition
	asks    []*replica // members whose leader is asked for its log's bounds
	wanting bool       // the fetcher waits for a plan
	full    bool       // the next plan names everything: there is no session
	flying  int        // replicas with appends or truncations of the last response in flight
	queued  bool       // listed in Loop.planning
	crowded bool       // some members may belong to another lane since the last spread
	plans   *task.Queue[fetchPlan]
}

// fetchPlan is one request to a peer: what changes in the session, what leaves
// it, whose bounds to ask for.
type fetchPlan struct {
	full   bool
	parts  []planPart
	forget []model.TopicIDPartition
	asks   []planPart
}

// planPart is one partition of a plan.
type planPart struct {
	tp  model.TopicPartition
	id  model.TopicIDPartition
	pos partition.FetchPosition
}

// fetchFrom makes a replica follow another peer, or none.
func (l *Loop) fetchFrom(r *replica, leader model.BrokerID) {
	l.leave(r)
	if leader == model.NoBroker || leader == l.id {
		return
	}
	to := l.laneTo(leader, r)
	s := l.sources[to]
	if s == nil {
		s = &source{lane: to, members: map[*replica]struct{}{}, full: true,
			plans: task.NewQueue[fetchPlan](l.rt)}
		l.sources[to] = s
		l.startFn(s)
	}
	s.members[r] = struct{}{}
	r.source = s
	r.sent = partition.FetchPosition{}
	l.position(r)
}

// spread makes each peer have so many lanes from now on. A replica whose lane is
// another one by that is fetched there, at the latest when its lane's request is
// answered; lanes that nobody uses any more idle.
func (l *Loop) spread(lanes int) {
	if lanes == l.lanes {
		return
	}
	l.lanes = lanes
	for _, r := range l.ordered {
		if s := r.source; s != nil {
			s.crowded = true
		}
	}
	for _, r := range l.ordered {
		if s := r.source; s != nil && s.wanting {
			l.thin(s)
		}
	}
}

// thin moves the members that belong to another lane. Nothing may be under way: the
// leader takes for told what an answer says, and would not say it again.
func (l *Loop) thin(s *source) {
	if !s.crowded {
		return
	}
	s.crowded = false
	for _, r := range slices.SortedFunc(maps.Keys(s.members), compareReplicas) {
		if l.laneTo(s.leader, r) == s.lane {
			continue
		}
		asking := r.asking
		if l.fetchFrom(r, s.leader); asking {
			l.askLeader(r)
		}
	}
}

// leave takes a replica out of its source. What the next one says is another
// matter: a pause or a question ends here.
func (l *Loop) leave(r *replica) {
	r.asking, r.delayed, r.pause = false, false, 0
	r.backoffs++
	s := r.source
	if s == nil {
		return
	}
	l.unset(r)
	delete(s.members, r)
	r.source, r.dirty = nil, false
	l.plan(s)
}

// unset takes a replica out of the session's set.
func (l *Loop) unset(r *replica) {
	if r.inSet {
		r.inSet = false
		r.source.inSet--
		r.source.forget = append(r.source.forget, r.hosted.ID)
	}
}

// position notes that what a follower asks for may have changed.
func (l *Loop) position(r *replica) {
	if r.dirty {
		return
	}
	pos, ok := r.p.NextFetch()
	ok = ok && !r.delayed
	if ok == r.inSet && (!ok || pos == r.sent) {
		return
	}
	r.dirty = true
	r.source.dirty = append(r.source.dirty, r)
	l.plan(r.source)
}

// plan has the source looked at when the turn ends.
func (l *Loop) plan(s *source) {
	if !s.queued {
		s.queued = true
		l.planning = append(l.planning, s)
	}
}

// planAll hands plans to the fetchers that wait for one.
func (l *Loop) planAll() {
	for _, s := range l.planning {
		s.queued = false
		l.planOne(s)
	}
	clear(l.planning)
	l.planning = l.planning[:0]
}

func (l *Loop) planOne(s *source) {
	if !s.wanting || s.flying > 0 {
		return
	}
	if s.full {
		s.restart()
	}
	p := fetchPlan{full: s.full, forget: s.forget}
	for _, r := range s.dirty {
		if r.source == s && r.dirty {
			p.take(r)
		}
	}
	// A partition that left and came back stays: a leader forgets last.
	p.forget = slices.DeleteFunc(p.forget, func(id model.TopicIDPartition) bool {
		r := l.all[id]
		return r != nil && r.source == s && r.inSet
	})
	p.asks = asksOf(s)
	clear(s.dirty)
	s.dirty, s.forget, s.asks = s.dirty[:0], nil, nil
	if s.inSet == 0 && len(p.forget) == 0 && len(p.asks) == 0 {
		return // nothing to fetch: wait until something is
	}
	s.wanting, s.full = false, false
	s.plans.Post(p)
}

// take brings the session's part of one member up to date.
func (p *fetchPlan) take(r *replica) {
	r.dirty = false
	pos, ok := r.p.NextFetch()
	switch {
	case ok && !r.delayed:
		if !r.inSet {
			r.inSet = true
			r.source.inSet++
		}
		r.sent = pos
		p.parts = append(p.parts, planPart{tp: r.tp(), id: r.hosted.ID, pos: pos})
	case r.inSet:
		r.inSet = false
		r.source.inSet--
		p.forget = append(p.forget, r.hosted.ID)
	}
}

// restart has the next plan name everything: the session is lost, and with it
// perhaps a question.
func (s *source) restart() {
	s.inSet, s.forget, s.dirty = 0, nil, s.dirty[:0]
	for r := range s.members {
		r.inSet, r.dirty = false, true
		s.dirty = append(s.dirty, r)
	}
	slices.SortFunc(s.dirty, compareReplicas)
	s.asks = slices.Clone(s.dirty)
}

// asksOf lists the members whose leader is to be asked for its log's bounds.
func asksOf(s *source) []planPart {
	var out []planPart
	for _, r := range s.asks {
		if r.source == s && r.asking {
			_, epoch := r.p.Leader()
			out = append(out, planPart{tp: r.tp(), id: r.hosted.ID, pos: partition.FetchPosition{LeaderEpoch: epoch}})
		}
	}
	return out
}

// wantPlan is the event of a fetcher that is ready for its next request.
type wantPlan struct {
	s    *source
	full bool
}

func (e wantPlan) turn(l *Loop) {
	e.s.wanting = true
	e.s.full = e.s.full || e.full
	l.thin(e.s)
	l.plan(e.s)
}

// askLeader has the leader asked for its log's bounds (R4.13).
func (l *Loop) askLeader(r *replica) {
	if r.source != nil {
		r.asking = true
		r.source.asks = append(r.source.asks, r)
		l.plan(r.source)
	}
}

// backoff leaves a replica out of the requests for a while (R4.14). A leader
// that has not heard of its election yet is the usual cause, so the first pause
// is short; it doubles up to replica.fetch.backoff.ms (deviation 14).
func (l *Loop) backoff(r *replica) {
	if r.delayed {
		return
	}
	r.delayed = true
	r.pause = min(max(2*r.pause, firstRedial), l.opts.Fetch.Backoff)
	r.backoffs++
	this := r.backoffs
	l.timers.Add(l.now.Add(r.pause), func() {
		if r.backoffs == this {
			r.delayed = false
			l.position(r)
		}
	})
}

// landed notes that a replica's log has taken what a response brought.
func (l *Loop) landed(r *replica) {
	f := r.flying
	if f == nil {
		return
	}
	r.flying = nil
	f.s.flying--
	f.release()
	l.plan(f.s)
}

// fetched is the event of one answer. Its bytes are released when every
// replica that takes some has written them.
type fetched struct {
	s     *source
	parts []fetchedPart
	asked []fetchedBounds
	refs  int
	free  func()
}

// fetchedPart is one partition of an answer.
type fetchedPart struct {
	id   model.TopicIDPartition
	resp partition.FetchResponse // without what the request said
	data []byte                  // whole batches
}

// fetchedBounds is a leader's answer about the ends of its log.
type fetchedBounds struct {
	id   model.TopicIDPartition
	resp partition.LeaderOffsets
}

func (f *fetched) release() {
	if f.refs--; f.refs == 0 && f.free != nil {
		f.free()
	}
}

func (f *fetched) turn(l *Loop) {
	f.refs = 1
	for i := range f.parts {
		p := &f.parts[i]
		if r := l.all[p.id]; r != nil && r.source == f.s && r.inSet {
			l.fetchedPart(f, r, p)
		}
	}
	for i := range f.asked {
		a := &f.asked[i]
		if r := l.all[a.id]; r != nil && r.source == f.s && r.asking {
			r.asking = false
			l.step(r, &a.resp)
			l.fly(f, r)
		}
	}
	f.release()
}

func (l *Loop) fetchedPart(f *fetched, r *replica, p *fetchedPart) {
	in := &l.in.response
	*in = p.resp
	in.LeaderEpoch, in.Offset, in.Generation = r.sent.LeaderEpoch, r.sent.Offset, r.sent.Generation
	rd := l.step(r, in)
	if a := rd.Append; a != nil {
		l.jobs = append(l.jobs, job{kind: jobAppend, r: r, bytes: p.data, base: a.Base, to: a.End,
			epochs: cloneEpochs(a.Epochs)})
	}
	in.Batches = nil
	if !rd.Backoff {
		r.pause = 0
	}
	l.fly(f, r)
}

// fly keeps the answer's bytes, and the next request, until r has landed.
func (l *Loop) fly(f *fetched, r *replica) {
	if r.flying == nil && r.p.InFlight() {
		r.flying = f
		f.refs++
		f.s.flying++
	}
}
