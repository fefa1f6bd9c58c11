// Command plots draws what bench/scenarios measured as SVG files for the docs, beside a
// table of every run.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/bench/history"
)

func main() {
	file := flag.String("history", "bench/history.jsonl", "what was measured; of each scenario the newest lines count")
	dir := flag.String("out", "docs/performance", "where the drawings are written")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "plots: %q is no flag: name a history with -history and a folder with -out\n", flag.Arg(0))
		os.Exit(1)
	}
	if err := run(*file, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

func run(file, dir string) error {
	all, err := history.Read(file)
	if err != nil {
		return err
	}
	drawings := draw(newest(all))
	if len(drawings) == 0 {
		return errors.New("no scenario was measured on both systems")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string]string{"runs.md": everyRun(all)}
	for name, svg := range drawings {
		files[name+".svg"] = svg
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}

// both is one scenario on the two systems.
type both struct{ ours, theirs history.Entry }

// special are flags that make another comparison of a scenario than the one of its name.
var special = []string{"-set ", "-warm ", "-dir ", "-disk ", "-kills ", "-recovery-mb "}

// newest returns the last comparison of each scenario: lines of the same commit, of
// brokers as they come.
func newest(all []history.Entry) map[string]both {
	out := map[string]both{}
	for _, e := range all {
		if slices.ContainsFunc(special, func(flag string) bool { return strings.Contains(e.With, flag) }) {
			continue
		}
		b := out[e.Scenario]
		switch e.System {
		case history.Tidemark:
			b.ours = e
		case history.Kafka:
			b.theirs = e
		}
		out[e.Scenario] = b
	}
	maps.DeleteFunc(out, func(_ string, b both) bool {
		return len(b.ours.Runs) == 0 || len(b.theirs.Runs) == 0 || b.ours.Commit != b.theirs.Commit
	})
	return out
}

// draw returns the drawings that there is something for, by name.
func draw(measured map[string]both) map[string]string {
	out := map[string]string{}
	below := under(measured)
	if rows := ratios(measured, speed); len(rows) > 0 {
		out["speed"] = bars("How many times faster than Apache Kafka 4.4", below, rows)
	}
	if rows := ratios(measured, cost); len(rows) > 0 {
		out["cost"] = bars("How many times less processor time, or memory, than Apache Kafka 4.4", below, rows)
	}
	latest := latestMachine(measured)
	for _, of := range []struct{ name, title string }{{"produce", "from the send to the acknowledgement"}, {"end_to_end", "from the send to the reader"}} {
		if list := percentiles(latest, of.name); len(list) > 0 {
			out["latency-"+strings.ReplaceAll(of.name, "_", "-")] = lines(chart{title: "Latency " + of.title, x: "records of 1 KiB a second", y: "ms", series: list})
		}
	}
	for _, c := range []struct {
		scenario, title, x string
		steps              bool
	}{
		{"scale-idle", "Idle partitions of three replicas on three nodes", "partitions", true},
		{"scale-connections", "5,000 records a second, by producers that send them", "producers", false},
		{"scale-groups", "5,000 records a second, beside consumer groups that committed an offset", "groups", true},
		{"scale-mb", "Records of 1 KiB, acks=all, three replicas", "MB/s", false},
	} {
		if list := sized(measured[c.scenario]); len(list) > 0 {
			out[c.scenario] = lines(chart{title: c.title, x: c.x, y: "cores", steps: c.steps, series: list})
		}
	}
	return out
}

// under says where the figures come from: when they were measured, and on what.
func under(measured map[string]both) string {
	var on []string
	var first, last time.Time
	for _, b := range measured {
		if at := b.ours.Date; first.IsZero() || at.Before(first) {
			first = at
		}
		if at := b.ours.Date; at.After(last) {
			last = at
		}
		on = append(on, fmt.Sprintf("%d CPUs of %s", b.ours.Machine.CPUs, b.ours.Machine.Model))
	}
	slices.Sort(on)
	return fmt.Sprintf("Medians of alternating pairs, thin lines their range; each with its commit. %s to %s, %s.",
		first.Format(minute), last.Format(minute), strings.Join(slices.Compact(on), " and "))
}

const minute = "2006-01-02 15:04"

// shown says which figure stands for the scenarios whose names start so.
type shown struct{ scenarios, figure string }

var (
	speed = []shown{
		{"produce-", "mb_per_second"}, {"consume-", "read_mb_per_second"}, {"fan-out-", "read_mb_per_second"}, {"latency-", "produce_p99_ms"},
		{"latency-", "end_to_end_p99_ms"}, {"connections-", "records_per_second"}, {"partitions-", "mb_per_second"}, {"fsync-peak", "mb_per_second"}, {"fsync-100", "records_per_second"}, {"apache-producer-", "mb_per_second"},
		{"apache-consumer-", "read_mb_per_second"}, {"librdkafka-producer-", "mb_per_second"}, {"librdkafka-consumer-", "read_mb_per_second"},
		{"catch-up", "seconds"}, {"start-up-", "seconds"}, {"failover", "failover_ms"}, {"failover", "failover_controller_ms"}, {"recovery", "seconds"},
	}
	cost = []shown{
		{"produce-", "cpu_s_per_gb"}, {"consume-", "cpu_s_per_gb"}, {"fan-out-", "cpu_s_per_gb"}, {"latency-", "cores"},
		{"connections-", "cpu_us_per_record"}, {"partitions-", "cpu_s_per_gb"}, {"fsync-", "cpu_us_per_record"}, {"idle-", "cores"}, {"idle-", "peak_rss_mb"}, {"catch-up", "cpu_s_per_gb"}, {"recovery", "cpu_seconds"},
	}
)

// ratios returns a row for each scenario and figure, larger where Tidemark is
// better.
func ratios(measured map[string]both, list []shown) []row {
	var out []row
	for _, s := range list {
		m := history.Metrics[slices.IndexFunc(history.Metrics, func(m history.Metric) bool { return m.Name == s.figure })]
		for _, name := range slices.Sorted(maps.Keys(measured)) {
			r, ok := history.Compare(measured[name].ours.Runs, measured[name].theirs.Runs, s.figure)
			if !ok || r.Least <= 0 || !strings.HasPrefix(name, s.scenarios) {
				continue
			}
			label := fmt.Sprintf("%s, %s (%.7s)", name, strings.ReplaceAll(s.figure, "_", " "), measured[name].ours.Commit)
			if m.Higher {
				out = append(out, row{label, r.Median, r.Least, r.Most})
			} else {
				out = append(out, row{label, 1 / r.Median, 1 / r.Most, 1 / r.Least})
			}
		}
	}
	return out
}

// latestMachine leaves the scenarios at a rate that were measured on the machine of the
// last of them: points of one line have to be of one machine.
func latestMachine(measured map[string]both) map[string]both {
	var last history.Entry
	for name, b := range measured {
		if strings.HasPrefix(name, "latency-") && b.ours.Date.After(last.Date) {
			last = b.ours
		}
	}
	out := maps.Clone(measured)
	maps.DeleteFunc(out, func(_ string, b both) bool {
		return b.ours.Machine.Model != last.Machine.Model || b.ours.Machine.Kernel != last.Machine.Kernel
	})
	return out
}

// percentiles returns the latencies of all scenarios at a rate, by the rate that
// each system had.
func percentiles(measured map[string]both, of string) []series {
	var out []series
	for _, p := range []struct{ name, dash string }{{"p50", ""}, {"p99", "7 4"}, {"p999", "2 3"}} {
		ours := series{label: "Tidemark " + p.name, class: history.Tidemark, dash: p.dash}
		theirs := series{label: "Kafka " + p.name, class: history.Kafka, dash: p.dash}
		for name, b := range measured {
			if strings.HasPrefix(name, "latency-") {
				ours.take(b.ours.Figures, of+"_"+p.name+"_ms")
				theirs.take(b.theirs.Figures, of+"_"+p.name+"_ms")
			}
		}
		for _, s := range []series{ours, theirs} {
			if len(s.points) > 0 {
				slices.SortFunc(s.points, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
				out = append(out, s)
			}
		}
	}
	return out
}

func (s *series) take(f history.Figures, name string) {
	rate, ok := f["records_per_second"]
	v, also := f[name]
	if ok && also {
		s.points = append(s.points, [2]float64{rate, v})
	}
}

// sized returns the cores of both systems by size.
func sized(b both) []series {
	var out []series
	for _, s := range []struct {
		label, class string
		of           history.Figures
	}{{"Tidemark", history.Tidemark, b.ours.Figures}, {"Kafka", history.Kafka, b.theirs.Figures}} {
		line := series{label: s.label, class: s.class}
		for _, n := range s.of.Sizes("cores") {
			line.points = append(line.points, [2]float64{float64(n), s.of[history.At("cores", n)]})
		}
		if len(line.points) > 0 {
			out = append(out, line)
		}
	}
	return out
}
