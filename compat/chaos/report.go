package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
)

// report prints what happened and whether the run passed.
func (r *round) report(failed error) bool {
	if r.c != nil {
		r.panics()
	}
	fmt.Printf("\nchaos: SEED=%d, %s, %v after the start\n", r.seed, r.layout, time.Since(r.started).Round(time.Second))
	if r.n != nil {
		fmt.Println("faults:")
		for _, k := range slices.Sorted(maps.Keys(r.n.counts)) {
			fmt.Printf("  %-24s %d\n", k, r.n.counts[k])
		}
	}
	r.reportLedgers()
	silence, from := r.h.Silence()
	fmt.Printf("longest time without an acknowledgement with acks=all: %.1f s, after %.1f s\n", silence.Seconds(), from.Seconds())
	fmt.Printf("all replicas in sync %v after the last fault; %d replicas byte-equal\n", r.healed.Round(time.Millisecond), r.equal)
	if r.group != nil {
		fmt.Printf("group: %d commits that moved an offset; %d answers of a deposed coordinator\n", r.group.Count(), r.group.Stale)
		fmt.Printf("answers to consumers that a log is too short for their offset, in the end it was not: %d\n", r.c.outOfRange.Load())
	}
	n, list := r.h.Verdict.Violations()
	for _, v := range list {
		fmt.Printf("VIOLATION %s, found after %.1f s: %s\n", v.Property, v.After.Seconds(), v.Text)
	}
	fmt.Printf("violations: %d\n", n)
	if failed != nil {
		fmt.Println("chaos: the run could not be finished:", failed)
	}
	if n > 0 || failed != nil {
		fmt.Println("chaos: FAILED")
		return false
	}
	fmt.Println("chaos: PASSED")
	return true
}

// reportLedgers prints a line for each ledger.
func (r *round) reportLedgers() {
	for _, l := range ledgers() {
		var sum history.Tally
		changes := 0
		for _, t := range r.tallies {
			if t.Partition.Topic != l.topic {
				continue
			}
			sum.Sent, sum.Acked, sum.Unanswered = sum.Sent+t.Sent, sum.Acked+t.Acked, sum.Unanswered+t.Unanswered
			sum.Kept, sum.Lost, sum.Again, sum.Disorder = sum.Kept+t.Kept, sum.Lost+t.Lost, sum.Again+t.Again, sum.Disorder+t.Disorder
			sum.Reads += t.Reads
			sum.Gap = max(sum.Gap, t.Gap)
			changes += t.Partition.Changes()
		}
		fmt.Printf("%-8v %d records acknowledged of %d, %d without an answer; in the log %d; lost %d, copies %d, out of order %d; "+
			"read %d times; %d changes of leader; longest gap of a partition's producer %.1f s\n",
			l.acks, sum.Acked, sum.Sent, sum.Unanswered, sum.Kept, sum.Lost, sum.Again, sum.Disorder, sum.Reads, changes, sum.Gap.Seconds())
	}
}

// panics looks through the nodes' logs for bugs.
func (r *round) panics() {
	for _, n := range r.c.nodes {
		text, err := os.ReadFile(filepath.Join(n.dir, "log"))
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "DATA RACE") {
				r.h.Verdict.Violate(history.Process, "node %d: %s", n.id, line)
			}
		}
	}
}
