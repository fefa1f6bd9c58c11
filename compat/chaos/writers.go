package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
)

// ledger is a topic with one way to produce to it.
type ledger struct {
	topic      string
	acks       history.Acks
	partitions int32
	writers    int
}

func ledgers() []ledger {
	return []ledger{
		{"all", history.AcksAll, 4, 3},
		{"one", history.AcksLeader, 2, 2},
		{"zero", history.AcksNone, 2, 2},
	}
}

// options are the producer's settings for the ledger.
func (l ledger) options() []kgo.Opt {
	opts := []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5 * time.Millisecond),
		kgo.MaxBufferedRecords(4000), kgo.ProduceRequestTimeout(3 * time.Second)}
	switch l.acks {
	case history.AcksAll:
		return append(opts, kgo.StopProducerOnDataLossDetected())
	case history.AcksLeader:
		return append(opts, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.RecordDeliveryTimeout(20*time.Second))
	}
	return append(opts, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.NoAck()), kgo.RecordDeliveryTimeout(20*time.Second))
}

// writer is one producer that writes to all partitions of a topic in turn.
type writer struct {
	l     ledger
	h     *history.History
	cl    *kgo.Client
	lanes []*history.Lane
	rate  float64
}

// startWriters starts all producers; what it returns stops them and waits until
// everything that they sent is acknowledged or given up.
func (c *cluster) startWriters(ctx context.Context) (stop func(context.Context) error, err error) {
	total := 0
	for _, l := range ledgers() {
		total += l.writers
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var writers []*writer
	id := 0
	for _, l := range ledgers() {
		for range l.writers {
			cl, err := c.client(fmt.Sprintf("writer %d", id), l.options()...)
			if err != nil {
				cancel()
				return nil, err
			}
			w := &writer{l: l, h: c.h, cl: cl, rate: float64(c.s.rate) / float64(total)}
			for p := range l.partitions {
				w.lanes = append(w.lanes, c.h.Find(l.topic, p).Lane(id))
			}
			writers = append(writers, w)
			running.Go(func() { w.run(ctx) })
			id++
		}
	}
	return func(ctx context.Context) error {
		cancel()
		running.Wait()
		for _, w := range writers {
			if err := w.cl.Flush(ctx); err != nil {
				return fmt.Errorf("%d records of a producer with %v stayed without an answer: %w", w.cl.BufferedProduceRecords(), w.l.acks, err)
			}
			w.cl.Close()
		}
		return nil
	}, nil
}

// run writes at the writer's rate until the context ends. What a full buffer
// delayed is not made up for.
func (w *writer) run(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	due, last, next := 0.0, time.Now(), 0
	for {
		select {
		case now := <-tick.C:
			due = min(due+w.rate*now.Sub(last).Seconds(), w.rate/10)
			last = now
		case <-ctx.Done():
			return
		}
		for ; due >= 1; due-- {
			w.write(ctx, next%len(w.lanes))
			next++
		}
	}
}

// write hands over one record. The context ends the wait for room in the buffer,
// not a record.
func (w *writer) write(ctx context.Context, p int) {
	for w.cl.BufferedProduceRecords() >= 3500 {
		if !pause(ctx, 20*time.Millisecond) {
			return
		}
	}
	lane := w.lanes[p]
	k := lane.Begin()
	w.cl.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: w.l.topic, Partition: int32(p), Value: k.Value()}, func(r *kgo.Record, err error) {
		if err == nil {
			lane.Acked(k, r.Offset)
			return
		}
		lane.Failed(k)
		if w.l.acks == history.AcksAll {
			w.h.Verdict.Violate(history.Alive, "an idempotent producer gave up record %v of %s-%d after %v: %v", k, w.l.topic, p, w.h.Now().Duration(), err)
		}
	})
}
