package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// patience is how long readers may take to get what was acknowledged last.
const patience = 2 * time.Minute

// run is what producers and consumers of one load share.
type run struct {
	o    Options
	id   uint64    // that tells its records from those of other loads
	base time.Time // the start
	goal atomic.Int64
}

func (r *run) since() time.Duration { return time.Since(r.base) }

// stamp reads the intended time of a record, since the start.
func (r *run) stamp(value []byte) time.Duration {
	return time.Duration(int64(binary.BigEndian.Uint64(value[8:])) - r.base.UnixNano())
}

// Run puts the load on the topic, which has to be there, and returns what was
// measured when all is acknowledged and read.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.fill(); err != nil {
		return Result{}, err
	}
	r := &run{o: o, id: rand.Uint64()}
	producers, consumers, err := r.clients(ctx)
	defer func() {
		for _, p := range producers {
			p.client.Close()
		}
		for _, c := range consumers {
			c.client.Close()
		}
	}()
	if err != nil {
		return Result{}, err
	}
	spent := clientCPU()
	if err := r.play(ctx, producers, consumers); err != nil {
		return Result{}, err
	}
	res := r.result(producers, consumers)
	res.ClientCPU = (clientCPU() - spent).Seconds()
	return res, nil
}

// play starts the clock and all clients, and waits for them.
func (r *run) play(ctx context.Context, producers []*producer, consumers []*consumer) error {
	r.base = time.Now()
	r.goal.Store(-1)
	if len(producers) == 0 {
		r.goal.Store(r.o.Records)
	}
	var sending, reading errgroup.Group
	reads, stop := context.WithCancel(ctx)
	defer stop()
	for _, c := range consumers {
		reading.Go(func() error { return c.receive(reads) })
	}
	for _, p := range producers {
		sending.Go(func() error { return p.send(ctx) })
	}
	if err := sending.Wait(); err != nil {
		stop()
		_ = reading.Wait() // ended by what is returned
		return fmt.Errorf("produce: %w", err)
	}
	if err := r.drain(producers, reading.Wait, stop); err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	return nil
}

// drain tells the readers what there is to read, and waits for them.
func (r *run) drain(producers []*producer, wait func() error, stop func()) error {
	if len(producers) > 0 {
		var acked int64
		for _, p := range producers {
			acked += p.acked
		}
		r.goal.Store(acked)
	}
	limit := time.AfterFunc(patience, stop)
	defer limit.Stop()
	return wait()
}

// clients makes the clients. Readers beside producers start at the end.
func (r *run) clients(ctx context.Context) (producers []*producer, consumers []*consumer, err error) {
	if r.o.Consumers > 0 {
		from, err := offsets(ctx, r.o)
		if err != nil {
			return nil, nil, err
		}
		for range r.o.Consumers {
			c, err := r.newConsumer(from)
			if err != nil {
				return producers, consumers, err
			}
			consumers = append(consumers, c)
		}
	}
	noise := make([]byte, 1<<20+r.o.RecordBytes+1)
	fillNoise(noise)
	for i := range r.o.Producers {
		p, err := r.newProducer(i, noise)
		if err != nil {
			return producers, consumers, err
		}
		producers = append(producers, p)
	}
	return producers, consumers, nil
}

// fillNoise writes what compresses to a half or so: random hexadecimal digits.
func fillNoise(b []byte) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = "0123456789abcdef"[random.IntN(16)]
	}
}
