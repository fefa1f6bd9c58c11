package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
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
		ours, theirs := medians(o.runs[tidemark]), medians(o.runs[kafka])
		name := o.scenario
		for _, m := range metrics {
			_, one := ours[m.name]
			_, other := theirs[m.name]
			if !one && !other || m.detail && !details {
				continue
			}
			between, spread := "-", "-"
			if r, ok := compare(o.runs[tidemark], o.runs[kafka], m.name); ok {
				between, spread = times(r.median), times(r.least)+".."+times(r.most)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, m.name, m.better(), number(ours, m.name), number(theirs, m.name), between, spread)
			name = ""
		}
	}
	name := "machine"
	for _, x := range l.list() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, x.name, x.better(), round(x.value))
		name = ""
	}
	return t.Flush()
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
