package api

import (
	"context"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
)

func core(h *Hosted) *partition.Partition { return h.Owner.(*partition.Partition) }

func (w *world) Bounds(_ context.Context, asks []BoundQuery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range asks {
		a := &asks[i]
		p := core(a.Hosted)
		a.LogStart = p.Marks().LogStart
		a.StartEpoch = p.EpochAt(a.LogStart)
		a.Bound, a.Epoch, a.Err = p.ListBound(a.Current, a.Isolation)
	}
}

func (w *world) EpochEnds(_ context.Context, asks []EpochQuery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range asks {
		asks[i].End, asks[i].Err = core(asks[i].Hosted).EndOfEpoch(asks[i].Current, asks[i].Epoch)
	}
}

func (w *world) DeleteRecords(_ context.Context, asks []DeleteQuery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range asks {
		a := &asks[i]
		p := core(a.Hosted)
		rd := p.Step(0, wall, &partition.DeleteRecords{Offset: a.Offset})
		if a.Err = rd.Err; a.Err != model.None {
			continue
		}
		if to := rd.RaiseLogStart; to != nil {
			if err := a.Hosted.Log.RaiseStart(*to); err != nil {
				panic(err)
			}
			p.Step(0, wall, &partition.LogStartMoved{To: *to})
		}
		a.LowWatermark = p.LowWatermark()
	}
}

// append writes one batch of records with these timestamps to a partition.
func (w *world) append(topic string, id int32, opts record.BatchOptions, stamps ...model.Millis) {
	w.t.Helper()
	h := w.ByName(model.TopicPartition{Topic: topic, Partition: id})
	b := record.NewBuilder(opts)
	for _, ts := range stamps {
		b.Add(ts, nil, []byte("value"))
	}
	batch := b.Bytes()
	header, ok := record.ParseHeader(batch)
	if !ok {
		w.t.Fatal("the batch does not parse")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := core(h)
	rd := p.Step(0, wall, &partition.Produce{Acks: -1, Batch: header.Producer(), Bytes: int32(len(batch))})
	if rd.Err != model.None || rd.Append == nil {
		w.t.Fatalf("produce: %v", rd.Err)
	}
	done, err := h.Log.Append(wall, storage.AppendBatch{Bytes: batch, Stamp: true,
		Base: rd.Append.Base, Epoch: rd.Append.Epoch, Epochs: rd.Append.Epochs})
	if err != nil {
		w.t.Fatal(err)
	}
	p.Step(0, wall, &partition.Appended{End: done.End, Pos: done.Pos})
}
