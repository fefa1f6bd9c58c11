package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const darkTopic = "blackout"

// blackout kills every broker at the same moment under load, starts them all
// again and checks that no acknowledged record is missing. The machine stays
// up, so what a broker wrote is still in the page cache.
func blackout(ctx context.Context, c *cluster, rounds int) error {
	if err := c.createTopic(ctx, darkTopic, 3, 3); err != nil {
		return err
	}
	cl, err := newClient(c, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(2*time.Millisecond), kgo.RecordDeliveryTimeout(5*time.Minute))
	if err != nil {
		return err
	}
	defer cl.Close()
	w := &darkWriter{cl: cl, sent: map[string]int{}, stop: make(chan struct{})}
	for p := range 3 {
		w.running.Go(func() { w.run(p) })
	}
	for i := range rounds {
		took, err := lightsOut(ctx, c, w)
		if err != nil {
			return fmt.Errorf("blackout %d: %w", i+1, err)
		}
		fmt.Printf("blackout %d: all brokers killed at once; every partition acknowledges again %d ms after their start\n", i+1, took.Milliseconds())
	}
	close(w.stop)
	w.running.Wait()
	if err := cl.Flush(ctx); err != nil {
		return err
	}
	if w.err != nil {
		return fmt.Errorf("blackout: a record was not acknowledged: %w", w.err)
	}
	total := 0
	for _, n := range w.sent {
		total += n
	}
	return readFranz(ctx, c, darkTopic, w.sent, total)
}

// lightsOut kills and starts everything once, and tells how long it was dark.
func lightsOut(ctx context.Context, c *cluster, w *darkWriter) (time.Duration, error) {
	if err := c.waitISR(ctx, darkTopic, 3, time.Minute); err != nil {
		return 0, err
	}
	select {
	case <-time.After(3 * time.Second):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for _, n := range c.nodes {
		n.cmd.Process.Kill()
	}
	for _, n := range c.nodes {
		<-n.ended
	}
	w.watch(time.Now())
	for _, n := range c.nodes {
		if err := c.launch(n); err != nil {
			return 0, err
		}
	}
	return w.wait(time.Minute)
}

// darkWriter writes to three partitions all the time.
type darkWriter struct {
	cl      *kgo.Client
	stop    chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex
	sent  map[string]int
	dark  time.Time
	light map[int32]bool
	back  chan time.Duration
	err   error
}

func (w *darkWriter) run(p int) {
	name := fmt.Sprintf("dark%d", p)
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-w.stop:
			return
		}
		w.mu.Lock()
		w.sent[name] = n + 1
		w.mu.Unlock()
		sent := time.Now()
		w.cl.Produce(context.Background(), &kgo.Record{Topic: darkTopic, Partition: int32(p), Value: fmt.Appendf(nil, "%s:%09d", name, n)},
			func(r *kgo.Record, err error) { w.acked(r.Partition, sent, err) })
	}
}

func (w *darkWriter) acked(p int32, sent time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	if w.back != nil && sent.After(w.dark) && !w.light[p] {
		w.light[p] = true
		if len(w.light) == 3 {
			w.back <- time.Since(w.dark)
			w.back = nil
		}
	}
}

// watch waits for a record of every partition that is sent and acknowledged
// after the lights went out.
func (w *darkWriter) watch(dark time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dark, w.light, w.back = dark, map[int32]bool{}, make(chan time.Duration, 1)
}

func (w *darkWriter) wait(limit time.Duration) (time.Duration, error) {
	w.mu.Lock()
	back := w.back
	w.mu.Unlock()
	if back == nil {
		return time.Since(w.dark), nil
	}
	select {
	case d := <-back:
		return d, nil
	case <-time.After(limit):
		return 0, fmt.Errorf("not every partition was acknowledged within %v; back are %v", limit, w.light)
	}
}
