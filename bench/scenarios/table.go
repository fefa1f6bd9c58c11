package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/tidemark-log/tidemark/bench/history"
)

// outcome is all that was measured of one scenario: the runs by system, those of
// one pair at the same place.
type outcome struct {
	scenario string
	runs     map[string][]figures
}

// printTable prints the medians of all scenarios and their ratios, and what the
// machine can do. Details are figures that explain others.
func printTable(w io.Writer, outcomes []outcome, l limits, details bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tfigure\tbetter\ttidemark\tkafka\tratio\tof pairs")
	for _, o := range outcomes {
		ours, theirs := history.Medians(o.runs[tidemark]), history.Medians(o.runs[kafka])
		name := o.scenario
		for _, m := range rows(ours, theirs) {
			_, one := ours[m.Name]
			_, other := theirs[m.Name]
			if !one && !other || m.Detail && !details {
				continue
			}
			between, spread := "-", "-"
			if r, ok := history.Compare(o.runs[tidemark], o.runs[kafka], m.Name); ok {
				between, spread = times(r.Median), times(r.Least)+".."+times(r.Most)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, m.Name, m.Better(), number(ours, m.Name), number(theirs, m.Name), between, spread)
			name = ""
		}
	}
	name := "machine"
	for _, x := range l.list() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, x.Name, x.Better(), round(x.value))
		name = ""
	}
	return t.Flush()
}

// rows returns the metrics, each followed by those of its sizes.
func rows(ours, theirs figures) []history.Metric {
	var out []history.Metric
	for _, m := range history.Metrics {
		out = append(out, m)
		sizes := append(ours.Sizes(m.Name), theirs.Sizes(m.Name)...)
		slices.Sort(sizes)
		for _, n := range slices.Compact(sizes) {
			at := m
			at.Name = history.At(m.Name, n)
			out = append(out, at)
		}
	}
	return out
}

func number(f figures, name string) string {
	if v, ok := f[name]; ok {
		return round(v)
	}
	return "-"
}

// round keeps three digits or so.
func round(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// times tells a ratio.
func times(v float64) string {
	if v < 0.1 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
