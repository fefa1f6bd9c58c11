package sim

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Tally adds up a sweep.
type Tally struct {
	want    uint64
	began   time.Time
	drawn   time.Time
	seeds   uint64
	failed  int
	unclean int
	steps   uint64
	lasted  time.Duration
	records int
	faults  map[Verb]int
}

// NewTally returns the tally of a sweep of so many seeds.
func NewTally(want uint64) *Tally {
	return &Tally{want: want, began: time.Now(), faults: map[Verb]int{}}
}

// Add takes one seed in.
func (t *Tally) Add(l Line) {
	t.seeds++
	if l.Error != "" {
		t.failed++
	}
	if !l.Clean {
		t.unclean++
	}
	t.steps += l.Steps
	t.lasted += time.Duration(l.LastedMs) * time.Millisecond
	t.records += l.Records
	for v, n := range l.Faults {
		t.faults[v] += n
	}
}

// Failed is how many seeds failed so far.
func (t *Tally) Failed() int { return t.failed }

// Seeds is how many seeds ran so far.
func (t *Tally) Seeds() uint64 { return t.seeds }

// progressEvery is how often Progress says something: often to a person, rarely
// to a file.
const (
	progressDrawn  = 200 * time.Millisecond
	progressLogged = 30 * time.Second
)

// Progress tells how far the sweep is, now and then.
func (t *Tally) Progress(w io.Writer, terminal bool) {
	now := time.Now()
	every, end := progressLogged, "\n"
	if terminal {
		every, end = progressDrawn, "\r"
	}
	if now.Sub(t.drawn) < every && t.seeds < t.want {
		return
	}
	t.drawn = now
	took := now.Sub(t.began)
	left := time.Duration(float64(took) / float64(t.seeds) * float64(t.want-t.seeds))
	fmt.Fprintf(w, "%d of %d seeds, %d failed, %v gone, about %v left%s", t.seeds, t.want, t.failed, took.Round(time.Second), left.Round(time.Second), end)
}

// Write prints the sums.
func (t *Tally) Write(w io.Writer) {
	took := time.Since(t.began)
	fmt.Fprintf(w, "%d seeds in %v: %d failed, %d with losses beyond what min.insync.replicas protects from\n",
		t.seeds, took.Round(time.Second), t.failed, t.unclean)
	fmt.Fprintf(w, "%d steps, %v of cluster time, %d records acknowledged with acks=all\nfaults:", t.steps, t.lasted.Round(time.Second), t.records)
	for _, v := range slices.Sorted(maps.Keys(t.faults)) {
		fmt.Fprintf(w, " %s %d", v, t.faults[v])
	}
	fmt.Fprintln(w)
}
