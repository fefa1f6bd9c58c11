// Package sessions keeps the incremental fetch sessions of one broker: what
// each client fetches, what it was last told (KIP-227, R3.23-R3.26).
package sessions

import (
	"math"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Epochs of a fetch request with a meaning of their own.
const (
	InitialEpoch int32 = 0  // full fetch, make a session
	FinalEpoch   int32 = -1 // full fetch without a session
)

// Key names a partition in a session: by topic name, or by topic id when the
// session uses ids (Fetch v13 and up). The other one is zero.
type Key struct {
	Topic     string
	TopicID   model.UUID
	Partition int32
}

// Wish is what a fetch request says about one partition.
type Wish struct {
	Offset      model.Offset
	LastEpoch   model.Epoch
	LeaderEpoch model.Epoch
	LogStart    model.Offset
	MaxBytes    int32
}

// Partition is one partition of a turn. Data belongs to the caller and lives as
// long as the partition stays in the session.
type Partition struct {
	Key  Key
	Wish Wish
	Data any

	// What the client was last told and took: UnknownOffset makes the next
	// answer include the partition.
	sentHW       model.Offset
	sentLogStart model.Offset
	forgotten    bool
	quiet        bool // not part of a turn until its owner joins it or the client changes it
}

// Request is the session part of a fetch request. Wishes is kept; a partition
// that is named twice counts once, by its last wish.
type Request struct {
	ID, Epoch  int32
	UsesIDs    bool // Fetch v13 and up
	Privileged bool // from a follower
	Wishes     []Partition
	Forget     []Key
}

// Result is what the answer says about one partition.
type Result struct {
	Err       model.Error
	Records   bool // some are sent
	Diverging bool
	Preferred bool // a preferred read replica is named
	HW        model.Offset
	LogStart  model.Offset
	// Quiet leaves the partition out of the turns to come, until it is joined to
	// one or the client changes what it wants.
	Quiet bool
}

// Config bounds a Cache. NextID gives candidates for session ids; any value
// will do, taken ids are skipped. Ended, if set, is told what Turn.Data kept of a
// session that is no more.
type Config struct {
	Slots      int
	EvictAfter time.Duration
	NextID     func() int32
	Ended      func(data any)
}

// Cache holds the sessions of a broker. It has one owner at a time: a Turn and
// its partitions are read only by whoever holds the Cache.
type Cache struct {
	cfg  Config
	byID map[int32]*session
}

// session is what one client fetches again and again.
type session struct {
	id         int32
	epoch      int32 // that the next request must carry
	usesIDs    bool
	privileged bool
	created    model.Time
	lastUsed   model.Time
	order      []*Partition // as they are to be read next; those that are quiet are not in it
	byKey      map[Key]*Partition
	data       any // see Turn.Data
}

// Turn is one request and its answer.
type Turn struct {
	session     *session // nil for a fetch outside of any session
	fresh       bool     // session is new, to be registered with the answer
	epoch       int32    // of the request
	partitions  []*Partition
	changed     []*Partition
	forgotten   []*Partition
	own         int // how many partitions it began with: those behind were joined
	incremental bool
}

// New returns an empty cache.
func New(cfg Config) *Cache { return &Cache{cfg: cfg, byID: map[int32]*session{}} }

// Len is the number of sessions.
func (c *Cache) Len() int { return len(c.byID) }

// Begin opens a turn: it finds the session and applies the request to it. An
// error is the top-level error of the answer, with session id 0 and no
// partitions: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
// FETCH_SESSION_TOPIC_ID_ERROR (R3.24).
func (c *Cache) Begin(now model.Time, req Request) (*Turn, model.Error) {
	if req.Epoch == InitialEpoch || req.Epoch == FinalEpoch {
		c.end(req.ID)
		return fullTurn(now, req), model.None
	}
	s := c.byID[req.ID]
	switch {
	case s == nil:
		return nil, model.ErrFetchSessionIDNotFound
	case s.epoch != req.Epoch:
		return nil, model.ErrInvalidFetchSessionEpoch
	case s.usesIDs != req.UsesIDs:
		return nil, model.ErrFetchSessionTopicIDError
	}
	changed, forgotten := s.update(req)
	if len(s.byKey) == 0 {
		c.end(s.id)
		return &Turn{}, model.None
	}
	s.epoch = nextEpoch(s.epoch)
	s.lastUsed = now
	return &Turn{session: s, epoch: req.Epoch, partitions: s.order, changed: changed, forgotten: forgotten, own: len(s.order), incremental: true}, model.None
}

// end forgets a session, if there is one of that id.
func (c *Cache) end(id int32) {
	if s := c.byID[id]; s != nil {
		delete(c.byID, id)
		c.ended(s)
	}
}

func (c *Cache) ended(s *session) {
	if s.data != nil && c.cfg.Ended != nil {
		c.cfg.Ended(s.data)
	}
}

// fullTurn is a turn whose request names every partition.
func fullTurn(now model.Time, req Request) *Turn {
	t := &Turn{}
	if req.Epoch == FinalEpoch || len(req.Wishes) == 0 {
		t.partitions = make([]*Partition, len(req.Wishes))
		for i := range req.Wishes {
			t.partitions[i] = &req.Wishes[i]
		}
		t.changed = t.partitions
		return t
	}
	s := &session{
		epoch: nextEpoch(InitialEpoch), usesIDs: req.UsesIDs, privileged: req.Privileged, created: now, lastUsed: now,
		order: make([]*Partition, 0, len(req.Wishes)), byKey: make(map[Key]*Partition, len(req.Wishes)),
	}
	for i := range req.Wishes {
		if p := &req.Wishes[i]; !s.change(p) {
			s.add(p)
		}
	}
	t.session, t.fresh, t.partitions, t.changed, t.own = s, true, s.order, s.order, len(s.order)
	return t
}

// change takes the new wish for a partition that the session has. One of
// another leader epoch starts anew: a follower that changed its role drops the
// answers to its earlier wishes, and with them marks that would not be told again.
func (s *session) change(w *Partition) bool {
	p := s.byKey[w.Key]
	if p == nil {
		return false
	}
	if w.Wish.LeaderEpoch != p.Wish.LeaderEpoch {
		p.sentHW, p.sentLogStart = model.UnknownOffset, model.UnknownOffset
	}
	p.Wish = w.Wish
	s.disturb(p)
	return true
}

// disturb makes a quiet partition part of the turns to come.
func (s *session) disturb(p *Partition) {
	if p.quiet {
		p.quiet = false
		s.order = append(slices.Clip(s.order), p)
	}
}

// add appends a partition that the session does not have; p is kept.
func (s *session) add(p *Partition) {
	p.sentHW, p.sentLogStart = model.UnknownOffset, model.UnknownOffset
	s.byKey[p.Key] = p
	s.order = append(s.order, p)
}

// update applies the changes of an incremental request: new wishes first, then
// what to forget.
func (s *session) update(req Request) (changed, forgotten []*Partition) {
	changed = make([]*Partition, 0, len(req.Wishes))
	for i := range req.Wishes {
		w := &req.Wishes[i]
		if !s.change(w) {
			p := *w // not to keep the whole request for one partition
			s.add(&p)
		}
		changed = append(changed, s.byKey[w.Key])
	}
	if len(req.Forget) == 0 {
		return changed, nil
	}
	for _, k := range req.Forget {
		if p := s.byKey[k]; p != nil {
			p.forgotten = true
			delete(s.byKey, k)
			forgotten = append(forgotten, p)
		}
	}
	s.order = withoutForgotten(s.order)
	return withoutForgotten(changed), forgotten
}

// withoutForgotten copies, because an earlier turn may still hold the list.
func withoutForgotten(list []*Partition) []*Partition {
	out := make([]*Partition, 0, len(list))
	for _, p := range list {
		if !p.forgotten {
			out = append(out, p)
		}
	}
	return out
}

// Partitions returns the partitions to fetch, in the order to fetch them: all of
// the session but those that are quiet.
func (t *Turn) Partitions() []*Partition { return t.partitions }

// Changed returns the partitions that this request added or changed.
func (t *Turn) Changed() []*Partition { return t.changed }

// Forgotten returns the partitions that left the session with this request.
func (t *Turn) Forgotten() []*Partition { return t.forgotten }

// Data is what the caller keeps with the session, nil outside of any. It may set
// it; Config.Ended is told of it.
func (t *Turn) Data() *any {
	if t.session == nil {
		return nil
	}
	return &t.session.data
}

// Join makes a partition of the session that was quiet part of this turn, behind
// the others. Its result comes behind theirs.
func (t *Turn) Join(p *Partition) {
	t.partitions = append(slices.Clip(t.partitions), p)
}

// Abort ends a turn that is not answered. What was joined to it is part of the
// turns to come.
func (c *Cache) Abort(t *Turn) {
	s := t.session
	if s == nil {
		return
	}
	for _, p := range t.partitions {
		if !p.forgotten {
			s.disturb(p)
		}
	}
	if t.fresh {
		c.ended(s)
	}
}

// Answer ends the turn. results are parallel to Partitions. include(i) is
// called, in order, for each partition that belongs into the answer: all of
// them, or in an incremental answer those with news (R3.25). It returns the
// session id of the answer; INVALID_FETCH_SESSION_EPOCH when a newer request
// overtook this one, whose answer is then empty.
func (c *Cache) Answer(now model.Time, t *Turn, results []Result, include func(i int)) (int32, model.Error) {
	s := t.session
	if t.incremental && s.epoch != nextEpoch(t.epoch) {
		c.Abort(t)
		return s.id, model.ErrInvalidFetchSessionEpoch
	}
	for i, p := range t.partitions {
		if p.note(results[i]) || !t.incremental {
			include(i)
		}
	}
	if s == nil {
		return 0, model.None
	}
	s.settle(t, results)
	if t.fresh && !c.register(now, s) {
		c.ended(s)
		return 0, model.None
	}
	return s.id, model.None
}

// note says whether r is news to the client and remembers what it will have
// been told. An error, or a divergence that makes a follower drop the rest of
// the answer, leaves nothing told: the next answer includes the partition.
func (p *Partition) note(r Result) bool {
	news := r.Err != model.None || r.Records || r.Diverging || r.Preferred || r.HW != p.sentHW || r.LogStart != p.sentLogStart
	p.sentHW, p.sentLogStart = r.HW, r.LogStart
	if r.Err != model.None || r.Diverging {
		p.sentHW = model.UnknownOffset
	}
	return news
}

// settle puts the partitions in the order of the next turn: those that returned
// records go to the end (fairness), those that are quiet leave it.
func (s *session) settle(t *Turn, results []Result) {
	withRecords, quiet := 0, 0
	for _, r := range results {
		switch {
		case r.Quiet:
			quiet++
		case r.Records:
			withRecords++
		}
	}
	stay := len(t.partitions) - quiet
	if quiet == 0 && len(t.partitions) == t.own && (withRecords == 0 || withRecords == stay) {
		return
	}
	disturbed := s.order[t.own:] // since this turn began
	out := make([]*Partition, stay, stay+len(disturbed))
	front, back := 0, stay-withRecords
	for i, p := range t.partitions {
		p.quiet = results[i].Quiet
		switch {
		case p.quiet:
		case results[i].Records:
			out[back] = p
			back++
		default:
			out[front] = p
			front++
		}
	}
	s.order = append(out, disturbed...)
}

// register gives a new session a slot and an id, if there is a slot.
func (c *Cache) register(now model.Time, s *session) bool {
	if len(c.byID) >= c.cfg.Slots && !c.evict(now, s) {
		return false
	}
	id := c.cfg.NextID() & math.MaxInt32
	for id == 0 || c.byID[id] != nil {
		id = (id + 1) & math.MaxInt32
	}
	s.id, s.lastUsed = id, now
	c.byID[id] = s
	return true
}

// evict frees a slot for s: that of a session that was idle too long, else that
// of the least valuable session if it is worth less than s (R3.26). A session
// of a consumer is worth less than one of a follower, a small one less than a
// large one. Sessions younger than EvictAfter are safe, but those of consumers
// are not safe from followers.
func (c *Cache) evict(now model.Time, s *session) bool {
	var idlest, victim *session
	for _, o := range c.byID {
		if idlest == nil || o.lastUsed < idlest.lastUsed || o.lastUsed == idlest.lastUsed && o.id < idlest.id {
			idlest = o
		}
		young := now.Sub(o.created) <= c.cfg.EvictAfter
		if young && (o.privileged || !s.privileged) {
			continue
		}
		if o.lessThan(s) && (victim == nil || o.lessThan(victim) || !victim.lessThan(o) && o.id < victim.id) {
			victim = o
		}
	}
	if idlest != nil && now.Sub(idlest.lastUsed) > c.cfg.EvictAfter {
		victim = idlest
	}
	if victim == nil {
		return false
	}
	c.end(victim.id)
	return true
}

// lessThan orders sessions by their worth.
func (s *session) lessThan(o *session) bool {
	if s.privileged != o.privileged {
		return o.privileged
	}
	return len(s.byKey) < len(o.byKey)
}

// nextEpoch wraps to 1: 0 would mean a new session.
func nextEpoch(e int32) int32 {
	if e == math.MaxInt32 {
		return 1
	}
	return e + 1
}
