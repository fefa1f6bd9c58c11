package workload

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/check"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
)

// Counts are what the workloads of an Env achieved. They are complete when Run
// has returned.
type Counts struct {
	Acked, Failed, Unknown int // batches, by how producing them ended
	Read                   int // records, once for each that read them
	Followers, Sessions    int // answers to fetches by others than the leader, and in a session
	Listed                 int // offsets that were told
	Committed, Resumed     int // offsets of groups
	Changed                int // by administrators
	Truncated              int // positions beyond an end that a new leader told
}

// teller writes down what clients see, one at a time even where they run on
// goroutines.
type teller struct {
	mu      sync.Mutex
	history *check.History
	counts  *Counts
}

func newTeller(e *Env) *teller {
	t := &teller{history: e.History, counts: e.Counts}
	if t.history == nil {
		t.history = check.NewHistory()
	}
	if t.counts == nil {
		t.counts = &Counts{}
	}
	return t
}

func (e *Env) told(f func(h *check.History, n *Counts)) {
	e.tell.mu.Lock()
	defer e.tell.mu.Unlock()
	f(e.tell.history, e.tell.counts)
}

// broken reports what no cluster may answer, whatever was done to it.
func (e *Env) broken(p *position, format string, args ...any) {
	err := fmt.Errorf("%s read %s-%d: %w", e.name, p.topic, p.partition, fmt.Errorf(format, args...))
	if e.Broken == nil {
		panic(err)
	}
	e.Broken(err)
}

func (p *parcel) tp() model.TopicIDPartition {
	return model.TopicIDPartition{TopicID: p.id, Partition: p.partition}
}

func (p *position) tp() model.TopicIDPartition {
	return model.TopicIDPartition{TopicID: p.id, Partition: p.partition}
}

func (e *Env) produceCalled(d delivery, p *parcel) (op check.Op) {
	e.told(func(h *check.History, _ *Counts) {
		op = h.ProduceCalled(check.Produce{
			Client: e.name, TP: p.tp(), Acks: int8(d.acks), ProducerID: p.opts.ProducerID,
			ProducerEpoch: p.opts.ProducerEpoch, Sequence: p.opts.BaseSequence, Values: p.values,
		})
	})
	return op
}

func (e *Env) produceReturned(p *parcel) {
	e.told(func(h *check.History, n *Counts) {
		switch {
		case p.result == outcome.Done && p.base >= 0:
			n.Acked++
			h.ProduceReturned(p.call, model.Offset(p.base), check.OK)
		case p.result == outcome.Unknown || p.result == outcome.Done:
			n.Unknown++
			h.ProduceReturned(p.call, -1, check.Unknown)
		default:
			n.Failed++
			h.ProduceReturned(p.call, -1, check.Failed)
		}
	})
}

// fetched tells of an answer without an error, with or without records.
func (e *Env) fetched(r *reader, broker int32, from *position, a *kmsg.FetchResponseTopicPartition, read []entry) {
	f := check.Fetch{
		Consumer: e.name, TP: from.tp(), From: model.BrokerID(broker), Asked: model.Offset(from.offset),
		LogStart: model.Offset(a.LogStartOffset), HW: model.Offset(a.HighWatermark), LSO: model.Offset(a.LastStableOffset),
		Committed: r.manner.isolation == 1,
	}
	for _, rec := range read {
		f.Offsets, f.Values = append(f.Offsets, model.Offset(rec.offset)), append(f.Values, rec.value)
	}
	e.told(func(h *check.History, n *Counts) {
		n.Read += len(read)
		if from.from >= 0 {
			n.Followers++
		}
		h.Fetched(f)
	})
}

// listed tells of a log's end or start. A client that asks for the last stable
// offset is another one.
func (e *Env) listed(p *position, which int64, isolation int8, offset int64) {
	client := e.name
	if isolation == 1 {
		client += "-committed"
	}
	e.told(func(h *check.History, n *Counts) {
		if n.Listed++; which == latest {
			h.ListedLatest(client, p.tp(), model.Offset(offset))
		}
	})
}

// chose tells that a reader goes on from an offset that it took by itself.
func (e *Env) chose(p *position) {
	e.told(func(h *check.History, _ *Counts) { h.ResumedFrom("", e.name, p.tp(), model.Offset(p.offset)) })
}

// truncated tells that what a reader read is gone, and where it goes on.
func (e *Env) truncated(p *position, from int64) {
	e.note("%s-%d: %d was read and the log was cut at %d", p.topic, p.partition, from, p.offset)
	e.told(func(h *check.History, n *Counts) {
		n.Truncated++
		h.ResumedFrom("", e.name, p.tp(), model.Offset(p.offset))
	})
}

func (e *Env) resumed(group string, p *position, offset int64) {
	e.told(func(h *check.History, n *Counts) {
		if h.ResumedFrom(group, e.name, p.tp(), model.Offset(offset)); offset >= 0 {
			n.Resumed++
		}
	})
}

// commitCalled returns an op for each of the partitions.
func (e *Env) commitCalled(group string, id model.UUID, ps []kmsg.OffsetCommitRequestTopicPartition) (ops []check.Op) {
	e.told(func(h *check.History, _ *Counts) {
		for _, p := range ps {
			tp := model.TopicIDPartition{TopicID: id, Partition: p.Partition}
			ops = append(ops, h.CommitCalled(group, tp, model.Offset(p.Offset)))
		}
	})
	return ops
}

// commitReturned tells how each ended; resp is nil when there was no answer.
func (e *Env) commitReturned(ops []check.Op, ps []kmsg.OffsetCommitRequestTopicPartition, resp *kmsg.OffsetCommitResponse) {
	e.told(func(h *check.History, n *Counts) {
		for i, p := range ps {
			out := check.Unknown
			if code, ok := commitCode(resp, p.Partition); ok && code == model.None {
				out = check.OK
				n.Committed++
			} else if ok {
				out = check.Failed
			}
			h.CommitReturned(ops[i], out)
		}
	})
}

func commitCode(resp *kmsg.OffsetCommitResponse, partition int32) (model.Error, bool) {
	if resp == nil {
		return noCode, false
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.Partition == partition {
				return model.Error(p.ErrorCode), true
			}
		}
	}
	return noCode, false
}

// changed counts what an administrator achieved.
func (e *Env) changed() { e.told(func(_ *check.History, n *Counts) { n.Changed++ }) }

// deletes tells that the topic is about to be deleted.
func (e *Env) deletes(id model.UUID) {
	e.told(func(h *check.History, _ *Counts) { h.TopicDeleted(id) })
}

// trims tells that the records below an offset are about to be deleted.
func (e *Env) trims(p *position, upTo int64) (op check.Op) {
	e.told(func(h *check.History, _ *Counts) { op = h.DeletedRecords(e.name, p.tp(), model.Offset(upTo)) })
	return op
}

// trimmed tells how that ended.
func (e *Env) trimmed(op check.Op, code model.Error) {
	out := check.Failed
	switch code {
	case model.None:
		out = check.OK
	case noCode:
		out = check.Unknown
	}
	e.told(func(h *check.History, _ *Counts) { h.DeleteReturned(op, out) })
}

// asks tells that a reader in a rack is about to fetch.
func (e *Env) asks(r *reader, p *position) {
	if r.manner.rack == "" {
		return
	}
	e.told(func(h *check.History, _ *Counts) { h.FetchAsked(e.name, p.tp(), model.Offset(p.offset)) })
}

// hinted tells that a broker named a nearer replica.
func (e *Env) hinted(p *position, by, near int32) {
	e.told(func(h *check.History, _ *Counts) {
		h.Hinted(e.name, p.tp(), model.Offset(p.offset), model.BrokerID(by), model.BrokerID(near))
	})
}

// inSession counts an answer in a session.
func (e *Env) inSession(s *session) {
	if s.epoch > 0 {
		e.told(func(_ *check.History, n *Counts) { n.Sessions++ })
	}
}

// forgotten tells of an answer to an idempotent producer that contradicts what it
// was told before.
func (e *Env) forgotten(p *parcel, format string, args ...any) {
	text := fmt.Sprintf("%v of producer %d, epoch %d, sequence %d, ", p.values, p.opts.ProducerID, p.opts.ProducerEpoch, p.opts.BaseSequence) +
		fmt.Sprintf(format, args...)
	e.told(func(h *check.History, _ *Counts) {
		h.Forgotten(e.name, model.TopicIDPartition{TopicID: p.id, Partition: p.partition}, text)
	})
}
