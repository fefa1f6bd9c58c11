package main

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/bench/ceiling"
	"github.com/tidemark-log/tidemark/bench/history"
	"github.com/tidemark-log/tidemark/bench/load"
	"github.com/tidemark-log/tidemark/bench/proc"
	"github.com/tidemark-log/tidemark/bench/rig"
)

func TestSystemsTakeTurnsToBeFirst(t *testing.T) {
	if a, b := order(0, "", false), order(1, "", false); !slices.Equal(a, []string{kafka, tidemark}) || !slices.Equal(b, []string{tidemark, kafka}) {
		t.Errorf("%v, then %v", a, b)
	}
	if got := order(1, kafka, true); !slices.Equal(got, []string{kafka}) {
		t.Errorf("%v", got)
	}
	if a, b := order(0, "", true), order(1, "", true); !slices.Equal(a, []string{kafka, tidemark, least}) || !slices.Equal(b, []string{least, tidemark, kafka}) {
		t.Errorf("%v, then %v", a, b)
	}
}

func TestTheTableShowsMediansAndRatios(t *testing.T) {
	var b strings.Builder
	err := printTable(&b, []outcome{
		{"produce", map[string][]figures{tidemark: {{"mb_per_second": 200, "cores": 0.5}, {"mb_per_second": 220, "cores": 0.5}}, kafka: {{"mb_per_second": 100, "cores": 2}, {"mb_per_second": 55, "cores": 1}}}},
		{"idle", map[string][]figures{tidemark: {{"cores": 0.03, "rss_mb": 60}}}},
	}, limits{
		ceiling.Ceilings{Loopback: 4321, Write: 2000, Sendfile: 3.5, Copy: 500},
		ceiling.Floors{ProduceRF1: 0.5, ProduceRF3: 1.9, Sendfile: 0.2, Mapped: 0.31, Copied: 0.42, Memory: 0.15},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := `
scenario  figure                               better  tidemark  kafka  ratio  of pairs
produce   mb_per_second                        higher  210       77.5   3.00   2.00..4.00
          cores                                lower   0.500     1.500  0.38   0.25..0.50
idle      cores                                lower   0.030     -      -      -
machine   loopback_mb_per_second               higher  4321
          write_mb_per_second                  higher  2000
          sendfile_mb_per_second               higher  3.500
          copy_mb_per_second                   higher  500
          floor_produce_rf1_cpu_s_per_gb       lower   0.500
          floor_produce_rf3_cpu_s_per_gb       lower   1.900
          floor_consume_sendfile_cpu_s_per_gb  lower   0.200
          floor_consume_mmap_cpu_s_per_gb      lower   0.310
          floor_consume_pread_cpu_s_per_gb     lower   0.420
          floor_consume_memory_cpu_s_per_gb    lower   0.150
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
}

// A figure that the table does not know would be measured and never seen.
func TestEveryFigureOfAClusterIsInTheTable(t *testing.T) {
	var names []string
	for _, m := range history.Metrics {
		names = append(names, m.Name)
	}
	f := costs(proc.Sample{}, time.Second)
	perWork(f, 1, 1, 1)
	latencies(f, "produce", &load.Latency{})
	latencies(f, "end_to_end", &load.Latency{})
	for name := range f {
		if !slices.Contains(names, name) {
			t.Errorf("%s is in no row", name)
		}
	}
}

func TestWorkIsDividedByWhatWasMoved(t *testing.T) {
	f := figures{}
	perWork(f, 2*time.Second, 1000, 500_000_000)
	if f["cpu_us_per_record"] != 2000 || f["cpu_s_per_gb"] != 4 {
		t.Errorf("%v", f)
	}
}

// What the client of one run took from a system, it took from the least broker of the
// same pair.
func TestTheLeastBrokerIsComparedPairByPair(t *testing.T) {
	o := outcome{"produce", map[string][]figures{
		tidemark: {{"cpu_s_per_gb": 3}, {"cpu_s_per_gb": 6}, {"cpu_s_per_gb": 1}}, kafka: {{"cpu_s_per_gb": 8}, {"cpu_s_per_gb": 12}},
		least: {{"cpu_s_per_gb": 2}, {"cpu_s_per_gb": 4}},
	}}
	for pair := range 3 {
		o.besideLeast(pair)
	}
	for i, want := range []float64{1.5, 1.5, 0} {
		if got := o.runs[tidemark][i]["times_least"]; got != want {
			t.Errorf("pair %d: %v", i, got)
		}
	}
	if got := o.runs[kafka][0]["times_least"]; got != 4 {
		t.Errorf("%v", got)
	}
	o.runs[kafka] = []figures{{}}
	if o.besideLeast(0); len(o.runs[kafka][0]) > 0 {
		t.Errorf("a run without a cost has %v", o.runs[kafka][0])
	}
}

func TestScenariosHaveNamesOfTheirOwnAndThePeakIsOne(t *testing.T) {
	seen := map[string]bool{}
	for _, sc := range scenarios {
		if seen[sc.name] || sc.about == "" || sc.nodes == 0 {
			t.Errorf("%+v", sc)
		}
		seen[sc.name] = true
	}
	if !seen[peakOf] {
		t.Errorf("%s is not in the table", peakOf)
	}
}

func TestScenariosAreChosenByExpression(t *testing.T) {
	s := settings{names: "^latency-", only: kafka}
	if _, err := choose(s); err == nil {
		t.Error("nothing starts clusters")
	}
	s.starter.Command = []string{"kafka"}
	if got, err := choose(s); err != nil || len(got) != 5 {
		t.Errorf("%v, %v", got, err)
	}
	for _, names := range []string{"nothing", "("} {
		s.names = names
		if _, err := choose(s); err == nil {
			t.Errorf("%q was accepted", names)
		}
	}
}

// A scenario that the least broker cannot do would measure Apache Kafka first, or
// nothing.
func TestTheLeastBrokerAloneRunsOnlyWhatItCanDo(t *testing.T) {
	s := settings{names: ".", only: least}
	s.starter.Command = []string{"kafka"}
	got, err := choose(s)
	if err != nil || len(got) != 5 {
		t.Errorf("%v, %v", got, err)
	}
	for _, sc := range got {
		if sc.needs&leastToo == 0 {
			t.Errorf("%s was chosen", sc.name)
		}
	}
	s.names = "^latency-half-peak$"
	if got, err := choose(s); err == nil || !strings.Contains(err.Error(), "latency-half-peak") {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTheHistoryGrowsByLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.jsonl")
	s := settings{history: file, megs: 10, duration: time.Second}
	o := outcome{"produce", map[string][]figures{tidemark: {{"cores": 1}, {"cores": 3}}, kafka: {{"cores": 4}}}}
	for range 2 {
		if err := s.remember(o, history.Machine{CPUs: 2}, "abc"); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	var e history.Entry
	if err := json.Unmarshal([]byte(lines[2]), &e); err != nil || len(lines) != 4 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if e.System != tidemark || e.Commit != "abc" || e.Figures["cores"] != 2 || len(e.Runs) != 2 || e.Machine.CPUs != 2 || e.MB != 10 {
		t.Errorf("%+v", e)
	}
}

// A run that was told to measure something else must not pass for one that was not.
func TestTheHistoryTellsWhatWasAskedForBesides(t *testing.T) {
	flags := flag.NewFlagSet("scenarios", flag.ContinueOnError)
	var set list
	flags.Var(&set, "set", "")
	flags.Int("pairs", 5, "")
	flags.Int("catch-up-mb", 2000, "")
	flags.Int("kills", 4, "")
	if err := flags.Parse([]string{"-pairs", "3", "-set", "a=b", "-catch-up-mb", "10000", "-set", "c=d"}); err != nil {
		t.Fatal(err)
	}
	if got := given(flags); got != "-catch-up-mb 10000 -set a=b,c=d" {
		t.Errorf("%q", got)
	}
}

func TestFieldsOfProcAreFoundByName(t *testing.T) {
	if got := field("processor\t: 0\nmodel name\t: Fast CPU: 2\nmodel name\t: other\n", "model name"); got != "Fast CPU: 2" {
		t.Errorf("%q", got)
	}
}

func TestVictimsLeadAndAreTheControllerOrNot(t *testing.T) {
	led := map[int][]int32{1: {0}, 2: {1, 4}, 3: {2}}
	for _, c := range []struct {
		controller int
		too        bool
		want       int
	}{{1, false, 2}, {1, true, 1}, {3, false, 1}, {3, true, 3}} {
		if got := victim(led, c.controller, c.too); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if got := victim(map[int][]int32{1: {0}, 3: {1}}, 2, true); got != 0 {
		t.Errorf("%d leads nothing", got)
	}
	if got := victim(map[int][]int32{3: {0, 1}}, 2, false); got != 3 {
		t.Errorf("%d, and 3 leads all", got)
	}
}

func TestNumbersThatMeanNothingAreRefused(t *testing.T) {
	sound := settings{pairs: 1, megs: 1, kills: 1, recoveryMB: 1, catchUpMB: 1, starter: rig.Starter{Port: 29092}}
	if err := sound.check(); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*settings){
		"no pairs": func(s *settings) { s.pairs = 0 }, "fewer than no bytes": func(s *settings) { s.megs = -5 },
		"no kills": func(s *settings) { s.kills = 0 }, "no port": func(s *settings) { s.starter.Port = 99_999_999 },
		"nothing to recover": func(s *settings) { s.recoveryMB = 0 }, "nothing to catch up with": func(s *settings) { s.catchUpMB = 0 },
	} {
		s := sound
		if change(&s); s.check() == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if sound.check("latency-1000") == nil {
		t.Error("a word without a flag is accepted, and everything would run")
	}
}

func TestSmallRatiosKeepTheirDigits(t *testing.T) {
	for v, want := range map[float64]string{3.14159: "3.14", 0.5: "0.50", 0.00271: "0.0027"} {
		if got := times(v); got != want {
			t.Errorf("%v: %s", v, got)
		}
	}
}

func TestCostsAreComparedWithTheFloorOfTheirScenario(t *testing.T) {
	for scenario, want := range map[string][]ceiling.Way{
		"produce-1k-rf1-acks-1": {ceiling.ProduceRF1}, "produce-100-rf3-acks-all": {ceiling.ProduceRF3},
		"consume-hot": {ceiling.Sendfile, ceiling.Mapped}, "consume-cold": {ceiling.Sendfile, ceiling.Mapped}, "fan-out-8": nil, "catch-up": nil,
	} {
		if got := floorOf(scenario); !slices.Equal(got, want) {
			t.Errorf("%s: %v", scenario, got)
		}
	}
	f := figures{"cpu_s_per_gb": 4, "mb_per_second": 200}
	if beside(0.5, f); f["times_floor"] != 8 || f["floor_cpu_s_per_gb"] != 0.5 {
		t.Errorf("%v", f)
	}
	none := figures{"cpu_s_per_gb": 4}
	if beside(0, none); len(none) != 1 {
		t.Errorf("without a floor: %v", none)
	}
}

// The floor of a scenario is measured by itself, as the machine is.
func TestTheFloorOfAPairIsMeasured(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	s := settings{megs: 2}
	s.starter.Dir = t.TempDir()
	for scenario, has := range map[string]bool{"produce-1k-rf3-acks-all": true, "consume-hot": true, "failover": false} {
		if v, err := s.floor(scenario); err != nil || has != (v > 0) || math.IsInf(v, 0) {
			t.Errorf("%s: %v, %v", scenario, v, err)
		}
	}
}

// A scenario at several sizes has rows in the order of the sizes, below the figure.
func TestSizesHaveRowsInTheirOrder(t *testing.T) {
	ours, theirs := figures{}, figures{}
	keep(ours, figures{"cores": 1, "seconds": 3}, 1000)
	keep(ours, figures{"cores": 2}, 20)
	keep(theirs, figures{"cores": 2}, 300)
	var got []string
	for _, m := range rows(ours, theirs) {
		if strings.HasPrefix(m.Name, "cores") || strings.HasPrefix(m.Name, "seconds") {
			got = append(got, m.Name)
		}
	}
	if !slices.Equal(got, []string{"seconds", "cores", "cores@20", "cores@300", "cores@1000"}) {
		t.Errorf("%v", got)
	}
}

func TestFiguresOfSizesAreMetrics(t *testing.T) {
	for _, name := range sized {
		if !slices.ContainsFunc(history.Metrics, func(m history.Metric) bool { return m.Name == name }) {
			t.Errorf("%s is in no row", name)
		}
	}
}

func TestWhereTheHistoryLiesChangesNoCommit(t *testing.T) {
	inside := commit("history.jsonl")
	for _, elsewhere := range []string{filepath.Join(t.TempDir(), "history.jsonl"), ""} {
		if got := commit(elsewhere); got != inside {
			t.Errorf("with its history at %q, the commit is %q, not %q", elsewhere, got, inside)
		}
	}
}
