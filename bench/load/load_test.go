package load

import (
	"context"
	"testing"
	"time"
)

func TestProducersTakeTurnsAtTheRate(t *testing.T) {
	plans := schedules(1000, 4)
	for n := range int64(5000) {
		want := time.Duration(n) * time.Millisecond
		if got := plans[n%4].at(n / 4); got < want-time.Microsecond || got > want+time.Microsecond {
			t.Fatalf("record %d is meant for %v, want %v", n, got, want)
		}
	}
}

// The time of the millionth record must not have drifted by roundings.
func TestAScheduleDoesNotDrift(t *testing.T) {
	plan := schedules(300_000, 1)[0]
	if got, want := plan.at(300_000*3600), time.Hour; got < want-time.Microsecond || got > want+time.Microsecond {
		t.Errorf("after an hour: %v", got)
	}
}

func TestSharesAddUp(t *testing.T) {
	for _, records := range []int64{0, 1, 7, 1000, 1003} {
		sum := int64(0)
		for i := range 7 {
			sum += share(records, i, 7)
		}
		if sum != records {
			t.Errorf("%d records were divided into %d", records, sum)
		}
	}
}

func TestMergedHistogramsTellTheQuantilesOfAllValues(t *testing.T) {
	parts := []histogram{newHistogram(), newHistogram(), newHistogram()}
	for ms := 1; ms <= 1000; ms++ {
		parts[ms%3].add(time.Duration(ms) * time.Millisecond)
	}
	got := merged(parts...).latency()
	near := func(what string, got, want float64) {
		if got < want*0.998 || got > want*1.002 {
			t.Errorf("%s: %v ms, want %v", what, got, want)
		}
	}
	near("p50", got.P50, 500)
	near("p99", got.P99, 990)
	near("p99.9", got.P999, 999)
	near("max", got.Max, 1000)
	if got.Count != 1000 {
		t.Errorf("count %d", got.Count)
	}
}

func TestValuesOutOfRangeAreKeptAtItsEnds(t *testing.T) {
	h := newHistogram()
	h.add(-time.Second)
	h.add(24 * time.Hour)
	if got := h.latency(); got.Count != 2 || got.Max < 599_000 || got.P50 > 0.002 {
		t.Errorf("%+v", *got)
	}
	if got := newHistogram().latency(); got != nil {
		t.Errorf("no values: %+v", *got)
	}
}

// A record that was meant for 1 s and acknowledged at 3 s took 2 s, however long
// it waited to be sent; what was meant for the warm-up does not count.
func TestLatencyCountsFromTheIntendedTime(t *testing.T) {
	o := Options{Brokers: []string{"x"}, Producers: 1, Consumers: 1, Records: 3, Warmup: time.Second}
	if err := o.fill(); err != nil {
		t.Fatal(err)
	}
	r := &run{o: o, id: 7, base: time.Now().Add(-3 * time.Second)}
	noise := make([]byte, 4096)
	fillNoise(noise)
	p := &producer{run: r, noise: noise, latencies: newHistogram(), lateness: newHistogram()}
	c := &consumer{run: r, latencies: newHistogram()}
	for _, intended := range []time.Duration{time.Second / 2, time.Second} {
		rec := p.record(intended)
		c.take(rec.Value, 4*time.Second)
		p.acknowledged(rec, nil)
	}
	other := &run{o: o, id: 8, base: r.base}
	c.take((&producer{run: other, noise: noise}).record(2*time.Second).Value, 4*time.Second)
	got := r.result([]*producer{p}, []*consumer{c})
	if got.Records != 1 || p.acked != 2 || got.Produce.Max < 2000 {
		t.Errorf("produced %d of %d, %+v", got.Records, p.acked, got.Produce)
	}
	if got.Read != 1 || c.read != 2 || got.EndToEnd.Max < 2998 || got.EndToEnd.Max > 3002 || got.ReadBytes != 1024 {
		t.Errorf("read %d of %d, %+v", got.Read, c.read, got.EndToEnd)
	}
}

func TestNoMoreRecordsAreUnderWayThanSlots(t *testing.T) {
	var s slots
	s.init(3)
	const records = 10_000
	taken := make(chan int64, records)
	go func() {
		for n := range int64(records) {
			s.await(t.Context(), n)
			taken <- n
		}
		close(taken)
	}()
	back := int64(0)
	for n := range taken {
		if n-back >= 3 {
			t.Fatalf("record %d has a slot, %d were given back", n, back)
		}
		if n%3 == 2 || n == records-1 {
			for ; back <= n; back++ {
				s.release()
			}
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	s.await(stopped, records+3) // a fourth, and nothing is given back any more
}

func TestContradictingOptionsAreRefused(t *testing.T) {
	good := Options{Brokers: []string{"x"}, Producers: 1, Records: 1}
	if err := good.fill(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no brokers": func(o *Options) { o.Brokers = nil }, "no clients": func(o *Options) { o.Producers = 0 },
		"no end": func(o *Options) { o.Records = 0 }, "tiny": func(o *Options) { o.RecordBytes = 8 },
		"acks": func(o *Options) { o.Acks = "2" }, "codec": func(o *Options) { o.Compression = "rar" },
		"readers": func(o *Options) { o.Producers, o.Consumers, o.Records, o.Duration = 0, 1, 0, time.Second },
		"warm-up": func(o *Options) { o.Warmup, o.Duration = time.Second, time.Second },
	} {
		o := good
		change(&o)
		if err := o.fill(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
