package main

import (
	"strings"

	"github.com/tidemark-log/tidemark/bench/ceiling"
	"github.com/tidemark-log/tidemark/bench/history"
)

// limits are what the machine can do.
type limits struct {
	most  ceiling.Ceilings
	least ceiling.Floors
}

// measureLimits moves half of a run's megabytes. What it writes is removed as it
// goes.
func (s *settings) measureLimits() (l limits, err error) {
	megs := max(s.megs/2, 1)
	if l.most, err = ceiling.Measure(s.starter.Dir, megs); err != nil {
		return l, err
	}
	l.least, err = ceiling.MeasureFloors(s.starter.Dir, megs)
	return l, err
}

// limit is one of them as it is shown.
type limit struct {
	history.Metric
	value float64
}

// list returns all in the order of the table.
func (l limits) list() []limit {
	rate := func(name string, v float64) limit {
		return limit{history.Metric{Name: name + "_mb_per_second", Higher: true}, v}
	}
	cost := func(name string, v float64) limit {
		return limit{history.Metric{Name: "floor_" + name + "_cpu_s_per_gb"}, v}
	}
	return []limit{
		rate("loopback", l.most.Loopback), rate("write", l.most.Write), rate("sendfile", l.most.Sendfile), rate("copy", l.most.Copy),
		cost("produce_rf1", l.least.ProduceRF1), cost("produce_rf3", l.least.ProduceRF3), cost("consume_sendfile", l.least.Sendfile),
		cost("consume_mmap", l.least.Mapped), cost("consume_memory", l.least.Memory),
	}
}

func (l limits) figures() figures {
	out := figures{}
	for _, x := range l.list() {
		out[x.Name] = x.value
	}
	return out
}

// floor returns the least cost of what a scenario does, in seconds a GB; 0 if there
// is none.
func (l limits) floor(scenario string) float64 {
	switch {
	case strings.HasPrefix(scenario, "consume-"):
		return l.least.Consume()
	case !strings.HasPrefix(scenario, "produce-"):
		return 0
	case strings.Contains(scenario, "-rf3-"):
		return l.least.ProduceRF3
	default:
		return l.least.ProduceRF1
	}
}

// beside adds to the figures of a run how they compare with the limits.
func (l limits) beside(scenario string, f figures) {
	if floor, cost := l.floor(scenario), f["cpu_s_per_gb"]; floor > 0 && cost > 0 {
		f["times_floor"] = cost / floor
	}
}

// besideLeast adds to the figures of a pair how they compare with the least broker's,
// if both have a cost.
func (o outcome) besideLeast(pair int) {
	if pair >= len(o.runs[least]) {
		return
	}
	cost := o.runs[least][pair]["cpu_s_per_gb"]
	for _, system := range []string{tidemark, kafka} {
		if pair >= len(o.runs[system]) {
			continue
		}
		f := o.runs[system][pair]
		if own := f["cpu_s_per_gb"]; own > 0 && cost > 0 {
			f["times_least"] = own / cost
		}
	}
}
