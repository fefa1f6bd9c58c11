package load

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// producer is one client that sends its share. The client calls acknowledged from
// one goroutine; the counts are read after Flush.
type producer struct {
	*run
	client    *kgo.Client
	plan      schedule // of an open loop
	partition int32    // of a pinned producer
	records   int64    // to send; 0: until the duration is over
	noise     []byte
	pool      sync.Pool
	slots     slots // of a closed loop

	latencies, lateness histogram
	acked, measured     int64
	last                time.Duration // when the last acknowledgement came
	err                 error
}

func (r *run) newProducer(i int, noise []byte) (*producer, error) {
	cl, err := kgo.NewClient(r.o.producing()...)
	if err != nil {
		return nil, err
	}
	p := &producer{run: r, client: cl, noise: noise, partition: int32(i % r.o.Partitions), latencies: newHistogram(), lateness: newHistogram()}
	p.slots.init(int64(r.o.InFlight))
	if r.o.Rate > 0 {
		p.plan = schedules(r.o.Rate, r.o.Producers)[i]
	}
	if r.o.Records > 0 {
		p.records = share(r.o.Records, i, r.o.Producers)
	}
	return p, nil
}

// send sends everything and waits for the last acknowledgement.
func (p *producer) send(ctx context.Context) error {
	for n := int64(0); (p.o.Records == 0 || n < p.records) && ctx.Err() == nil; n++ {
		intended := p.plan.at(n)
		if p.o.Rate == 0 {
			p.slots.await(ctx, n)
			intended = p.since()
		}
		if p.o.Duration > 0 && intended >= p.o.Duration {
			break
		}
		if p.o.Rate > 0 {
			p.await(intended)
		}
		p.client.Produce(ctx, p.record(intended), p.acknowledged)
	}
	if err := p.client.Flush(ctx); err != nil {
		return err
	}
	return p.err
}

// await waits for the intended time and notes how late the generator itself is.
func (p *producer) await(intended time.Duration) {
	now := p.since()
	for ; now < intended; now = p.since() {
		sleep(intended - now)
	}
	if intended >= p.o.Warmup {
		p.lateness.add(now - intended)
	}
}

// record takes a record that was acknowledged, or makes one.
func (p *producer) record(intended time.Duration) *kgo.Record {
	r, ok := p.pool.Get().(*kgo.Record)
	if !ok {
		at := rand.IntN(len(p.noise) - p.o.RecordBytes)
		r = &kgo.Record{Value: append([]byte(nil), p.noise[at:at+p.o.RecordBytes]...)}
	}
	*r = kgo.Record{Topic: p.o.Topic, Partition: p.partition, Value: r.Value}
	binary.BigEndian.PutUint64(r.Value, p.id)
	binary.BigEndian.PutUint64(r.Value[8:], uint64(p.base.UnixNano()+int64(intended)))
	return r
}

func (p *producer) acknowledged(r *kgo.Record, err error) {
	now := p.since()
	defer p.slots.release()
	if err != nil {
		if p.err == nil {
			p.err = err
		}
		return
	}
	p.acked++
	if intended := p.stamp(r.Value); intended >= p.o.Warmup {
		p.measured++
		p.last = now
		p.latencies.add(now - intended)
	}
	p.pool.Put(r)
}
