package history

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Figures are what one run measured, by the names of metrics.
type Figures map[string]float64

// Metric is a figure as it is shown.
type Metric struct {
	Name   string
	Higher bool // is better
	Detail bool // is shown when asked for
}

// Better is the direction in which the figure is better.
func (m Metric) Better() string {
	if m.Higher {
		return "higher"
	}
	return "lower"
}

// Metrics are all figures in the order of the table.
var Metrics = []Metric{
	{"mb_per_second", true, false}, {"records_per_second", true, false}, {"read_mb_per_second", true, false},
	{"disk_read_mb_per_second", true, false}, {"read_of_disk", true, false}, {"seconds", false, false},
	{"failover_ms", false, false}, {"failover_controller_ms", false, false}, {"failover_max_ms", false, false},
	{"produce_p50_ms", false, false}, {"produce_p99_ms", false, false}, {"produce_p999_ms", false, false}, {"produce_max_ms", false, true},
	{"end_to_end_p50_ms", false, false}, {"end_to_end_p99_ms", false, false}, {"end_to_end_p999_ms", false, false},
	{"end_to_end_max_ms", false, true}, {"lateness_p99_ms", false, false},
	{"times_copy", false, false}, {"copy_seconds", false, true}, {"sync_ms", false, false},
	{"cpu_s_per_gb", false, false}, {"floor_cpu_s_per_gb", false, true}, {"times_floor", false, false}, {"times_least", false, false},
	{"cpu_seconds", false, false}, {"cpu_us_per_record", false, true}, {"cores", false, false}, {"client_cores", false, true},
	{"rss_mb", false, true}, {"peak_rss_mb", false, false}, {"io_read_mb", false, true}, {"io_written_mb", false, true},
	{"disk_written_mb", false, true}, {"switches_per_second", false, true},
}

// Median is NaN without values. It leaves the list as it is.
func Median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(list))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// column returns one figure of all runs that have it.
func column(runs []Figures, name string) []float64 {
	var out []float64
	for _, r := range runs {
		if v, ok := r[name]; ok {
			out = append(out, v)
		}
	}
	return out
}

// Medians returns the median of each figure.
func Medians(runs []Figures) Figures {
	out := Figures{}
	for _, r := range runs {
		for name := range r {
			if _, ok := out[name]; !ok {
				out[name] = Median(column(runs, name))
			}
		}
	}
	return out
}

// Ratio is how two systems compare in one figure.
type Ratio struct{ Median, Least, Most float64 }

// Compare divides ours by theirs pair by pair, so that what disturbed the machine
// for a while disturbed both. Pairs without both figures are left out.
func Compare(ours, theirs []Figures, name string) (Ratio, bool) {
	var all []float64
	for i := range min(len(ours), len(theirs)) {
		o, ok := ours[i][name]
		t, also := theirs[i][name]
		if ok && also && t != 0 {
			all = append(all, o/t)
		}
	}
	if len(all) == 0 {
		return Ratio{}, false
	}
	return Ratio{Median(all), slices.Min(all), slices.Max(all)}, true
}

// At names a figure of a run that measured it at several sizes, such as "cores@100".
func At(name string, size int) string { return name + "@" + strconv.Itoa(size) }

// Sizes returns the sizes at which the figure was measured, in order.
func (f Figures) Sizes(name string) []int {
	var out []int
	for key := range maps.Keys(f) {
		if rest, ok := strings.CutPrefix(key, name+"@"); ok {
			if n, err := strconv.Atoi(rest); err == nil {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}
