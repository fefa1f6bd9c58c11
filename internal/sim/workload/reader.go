package workload

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
)

// position is where a reader stands in one partition.
type position struct {
	topic     string
	id        model.UUID
	partition int32
	offset    int64 // of the next record; -1 until it is known where to begin
	epoch     int32 // of the record before it, -1 if there is none
	checked   int32 // the leader epoch in which the position was last found sound
	from      int32 // the replica to read from; -1 is the leader
}

// manner is how a reader fetches.
type manner struct {
	isolation int8 // 1: read_committed
	sessions  bool
	followers bool
	patient   bool   // waits longer, for many bytes
	rack      string // with followers
}

// reader fetches from positions, as the inside of a consumer.
type reader struct {
	c         *client
	manner    manner
	positions []*position
	sessions  []*session
	got       func(read []entry) // if not nil, is told of each answer with or without records
}

// read fetches once from every broker that the positions need, and takes the
// positions on. False says that ctx ended.
func (r *reader) read(ctx context.Context) bool {
	var ready []*position
	for _, p := range r.positions {
		if r.prepare(ctx, p) {
			ready = append(ready, p)
		}
	}
	if len(ready) == 0 {
		return r.c.pause(ctx, 3)
	}
	for len(ready) > 0 {
		broker := r.source(ready[0])
		var now, later []*position
		for _, p := range ready {
			if r.source(p) == broker {
				now = append(now, p)
			} else {
				later = append(later, p)
			}
		}
		r.fetch(ctx, broker, now)
		ready = later
	}
	return ctx.Err() == nil
}

// source is the broker that a position is read from.
func (r *reader) source(p *position) int32 {
	if p.from >= 0 {
		return p.from
	}
	if m := r.meta(p); m != nil {
		return m.Leader
	}
	return -1
}

func (r *reader) meta(p *position) *metadata.Partition {
	return r.c.meta.Partition(p.topic, p.id, p.partition)
}

// prepare makes a position ready to be read from: there is a leader, an offset,
// and in this leader epoch nothing before the offset was cut off (KIP-320).
func (r *reader) prepare(ctx context.Context, p *position) bool {
	m := r.meta(p)
	if m == nil || m.Leader < 0 {
		r.c.refresh(ctx, p.topic)
		return false
	}
	if p.offset < 0 {
		return r.begin(ctx, p, earliest)
	}
	if m.Epoch > p.checked && p.epoch >= 0 && !r.validate(ctx, p, m) {
		return false
	}
	p.checked = max(p.checked, m.Epoch)
	if r.manner.followers && r.manner.rack == "" && r.c.env.chance(8) {
		p.from = pick(r.c.env.Rand, m.Replicas)
	}
	return true
}

// begin sets a position to where the log begins or ends.
func (r *reader) begin(ctx context.Context, p *position, which int64) bool {
	at, ok := r.c.listOffset(ctx, p, which, r.manner.isolation)
	if ok {
		p.offset, p.epoch, p.from = at, -1, -1
		r.c.env.chose(p)
	}
	return ok
}

// request is a fetch that names no partition yet, and how long it may take.
func (r *reader) request() (*kmsg.FetchRequest, time.Duration) {
	e := r.c.env
	wait, minBytes := time.Duration(e.Rand.IntN(200))*time.Millisecond, int32(1)
	if r.manner.patient {
		wait, minBytes = 10*wait, int32(200<<e.Rand.IntN(6))
	}
	req := kmsg.NewPtrFetchRequest()
	req.Version = 18
	req.MaxWaitMillis, req.MinBytes = int32(wait.Milliseconds()), minBytes
	req.MaxBytes = int32(100 << e.Rand.IntN(12))
	req.IsolationLevel = r.manner.isolation
	req.Rack = r.manner.rack
	return req, wait
}

// fetch asks one broker for the records of some positions.
func (r *reader) fetch(ctx context.Context, broker int32, ps []*position) {
	e := r.c.env
	req, wait := r.request()
	var s *session
	if r.manner.sessions {
		s = r.session(broker)
		s.open(req, ps)
	} else {
		for _, p := range ps {
			addWish(req, p.wish())
		}
	}
	for _, p := range ps {
		e.asks(r, p)
	}
	answer, err := r.c.askBroker(ctx, broker, req, wait)
	if err != nil {
		r.failed(ctx, s, ps)
		return
	}
	resp := answer.(*kmsg.FetchResponse)
	if e := model.Error(resp.ErrorCode); e != model.None {
		r.failed(ctx, s, ps)
		return
	}
	if s != nil {
		e.inSession(s)
		s.took(resp)
	}
	r.take(ctx, broker, resp, ps)
}

// failed is what a reader does without an answer: it forgets the session and
// looks for the leader.
func (r *reader) failed(ctx context.Context, s *session, ps []*position) {
	if s != nil {
		*s = session{broker: s.broker}
	}
	for _, p := range ps {
		p.from = -1
	}
	r.c.refresh(ctx, topicsOf(ps)...)
	r.c.pause(ctx, 3)
}

func topicsOf(ps []*position) []string {
	var out []string
	for _, p := range ps {
		if !slices.Contains(out, p.topic) {
			out = append(out, p.topic)
		}
	}
	return out
}

// wish is what a request says of a position.
type wish struct {
	id        model.UUID
	partition int32
	offset    int64
	epoch     int32 // of the leader
	maxBytes  int32
}

func (p *position) wish() wish { return wish{p.id, p.partition, p.offset, p.checked, 1 << 20} }

func addWish(req *kmsg.FetchRequest, w wish) {
	at := slices.IndexFunc(req.Topics, func(t kmsg.FetchRequestTopic) bool { return t.TopicID == w.id })
	if at < 0 {
		t := kmsg.NewFetchRequestTopic()
		t.TopicID = w.id
		at, req.Topics = len(req.Topics), append(req.Topics, t)
	}
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.CurrentLeaderEpoch, rp.PartitionMaxBytes = w.partition, w.offset, w.epoch, w.maxBytes
	req.Topics[at].Partitions = append(req.Topics[at].Partitions, rp)
}

// take takes the answers of the partitions.
func (r *reader) take(ctx context.Context, broker int32, resp *kmsg.FetchResponse, ps []*position) {
	var old []string
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			for _, p := range ps {
				if p.id == model.UUID(t.TopicID) && p.partition == t.Partitions[j].Partition && r.takeOne(ctx, broker, &t.Partitions[j], p) &&
					!slices.Contains(old, p.topic) {
					old = append(old, p.topic)
				}
			}
		}
	}
	if len(old) > 0 {
		r.c.refresh(ctx, old...)
		r.c.pause(ctx, 2)
	}
}

// takeOne takes the answer of one partition and says whether metadata is old.
func (r *reader) takeOne(ctx context.Context, broker int32, a *kmsg.FetchResponseTopicPartition, p *position) bool {
	switch e := model.Error(a.ErrorCode); {
	case e == model.ErrOffsetOutOfRange && p.from >= 0:
		p.from = -1 // the follower lags, or we do: the leader knows
	case e == model.ErrOffsetOutOfRange:
		r.c.env.note("%s-%d: offset %d is out of range", p.topic, p.partition, p.offset)
		r.begin(ctx, p, earliest)
	case e != model.None:
		p.from = -1
		return outcome.Stale(e)
	case a.PreferredReadReplica >= 0:
		r.c.env.hinted(p, broker, a.PreferredReadReplica)
		p.from = a.PreferredReadReplica
	default:
		r.records(broker, a, p)
	}
	return false
}

// records reads whole batches up to the end of the answer.
func (r *reader) records(broker int32, a *kmsg.FetchResponseTopicPartition, p *position) {
	var read []entry
	from := *p
	for h, batch := range record.Split(a.RecordBatches) {
		if !record.Valid(batch) {
			r.c.env.broken(&from, "a batch with a wrong checksum at offset %d", h.Base)
			return
		}
		err := record.Records(batch, func(rec *record.Record) bool {
			if !h.Control() && int64(rec.Offset) >= from.offset {
				read = append(read, entry{int64(rec.Offset), int32(h.LeaderEpoch), string(rec.Value)})
			}
			return true
		})
		if err != nil {
			r.c.env.broken(&from, "a batch that cannot be read at offset %d: %v", h.Base, err)
			return
		}
		if int64(h.Next()) > p.offset {
			p.offset, p.epoch = int64(h.Next()), int32(h.LeaderEpoch)
		}
	}
	r.c.env.fetched(r, broker, &from, a, read)
	if r.got != nil {
		r.got(read)
	}
}

// entry is one record that was read.
type entry struct {
	offset int64
	epoch  int32
	value  string
}
