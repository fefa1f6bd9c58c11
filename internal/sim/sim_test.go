package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// seeds is how many seeds the sweep of the tests runs.
var seeds = flag.Uint64("seeds", 200, "how many seeds TestSeeds runs")

func mustDraw(t *testing.T, seed uint64) *Plan {
	t.Helper()
	p, err := Draw(seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// traced runs a plan and returns its trace.
func traced(p *Plan) (*Result, string) {
	var b strings.Builder
	r := Run(p, Options{Trace: func(at time.Duration, who, what string) { fmt.Fprintln(&b, at, who, what) }})
	return r, b.String()
}

func TestTheSameSeedGoesTheSameWay(t *testing.T) {
	for seed := uint64(1); seed <= 12; seed++ {
		p := mustDraw(t, seed)
		first, trace := traced(p)
		if again, other := traced(p); again.Digest != first.Digest || other != trace {
			t.Fatalf("seed %d went two ways: %s", seed, firstDifference(trace, other))
		}
		if quiet := Run(p, Options{}); quiet.Digest != first.Digest {
			t.Fatalf("seed %d goes another way when nobody listens", seed)
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n%s\n%s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// worker runs seeds in another process, as the command line does.
const worker = "TIDEMARK_SIM_WORKER"

func TestMain(m *testing.M) {
	flag.Parse()
	var from, to uint64
	if n, _ := fmt.Sscanf(os.Getenv(worker), "%d %d", &from, &to); n == 2 {
		if err := Seeds(ctx, from, to, nil, Options{}, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every seed is run by a worker process, and some of them again here, after others.
func TestSeeds(t *testing.T) {
	var mu sync.Mutex
	digests := map[uint64]uint64{}
	tally := NewTally(*seeds)
	err := Sweep(ctx, 1, *seeds+1, runtime.NumCPU(), workerCommand, func(l Line) bool {
		mu.Lock()
		defer mu.Unlock()
		digests[l.Seed] = l.Digest
		tally.Add(l)
		if l.Error != "" {
			t.Errorf("seed %d: %s", l.Seed, l.Error)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(3); seed <= min(*seeds, 60); seed += 19 {
		if r := Run(mustDraw(t, seed), Options{}); r.Digest != digests[seed] {
			t.Errorf("seed %d went another way in another process", seed)
		}
	}
	var b bytes.Buffer
	tally.Write(&b)
	t.Log(b.String())
}

func TestScriptsSayWhatPlansAre(t *testing.T) {
	for seed := range uint64(300) {
		var b bytes.Buffer
		p := mustDraw(t, seed)
		p.WriteScript(&b)
		text := b.String()
		q, err := ReadScript(&b)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		var again bytes.Buffer
		q.WriteScript(&again)
		if again.String() != text {
			t.Fatalf("seed %d: read as\n%s\nand not as\n%s", seed, again.String(), text)
		}
	}
}

func TestScriptsThatSayNothingAreRefused(t *testing.T) {
	whole := "nodes 3 combined\ntopics partitions=1 replication=3 min.isr=2 unclean=false\nend 1s\n"
	for _, bad := range []string{"", "end 1s", whole + "at 1s dance 2", whole + "at 1s kill 4", whole + "at 1s cut 1 1",
		whole + "at 1s kill", whole + "at soon kill 1", whole + "nonsense", whole + "at 1s skew 1 -1000000",
		whole + "at -1s kill 1", whole + "at 1s loss 1 2 1000", whole + "workloads juggler", strings.Replace(whole, "replication=3", "replication=4", 1),
		strings.Replace(whole, "nodes 3", "nodes 100000", 1), strings.Replace(whole, "partitions=1", "partitions=1000000", 1),
		whole + "workloads" + strings.Repeat(" consumer", 1000), whole + "pace -1s", whole + "pace 0s", whole + "racks 1000000", whole + "fetchers 1000000", whole + "fetchers -1",
		strings.Replace(whole, "unclean=false", "unclean=maybe", 1)} {
		if _, err := ReadScript(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken for a plan", bad)
		}
	}
	if _, err := ReadScript(strings.NewReader(whole)); err != nil {
		t.Error(err)
	}
}

// Each script in testdata is a plan that failed once; its head says why.
func TestWhatFailedOnceHolds(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ReadScript(file)
		file.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r := Run(p, Options{}); r.Err != nil {
			t.Errorf("%s: %v", name, r.Err)
		}
	}
}
