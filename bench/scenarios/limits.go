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
		cost("consume_mmap", l.least.Mapped), cost("consume_pread", l.least.Copied), cost("consume_memory", l.least.Memory),
	}
}

func (l limits) figures() figures {
	out := figures{}
	for _, x := range l.list() {
		out[x.Name] = x.value
	}
	return out
}

// floorOf says what the least that a scenario does consists of: the cheapest of these
// ways. None if it is nothing so simple.
func floorOf(scenario string) []ceiling.Way {
	switch {
	case strings.HasPrefix(scenario, "consume-"):
		return []ceiling.Way{ceiling.Sendfile, ceiling.Mapped}
	case !strings.HasPrefix(scenario, "produce-"):
		return nil
	case strings.Contains(scenario, "-rf3-"):
		return []ceiling.Way{ceiling.ProduceRF3}
	default:
		return []ceiling.Way{ceiling.ProduceRF1}
	}
}

// floor measures the least cost of what a scenario does, in seconds a GB, as the
// machine is at this moment; 0 if there is none.
func (s *settings) floor(scenario string) (float64, error) {
	ways := floorOf(scenario)
	if len(ways) == 0 {
		return 0, nil
	}
	f, err := ceiling.MeasureFloors(s.starter.Dir, max(s.megs/2, 1), ways...)
	return min(f.ProduceRF1, f.ProduceRF3, f.Sendfile, f.Mapped), err
}

// beside adds to the figures of a run how they compare with the floor of its pair.
func beside(floor float64, f figures) {
	if cost := f["cpu_s_per_gb"]; floor > 0 && cost > 0 {
		f["floor_cpu_s_per_gb"], f["times_floor"] = floor, cost/floor
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
