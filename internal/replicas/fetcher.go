package replicas

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// fetchVersion is the follower Fetch that metadata.version 25 dictates, and
// listVersion the ListOffsets.
const (
	fetchVersion = 17
	listVersion  = 10
)

// firstRedial is the pause before a peer that refused is dialled again; it
// doubles up to replica.fetch.backoff.ms.
const firstRedial = 20 * time.Millisecond

// fetcher carries the fetch requests over one lane to a peer: it owns the connection
// and the numbers of the fetch session (KIP-227). What is asked for comes from the
// replicas loop, what came back goes there.
type fetcher struct {
	id    model.BrokerID
	rt    *task.Runtime
	s     *source
	cfg   FetchOptions
	dial  func(ctx context.Context, id model.BrokerID) (*transport.Client, error)
	epoch func() model.BrokerEpoch
	tell  func(event) bool
	meter Meter // nil counts nothing
	log   *slog.Logger

	client        *transport.Client
	session       int32
	sessionEpoch  int32
	pause         time.Duration
	refusedBefore bool
	plans         []fetchPlan // taken from the source
	resp          kmsg.FetchResponse
}

// FetchOptions are the replica.fetch settings.
type FetchOptions struct {
	Lanes          int // num.replica.fetchers, as of the start; 0 is 1
	Wait           time.Duration
	MinBytes       int32
	PartitionBytes int32
	TotalBytes     int32 // of a response
	Backoff        time.Duration
	Limit          time.Duration // for an answer
}

func (l *Loop) startFetcher(ctx context.Context, s *source) {
	f := &fetcher{id: l.id, rt: l.rt, s: s, cfg: l.opts.Fetch, dial: l.opts.Dial, epoch: l.opts.Epoch, log: l.log,
		meter: l.opts.Meter, tell: func(e event) bool { return l.inbox.Post(e) }}
	l.fetchers.Go(fmt.Sprintf("fetcher %d-%d", s.leader, s.n), func() { f.run(ctx) })
}

// run is the fetcher's task; it ends with ctx.
func (f *fetcher) run(ctx context.Context) {
	defer func() {
		if f.client != nil {
			f.client.Close()
		}
	}()
	full, waiter := true, f.rt.NewWaiter()
	for {
		if !f.tell(wantPlan{s: f.s, full: full}) {
			return
		}
		plan, ok := f.next(ctx, waiter)
		if !ok {
			return
		}
		if err := f.Turn(ctx, plan); err != nil {
			if ctx.Err() != nil {
				return
			}
			f.lost(err)
			waiter.Wait(ctx, f.pause)
			full = true
			continue
		}
		full = f.session == 0
	}
}

// next waits for a plan; false says that ctx ended.
func (f *fetcher) next(ctx context.Context, waiter *task.Waiter) (fetchPlan, bool) {
	for {
		if f.plans = f.s.plans.Take(f.plans); len(f.plans) > 0 {
			return f.plans[0], true
		}
		if waiter.Wait(ctx, task.Forever, f.s.plans.Wake) == task.Ended {
			return fetchPlan{}, false
		}
	}
}

// lost drops the connection and the session, and says how long to pause before
// the next try.
func (f *fetcher) lost(err error) {
	if !f.refusedBefore {
		f.log.Info("fetch from leader failed", "leader", f.s.leader, "fetcher", f.s.n, "error", err)
	}
	f.refusedBefore = true
	if f.client != nil {
		f.client.Close()
		f.client = nil
	}
	f.session, f.sessionEpoch = 0, 0
	f.pause = min(max(2*f.pause, firstRedial), f.cfg.Backoff)
}

// Turn sends one request and brings its answer to the loop (Walk 2).
func (f *fetcher) Turn(ctx context.Context, plan fetchPlan) error {
	if err := f.connect(ctx, plan.full); err != nil {
		return err
	}
	ctx, cancel := f.rt.WithTimeout(ctx, f.cfg.Limit)
	defer cancel()
	ev := &fetched{s: f.s}
	if len(plan.asks) > 0 {
		if err := f.ask(ctx, plan.asks, ev); err != nil {
			return err
		}
	}
	frame, err := f.client.DoFrame(ctx, f.request(plan))
	if err != nil {
		return err
	}
	f.resp = kmsg.FetchResponse{Version: fetchVersion}
	if err := f.resp.ReadFrom(frame.Body()); err != nil {
		frame.Release()
		return fmt.Errorf("decode the answer of leader %d: %w", f.s.leader, err)
	}
	if e := model.Error(f.resp.ErrorCode); e != model.None {
		frame.Release()
		return f.refused(e, ev)
	}
	f.pause, f.refusedBefore = 0, false
	f.session = f.resp.SessionID
	f.sessionEpoch = max(1, f.sessionEpoch+1) // after the last one comes 1
	f.collect(ev)
	ev.free = frame.Release
	if !f.tell(ev) {
		frame.Release()
	}
	return nil
}

// connect dials, unless there is a connection. One that ended while there was nothing to
// fetch is replaced: the plan that begins a session may go over any.
func (f *fetcher) connect(ctx context.Context, full bool) (err error) {
	if f.client != nil && full && f.client.Err() != nil {
		f.client.Close()
		f.client = nil
	}
	if f.client == nil {
		f.client, err = f.dial(ctx, f.s.leader)
	}
	return err
}

// refused takes an error for the whole request. A session that the leader lost
// is begun anew at once.
func (f *fetcher) refused(e model.Error, ev *fetched) error {
	f.session, f.sessionEpoch = 0, 0
	if e != model.ErrFetchSessionIDNotFound && e != model.ErrInvalidFetchSessionEpoch {
		return fmt.Errorf("leader %d answers %w", f.s.leader, e)
	}
	f.tell(ev)
	return nil
}

func (f *fetcher) request(plan fetchPlan) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = fetchVersion
	req.ReplicaState.ID, req.ReplicaState.Epoch = int32(f.id), int64(f.epoch())
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(f.cfg.Wait.Milliseconds()), f.cfg.MinBytes, f.cfg.TotalBytes
	if len(plan.asks) > 0 {
		req.MaxWaitMillis = 0 // the answers wait for this request
	}
	req.SessionID, req.SessionEpoch = f.session, f.sessionEpoch
	if plan.full {
		f.sessionEpoch, req.SessionEpoch = 0, 0
	}
	for _, p := range plan.parts {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].TopicID != p.id.TopicID {
			t := kmsg.NewFetchRequestTopic()
			t.TopicID = p.id.TopicID
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition = p.id.Partition
		part.CurrentLeaderEpoch = int32(p.pos.LeaderEpoch)
		part.FetchOffset, part.LogStartOffset = int64(p.pos.Offset), int64(p.pos.LogStart)
		part.LastFetchedEpoch = int32(p.pos.LastEpoch)
		part.PartitionMaxBytes = f.cfg.PartitionBytes
		t.Partitions = append(t.Partitions, part)
	}
	for _, id := range plan.forget {
		if n := len(req.ForgottenTopics); n == 0 || req.ForgottenTopics[n-1].TopicID != id.TopicID {
			t := kmsg.NewFetchRequestForgottenTopic()
			t.TopicID = id.TopicID
			req.ForgottenTopics = append(req.ForgottenTopics, t)
		}
		t := &req.ForgottenTopics[len(req.ForgottenTopics)-1]
		t.Partitions = append(t.Partitions, id.Partition)
	}
	return req
}

// collect turns the answer into what the loop takes. Every batch's checksum is
// verified here, off the loop.
func (f *fetcher) collect(ev *fetched) {
	for i := range f.resp.Topics {
		t := &f.resp.Topics[i]
		for j := range t.Partitions {
			ev.parts = append(ev.parts, collectPart(t.TopicID, &t.Partitions[j]))
		}
	}
	if f.meter != nil {
		for i := range ev.parts {
			f.meter.Replicated(len(ev.parts[i].data))
		}
	}
}

func collectPart(topic model.UUID, p *kmsg.FetchResponseTopicPartition) fetchedPart {
	out := fetchedPart{id: model.TopicIDPartition{TopicID: topic, Partition: p.Partition}}
	out.resp = partition.FetchResponse{
		Err: model.Error(p.ErrorCode), HW: model.Offset(p.HighWatermark), LogStart: model.Offset(p.LogStartOffset),
		Diverging: model.EpochEnd{Epoch: model.Epoch(p.DivergingEpoch.Epoch), End: model.Offset(p.DivergingEpoch.EndOffset)},
	}
	size := 0
	for h, b := range record.Split(p.RecordBatches) {
		if !record.Valid(b) {
			out.resp.Err, out.resp.Batches = model.ErrCorruptMessage, nil
			return out
		}
		out.resp.Batches = append(out.resp.Batches, partition.FetchedBatch{Base: h.Base, Last: h.LastOffset(),
			Epoch: h.LeaderEpoch, Bytes: int32(len(b)), Producer: record.ProducerOf(b)})
		size += len(b)
	}
	out.data = p.RecordBatches[:size]
	return out
}

// ask asks the leader for the ends of its logs (R4.13).
func (f *fetcher) ask(ctx context.Context, asks []planPart, ev *fetched) error {
	start, err := f.list(ctx, asks, -2)
	if err != nil {
		return err
	}
	end, err := f.list(ctx, asks, -1)
	if err != nil {
		return err
	}
	for _, a := range asks {
		ev.asked = append(ev.asked, bounds(a, start, end))
	}
	return nil
}

// listed is one bound of a leader's log, or why it does not tell.
type listed struct {
	offset model.Offset
	err    model.Error
}

// bounds puts a leader's two answers about a partition together.
func bounds(a planPart, start, end map[model.TopicPartition]listed) fetchedBounds {
	s, okS := start[a.tp]
	e, okE := end[a.tp]
	out := fetchedBounds{id: a.id, resp: partition.LeaderOffsets{LeaderEpoch: a.pos.LeaderEpoch,
		LogStart: s.offset, LEO: e.offset, Err: cmp.Or(s.err, e.err)}}
	if !okS || !okE {
		out.resp.Err = model.ErrUnknownServerError
	}
	return out
}

// list asks for one bound of each partition.
func (f *fetcher) list(ctx context.Context, asks []planPart, timestamp int64) (map[model.TopicPartition]listed, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = listVersion, int32(f.id)
	for _, a := range asks {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = a.tp.Topic
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.Timestamp = a.tp.Partition, int32(a.pos.LeaderEpoch), timestamp
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
	}
	resp, err := f.client.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	out := map[model.TopicPartition]listed{}
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			out[model.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = listed{model.Offset(p.Offset), model.Error(p.ErrorCode)}
		}
	}
	return out, nil
}
