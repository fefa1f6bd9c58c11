// Package group decides for consumer groups: who is a member, who leads, which
// assignment holds, which offsets are committed. A shard answers for the groups
// of one partition of __consumer_offsets and rebuilds itself from that log.
package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/purgatory"
)

// Config is what the broker's configs say about groups.
type Config struct {
	MinSession, MaxSession time.Duration // group.{min,max}.session.timeout.ms
	InitialDelay           time.Duration // group.initial.rebalance.delay.ms
	MaxSize                int           // group.max.size
	MetadataMax            int           // offset.metadata.max.bytes
	Retention              time.Duration // offsets.retention.minutes
	CheckInterval          time.Duration // offsets.retention.check.interval.ms
	WriteTimeout           time.Duration // offsets.commit.timeout.ms
	// NewID makes the unique part of a member id.
	NewID func() string
	// Topics says which topics exist.
	Topics Topics
}

// Topics is what a shard must know of the cluster's topics.
type Topics interface {
	// Partitions is the number of partitions of a topic, 0 if there is none.
	Partitions(topic string) int32
	Name(id model.UUID) (string, bool)
	ID(topic string) (model.UUID, bool)
}

// newMemberJoin is how long the join of a new member may be parked: it has no
// member id yet to send heartbeats with.
const newMemberJoin = 5 * time.Minute

// Request is one request of a client. The shard keeps strings of Req, but
// copies byte slices that it keeps. Requests that name several groups hold only
// those of this shard. To comes back with the reply.
type Request struct {
	Req            kmsg.Request
	ClientID, Host string
	To             any
}

// Reply answers the request that carried To.
type Reply struct {
	To   any
	Resp kmsg.Response
}

// Record is a record of __consumer_offsets; a nil Value is a tombstone.
type Record struct{ Key, Value []byte }

// Write is records to append to the log as one; then Committed or Failed is
// called with ID. Ids grow.
type Write struct {
	ID      uint64
	Records []Record
}

// Ready is what the shell must do after a call: append the writes in order,
// send the replies, tell the reasons to whoever listens.
type Ready struct {
	Replies []Reply
	Writes  []Write
	Reasons []Reason
}

// Shard holds the groups of one partition of __consumer_offsets. It has one
// owner. What it decides becomes visible in two ways: membership at once, as it
// is lost with the coordinator anyway, but assignments and offsets only when
// their records are committed.
type Shard struct {
	cfg    Config
	groups map[string]*group
	// txns holds offsets of transactions that have no marker yet, by producer.
	txns   map[model.ProducerID][]txnOffset
	wheel  *purgatory.Wheel[func()]
	now    model.Time
	wall   model.Millis
	writes []*write // not yet committed, in order
	lastID uint64
	out    Ready
	expiry purgatory.Timer[func()]
}

// write is records that are on their way into the log.
type write struct {
	id    uint64
	timer purgatory.Timer[func()]
	// done runs once, with the answer or the timeout; end runs once, when it is
	// known whether the records hold. Either may be nil.
	done func(model.Error)
	end  func(committed bool)
}

// New returns an empty shard; Replay fills it, Loaded starts it.
func New(cfg Config, now model.Time, wall model.Millis) *Shard {
	return &Shard{
		cfg: cfg, groups: map[string]*group{}, txns: map[model.ProducerID][]txnOffset{},
		wheel: purgatory.NewWheel[func()](now), now: now, wall: wall,
	}
}

// Handle decides one request. Its reply is in this Ready or in that of a later
// call. It serves JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit,
// OffsetFetch, OffsetDelete, DescribeGroups, ListGroups and DeleteGroups.
func (s *Shard) Handle(now model.Time, wall model.Millis, r Request) Ready {
	s.enter(now, wall)
	switch req := r.Req.(type) {
	case *kmsg.JoinGroupRequest:
		s.joinGroup(r, req)
	case *kmsg.SyncGroupRequest:
		s.syncGroup(r, req)
	case *kmsg.HeartbeatRequest:
		s.heartbeat(r, req)
	case *kmsg.LeaveGroupRequest:
		s.leaveGroup(r, req)
	case *kmsg.OffsetCommitRequest:
		s.offsetCommit(r, req)
	case *kmsg.OffsetFetchRequest:
		s.offsetFetch(r, req)
	case *kmsg.OffsetDeleteRequest:
		s.offsetDelete(r, req)
	case *kmsg.DescribeGroupsRequest:
		s.describeGroups(r, req)
	case *kmsg.ListGroupsRequest:
		s.listGroups(r, req)
	case *kmsg.DeleteGroupsRequest:
		s.deleteGroups(r, req)
	default:
		s.reply(r.To, Refuse(r.Req, model.ErrUnsupportedVersion))
	}
	return s.take()
}

// Tick lets time act: sessions end, rebalances complete, offsets expire.
func (s *Shard) Tick(now model.Time, wall model.Millis) Ready {
	s.enter(now, wall)
	return s.take()
}

// NextDeadline is when Tick must be called next; false means not at all.
func (s *Shard) NextDeadline() (model.Time, bool) { return s.wheel.NextDeadline() }

// Committed says that the high watermark passed all writes up to id.
func (s *Shard) Committed(now model.Time, wall model.Millis, id uint64) Ready {
	s.enter(now, wall)
	for len(s.writes) > 0 && s.writes[0].id <= id {
		w := s.writes[0]
		s.writes = s.writes[1:]
		s.finish(w, model.None)
	}
	return s.take()
}

// Failed says that one write was refused and is not in the log. Errors of the
// log are turned into those that clients of groups know.
func (s *Shard) Failed(now model.Time, wall model.Millis, id uint64, err model.Error) Ready {
	s.enter(now, wall)
	for i, w := range s.writes {
		if w.id == id {
			s.writes = append(s.writes[:i:i], s.writes[i+1:]...)
			s.finish(w, err)
			break
		}
	}
	return s.take()
}

// Close answers everything that waits with NOT_COORDINATOR: this broker no
// longer leads the partition. The shard is dead afterwards.
func (s *Shard) Close(now model.Time, wall model.Millis) Ready {
	s.now, s.wall = now, wall
	for _, g := range s.sorted() {
		for _, m := range g.members {
			s.refuseJoin(g, m, model.ErrNotCoordinator)
			s.refuseSync(m, model.ErrNotCoordinator)
		}
	}
	clear(s.groups)
	for _, w := range s.writes {
		if w.done != nil {
			w.done(model.ErrNotCoordinator)
		}
	}
	s.writes = nil
	return s.take()
}

func (s *Shard) enter(now model.Time, wall model.Millis) {
	s.now, s.wall = now, wall
	s.wheel.Advance(now, func(t *purgatory.Timer[func()]) { t.Value() })
}

func (s *Shard) take() Ready {
	out := s.out
	s.out = Ready{}
	return out
}

func (s *Shard) reply(to any, resp kmsg.Response) {
	s.out.Replies = append(s.out.Replies, Reply{To: to, Resp: resp})
}

// after runs fn once d has passed, at once when that is nothing.
func (s *Shard) after(t *purgatory.Timer[func()], d time.Duration, fn func()) {
	t.Value = fn
	if !s.wheel.Add(t, s.now.Add(d)) {
		fn()
	}
}

// append sends records to the log. done hears of it once, at the latest after
// the write timeout; end once it is known whether they hold.
func (s *Shard) append(records []Record, done func(model.Error), end func(committed bool)) {
	s.lastID++
	w := &write{id: s.lastID, done: done, end: end}
	s.writes = append(s.writes, w)
	s.out.Writes = append(s.out.Writes, Write{ID: w.id, Records: records})
	if done != nil {
		s.after(&w.timer, s.cfg.WriteTimeout, func() {
			w.done = nil
			done(coordinatorError(model.ErrRequestTimedOut))
		})
	}
}

func (s *Shard) finish(w *write, err model.Error) {
	s.wheel.Remove(&w.timer)
	if w.end != nil {
		w.end(err == model.None)
	}
	if w.done != nil {
		w.done(coordinatorError(err))
	}
}

// coordinatorError turns an error of an append into the one that group clients
// act on.
func coordinatorError(err model.Error) model.Error {
	switch err {
	case model.ErrUnknownTopicOrPartition, model.ErrNotEnoughReplicas, model.ErrNotEnoughReplicasAfterAppend, model.ErrRequestTimedOut:
		return model.ErrCoordinatorNotAvailable
	case model.ErrNotLeaderOrFollower, model.ErrKafkaStorageError:
		return model.ErrNotCoordinator
	case model.ErrMessageTooLarge, model.ErrRecordListTooLarge, model.ErrInvalidFetchSize:
		return model.ErrUnknownServerError
	}
	return err
}
