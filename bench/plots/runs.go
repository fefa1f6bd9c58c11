package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-log/tidemark/bench/history"
)

// told are figures that the table of all runs has besides those that are drawn.
var told = []shown{{"apache-", "cpu_s_per_gb"}, {"librdkafka-", "cpu_s_per_gb"}, {"latency-", "produce_p999_ms"}, {"latency-", "end_to_end_p999_ms"}, {"", "times_floor"}, {"", "times_least"}, {"", "times_copy"}, {"", "peak_rss_mb"}}

// compare is one run of a scenario: theirs has no runs if it was of Tidemark alone.
type compare struct{ ours, theirs history.Entry }

// comparisons finds the lines that belong together: of one scenario and commit, the
// other system's after ours.
func comparisons(all []history.Entry) []compare {
	var out []compare
	for i, e := range all {
		if e.System != history.Tidemark {
			continue
		}
		c := compare{ours: e}
		for _, next := range all[i+1:] {
			if next.Scenario != e.Scenario {
				continue
			}
			if next.System == history.Kafka && next.Commit == e.Commit {
				c.theirs = next
			}
			break
		}
		out = append(out, c)
	}
	return out
}

// everyRun returns all runs on record as tables in Markdown, one for each scenario.
func everyRun(all []history.Entry) string {
	by := map[string][]compare{}
	var names []string
	for _, c := range comparisons(all) {
		name := c.ours.Scenario
		if by[name] == nil {
			names = append(names, name)
		}
		by[name] = append(by[name], c)
	}
	slices.Sort(names)
	var out strings.Builder
	out.WriteString("# Every run of the history\n\nMade from `bench/history.jsonl` by `make plots`. Each cell has the median of Tidemark, that of Apache Kafka, and in brackets the\n" +
		"median, the least and the most of the ratios of the pairs. [performance.md](../performance.md) says what the figures are.\n")
	for _, name := range names {
		runs := by[name]
		slices.SortStableFunc(runs, func(a, b compare) int { return a.ours.Date.Compare(b.ours.Date) })
		table(&out, name, runs)
	}
	return out.String()
}

// table writes the runs of one scenario, with a column for each figure that they have.
func table(out *strings.Builder, name string, runs []compare) {
	var columns []string
	for _, s := range slices.Concat(speed, cost, told) {
		has := slices.ContainsFunc(runs, func(c compare) bool { _, ok := c.ours.Figures[s.figure]; return ok })
		if has && strings.HasPrefix(name, s.scenarios) && !slices.Contains(columns, s.figure) {
			columns = append(columns, s.figure)
		}
	}
	for _, figure := range []string{"cores", "produce_p99_ms"} { // of what was measured at several sizes
		for _, n := range runs[len(runs)-1].ours.Figures.Sizes(figure) {
			columns = append(columns, history.At(figure, n))
		}
	}
	fmt.Fprintf(out, "\n## %s\n\n| when | commit | machine | pairs | flags |", name)
	for _, c := range columns {
		fmt.Fprintf(out, " %s |", strings.ReplaceAll(c, "_", " "))
	}
	fmt.Fprintf(out, "\n|%s\n", strings.Repeat("---|", 5+len(columns)))
	for _, c := range runs {
		m := c.ours.Machine
		fmt.Fprintf(out, "| %s | %.7s | %d CPUs, %s, %s | %d | %s |", c.ours.Date.UTC().Format(minute), c.ours.Commit, m.CPUs, m.Model, m.Kernel, len(c.ours.Runs),
			cmp.Or(c.ours.With, "-"))
		for _, figure := range columns {
			fmt.Fprintf(out, " %s |", c.cell(figure))
		}
		out.WriteString("\n")
	}
}

// cell tells one figure of a run.
func (c compare) cell(figure string) string {
	ours, ok := c.ours.Figures[figure]
	if !ok {
		return "-"
	}
	text := short(ours)
	if theirs, ok := c.theirs.Figures[figure]; ok {
		text += ", " + short(theirs)
	}
	if r, ok := history.Compare(c.ours.Runs, c.theirs.Runs, figure); ok {
		text += fmt.Sprintf(" (%.3g, %.3g to %.3g)", r.Median, r.Least, r.Most)
	}
	return text
}

// short keeps three digits.
func short(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	return number(v)
}
