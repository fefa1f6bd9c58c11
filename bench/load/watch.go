package load

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Watch sends a small record to every partition of a topic again and again, and
// tells how long partitions went without an acknowledgement.
type Watch struct {
	client     *kgo.Client
	topic      string
	partitions int32
	every      time.Duration
	stop       func()
	stopped    chan struct{}

	mu  sync.Mutex
	ask *outage // nil: nobody waits
	err error   // the first of a record
}

// outage is a question to a Watch.
type outage struct {
	since   time.Time
	missing []int32 // partitions that have not acknowledged yet
	longest time.Duration
	over    chan struct{}
}

// NewWatch starts to send with acks=all, a record to each partition every so often.
func NewWatch(ctx context.Context, brokers []string, topic string, partitions int, every time.Duration) (*Watch, error) {
	cl, err := Eager(brokers, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(1<<20))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{client: cl, topic: topic, partitions: int32(partitions), every: every, stop: cancel, stopped: make(chan struct{})}
	go w.send(ctx)
	return w, nil
}

// Close ends the sending. What is not acknowledged is forgotten.
func (w *Watch) Close() {
	w.stop()
	<-w.stopped
	w.client.Close()
}

func (w *Watch) send(ctx context.Context) {
	defer close(w.stopped)
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case sent := <-tick.C:
			for p := range w.partitions {
				w.client.Produce(ctx, &kgo.Record{Topic: w.topic, Partition: p, Value: []byte("tick")}, func(r *kgo.Record, err error) {
					if ctx.Err() == nil {
						w.acknowledged(r.Partition, sent, time.Now(), err)
					}
				})
			}
		}
	}
}

// acknowledged answers the question if there is one and this was the last partition
// that it waited for. Records sent before it do not count.
func (w *Watch) acknowledged(partition int32, sent, now time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.err == nil {
			w.err = err
		}
		return
	}
	q := w.ask
	if q == nil || sent.Before(q.since) || !slices.Contains(q.missing, partition) {
		return
	}
	q.missing = slices.DeleteFunc(q.missing, func(p int32) bool { return p == partition })
	q.longest = max(q.longest, now.Sub(q.since))
	if len(q.missing) == 0 {
		close(q.over)
		w.ask = nil
	}
}

// Outage waits until each of the partitions has acknowledged a record that was sent
// after the moment, and returns how long the last of them took.
func (w *Watch) Outage(ctx context.Context, since time.Time, partitions []int32) (time.Duration, error) {
	q := &outage{since: since, missing: slices.Clone(partitions), over: make(chan struct{})}
	w.mu.Lock()
	w.ask = q
	w.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-q.over:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, fmt.Errorf("produce to topic %s: %w", w.topic, w.err)
	}
	if len(q.missing) > 0 {
		w.ask = nil
		return 0, fmt.Errorf("partitions %v of topic %s do not acknowledge: %w", q.missing, w.topic, ctx.Err())
	}
	return q.longest, nil
}
