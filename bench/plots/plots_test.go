package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/bench/history"
)

// count parses a drawing and returns how often each element occurs.
func count(t *testing.T, svg string) map[string]int {
	t.Helper()
	out, d := map[string]int{}, xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			out[e.Name.Local]++
		}
	}
}

func TestADrawingIsWellFormed(t *testing.T) {
	d := newDrawing(100, 50)
	d.text(1, 2, "title", "start", "a < b & c")
	d.bar(1, 2, 3, 4, "kafka")
	d.path([][2]float64{{1, 2}, {3, 4.25}}, "tidemark", "")
	svg := d.String()
	if got := count(t, svg); got["svg"] != 1 || got["text"] != 1 || got["rect"] != 1 || got["polyline"] != 1 {
		t.Errorf("%v", got)
	}
	for _, part := range []string{"a &lt; b &amp; c", `points="1.0,2.0 3.0,4.2"`, "prefers-color-scheme:dark"} {
		if !strings.Contains(svg, part) {
			t.Errorf("no %s in\n%s", part, svg)
		}
	}
}

func TestAnAxisBeginsAndEndsAtTicksAroundItsValues(t *testing.T) {
	for _, c := range []struct {
		values, ticks []float64
	}{
		{[]float64{0.3, 40}, []float64{0.2, 0.5, 1, 2, 5, 10, 20, 50}},
		{[]float64{0, 3, 4}, []float64{2, 5}},
		{[]float64{1, 10_000}, []float64{1, 10, 100, 1000, 10_000}},
		{[]float64{1}, []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}},
		{nil, []float64{0.1, 0.2, 0.5, 1, 2, 5, 10}},
	} {
		s := logScale(c.values, 0, 100)
		got := s.ticks()
		if !slices.EqualFunc(got, c.ticks, func(a, b float64) bool { return math.Abs(a/b-1) < 1e-9 }) {
			t.Errorf("%v: %v", c.values, got)
		}
	}
	s := logScale([]float64{1, 100}, 400, 0)
	if s.at(1) != 400 || s.at(100) != 0 || math.Abs(s.at(10)-200) > 1e-9 || s.at(0) != 400 {
		t.Errorf("%v, %v, %v, %v", s.at(1), s.at(10), s.at(100), s.at(0))
	}
}

func TestNumbersAreWrittenAsPeopleDo(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 3.14159: "3.142", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s", v, got)
		}
	}
}

// compared are lines of a scenario on both systems with the same commit.
func compared(scenario string, ours, theirs history.Figures) []history.Entry {
	of := func(system string, f history.Figures) history.Entry {
		return history.Entry{Scenario: scenario, System: system, Commit: "c", Date: time.Unix(1e9, 0), Figures: f, Runs: []history.Figures{f}}
	}
	return []history.Entry{of(history.Kafka, theirs), of(history.Tidemark, ours)}
}

func TestTheNewestComparisonCounts(t *testing.T) {
	old, last := compared("a", history.Figures{"x": 1}, history.Figures{"x": 1}), compared("a", history.Figures{"x": 5}, history.Figures{"x": 6})
	alone, mixed := compared("b", history.Figures{"x": 1}, nil), compared("d", history.Figures{"x": 1}, history.Figures{"x": 1})
	mixed[0].Commit = "other"
	got := newest(slices.Concat(old, last, alone[1:], mixed))
	if len(got) != 1 || got["a"].ours.Figures["x"] != 5 || got["a"].theirs.Figures["x"] != 6 {
		t.Errorf("%+v", got)
	}
}

// Half the seconds are twice as good, and so are twice the megabytes.
func TestRatiosAreLargerWhereTidemarkIsBetter(t *testing.T) {
	m := newest(slices.Concat(
		compared("produce-x", history.Figures{"mb_per_second": 200}, history.Figures{"mb_per_second": 100}),
		compared("recovery", history.Figures{"seconds": 2}, history.Figures{"seconds": 4}),
		compared("catch-up", history.Figures{"seconds": 8}, history.Figures{"seconds": 4}),
	))
	got := ratios(m, speed)
	want := []row{{"produce-x, mb per second (c)", 2, 2, 2}, {"catch-up, seconds (c)", 0.5, 0.5, 0.5}, {"recovery, seconds (c)", 2, 2, 2}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := count(t, bars("t", "b", got)); got["rect"] != 3 {
		t.Errorf("%v", got)
	}
}

// Lines of one chart are of one machine, and bars say where they come from.
func TestPointsOfAnotherMachineAreNotJoined(t *testing.T) {
	on := func(model string, at int64, entries []history.Entry) []history.Entry {
		for i := range entries {
			entries[i].Machine, entries[i].Date = history.Machine{CPUs: 2, Model: model}, time.Unix(at, 0).UTC()
		}
		return entries
	}
	f := history.Figures{"records_per_second": 1000, "produce_p50_ms": 1}
	m := newest(slices.Concat(on("old", 0, compared("latency-a", f, f)), on("new", 86400, compared("latency-b", f, f)), on("new", 60, compared("latency-c", f, f))))
	if got := percentiles(latestMachine(m), "produce"); len(got) != 2 || len(got[0].points) != 2 {
		t.Errorf("%+v", got)
	}
	if got, want := under(m), "1970-01-01 00:00 to 1970-01-02 00:00, 2 CPUs of new and 2 CPUs of old."; !strings.HasSuffix(got, want) {
		t.Errorf("%s", got)
	}
}

func TestEveryFigureThatIsShownIsMeasured(t *testing.T) {
	for _, s := range slices.Concat(speed, cost) {
		if !slices.ContainsFunc(history.Metrics, func(m history.Metric) bool { return m.Name == s.figure }) {
			t.Errorf("%s of %s is no metric", s.figure, s.scenarios)
		}
	}
}

// No run is left out of the table, whatever it says for whom.
func TestEveryRunIsInTheTable(t *testing.T) {
	first := compared("produce-x", history.Figures{"mb_per_second": 50, "cpu_s_per_gb": 2}, history.Figures{"mb_per_second": 100, "cpu_s_per_gb": 1})
	second := compared("produce-x", history.Figures{"mb_per_second": 300}, history.Figures{"mb_per_second": 100})
	sizes := compared("scale-idle", history.Figures{"cores@10": 1, "cores@100": 2}, history.Figures{"cores@10": 4, "cores@100": 8})
	alone := compared("catch-up", history.Figures{"seconds": 8, "times_copy": 1.25}, nil)[1:]
	for _, e := range [][]history.Entry{first, second, sizes} {
		slices.Reverse(e) // as they are written: ours first
	}
	second[0].Date = second[0].Date.Add(time.Hour)
	got := everyRun(slices.Concat(second, alone, sizes, tuned(first)))
	for _, part := range []string{
		"| cores@10 | cores@100 |", "| 1, 4 (0.25, 0.25 to 0.25) | 2, 8 (0.25, 0.25 to 0.25) |",
		"## catch-up\n\n| when | commit | machine | pairs | flags | seconds | times copy |", "| 1 | - | 8 | 1.25 |",
		"| 1 | -kills 2 -set a=b | 50, 100 (0.5, 0.5 to 0.5) | 2, 1 (2, 2 to 2) |\n| 2001-09-09 02:46 | c |", "| 1 | - | 300, 100 (3, 3 to 3) | - |",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in\n%s", part, got)
		}
	}
}

// tuned marks entries as those of brokers that were configured: they are not drawn.
func tuned(entries []history.Entry) []history.Entry {
	for i := range entries {
		entries[i].With = "-kills 2 -set a=b"
	}
	return entries
}

func TestAHistoryIsDrawn(t *testing.T) {
	dir := t.TempDir()
	file, out := filepath.Join(dir, "history.jsonl"), filepath.Join(dir, "a", "b")
	latency := func(rate, ms float64) history.Figures {
		return history.Figures{"records_per_second": rate, "produce_p50_ms": ms, "produce_p99_ms": 2 * ms, "produce_p999_ms": 3 * ms, "cores": 1}
	}
	idle := func(x float64) history.Figures {
		return history.Figures{"cores@0": x, "cores@100": 2 * x, "cores@10000": 3 * x}
	}
	for _, e := range [][]history.Entry{
		compared("latency-1000", latency(1000, 1), latency(999, 2)), compared("latency-20000", latency(20000, 2), latency(19999, 4)),
		compared("scale-idle", idle(0.01), idle(0.1)), tuned(compared("latency-1000", latency(1, 1), latency(1, 1))),
	} {
		if err := history.Append(file, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(file, out); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string]int{"speed": 0, "cost": 0, "latency-produce": 12, "scale-idle": 4} {
		raw, err := os.ReadFile(filepath.Join(out, name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if got := count(t, string(raw)); got["polyline"] != lines { // each line and its sample beside the chart
			t.Errorf("%s: %v", name, got)
		}
	}
	if made, _ := os.ReadDir(out); len(made) != 5 { // and the table
		t.Errorf("%v", made)
	}
	if err := run(filepath.Join(dir, "none"), out); err == nil {
		t.Error("there is no history")
	}
}
