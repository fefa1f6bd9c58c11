package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
	"github.com/tidemark-log/tidemark/compat/logdir"
)

// patience is how long the healed cluster may take for each step of the end.
const patience = 2 * time.Minute

// finish waits until the healed cluster is well, reads everything and judges.
func (r *round) finish(ctx context.Context, stopWriters func(context.Context) error, cs *clients) error {
	adm, err := r.c.administrator()
	if err != nil {
		return err
	}
	defer adm.Close()
	healing := time.Now()
	whole := r.alive(ctx, "full ISRs", func(ctx context.Context) error { return r.waitWhole(ctx, adm) })
	if r.healed = time.Since(healing); whole {
		r.c.say("every replica is in sync after %v", r.healed.Round(time.Millisecond))
	}
	pause(ctx, 5*time.Second)
	r.alive(ctx, "acknowledgements", stopWriters)
	whole = whole && r.alive(ctx, "full ISRs after the load", func(ctx context.Context) error { return r.waitWhole(ctx, adm) })
	ends, err := r.ends(ctx, adm)
	if err != nil {
		return err
	}
	for i, l := range ledgers() {
		r.alive(ctx, "readers", func(ctx context.Context) error { return r.tails[i].waitReached(ctx, ends[l.topic]) })
	}
	r.alive(ctx, "the group", func(ctx context.Context) error { return r.waitGroup(ctx, adm, ends["all"]) })
	cs.stop()
	r.c.say("readers and group have read everything")
	if cs.err != nil {
		return cs.err
	}
	for _, l := range ledgers() {
		r.alive(ctx, "a last reader", func(ctx context.Context) error { return r.readWhole(ctx, l, ends[l.topic]) })
	}
	r.alive(ctx, "a reader of the group's log", func(ctx context.Context) error { return r.readGroupLog(ctx, adm) })
	r.tallies = r.h.Check()
	if !whole {
		return nil
	}
	return r.compare(ctx, adm)
}

// alive runs a step that must succeed within the patience.
func (r *round) alive(ctx context.Context, what string, step func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := step(ctx)
	if err != nil {
		r.h.Verdict.Violate(history.Alive, "%s, %v after the faults: %v", what, patience, err)
	}
	return err == nil
}

// waitWhole waits until nothing is moving and every replica is in sync.
func (r *round) waitWhole(ctx context.Context, adm *kadm.Client) error {
	for {
		wrong := r.unwell(ctx, adm)
		if wrong == "" {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("not in sync: %s", wrong)
		}
	}
}

// unwell names what is not as it should be.
func (r *round) unwell(ctx context.Context, adm *kadm.Client) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	moving, err := adm.ListPartitionReassignments(ctx, nil)
	if err != nil {
		return err.Error()
	}
	var wrong []string
	for topic, ps := range moving {
		for p := range ps {
			wrong = append(wrong, fmt.Sprintf("%s-%d is moving", topic, p))
		}
	}
	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return err.Error()
	}
	for _, t := range topics.Sorted() {
		for _, p := range t.Partitions.Sorted() {
			if p.Leader < 0 || len(p.ISR) != len(p.Replicas) {
				wrong = append(wrong, fmt.Sprintf("%s-%d has leader %d, ISR %v of %v", t.Topic, p.Partition, p.Leader, p.ISR, p.Replicas))
			}
		}
	}
	return strings.Join(wrong, "; ")
}

// ends asks where the ledgers end.
func (r *round) ends(ctx context.Context, adm *kadm.Client) (map[string]map[int32]int64, error) {
	out := map[string]map[int32]int64{}
	for _, l := range ledgers() {
		listed, err := adm.ListEndOffsets(ctx, l.topic)
		if err == nil {
			err = listed.Error()
		}
		if err != nil {
			return nil, fmt.Errorf("ask for the end of %s: %w", l.topic, err)
		}
		out[l.topic] = map[int32]int64{}
		listed.Each(func(o kadm.ListedOffset) { out[l.topic][o.Partition] = o.Offset })
	}
	return out, nil
}

// waitGroup waits until the group has committed everything.
func (r *round) waitGroup(ctx context.Context, adm *kadm.Client, ends map[int32]int64) error {
	for {
		wrong := ""
		offsets, err := adm.FetchOffsets(ctx, groupName)
		for p, end := range ends {
			if o, ok := offsets.Lookup("all", p); err != nil || !ok || o.At != end {
				wrong += fmt.Sprintf(" all-%d is at %d of %d;", p, o.At, end)
			}
		}
		if wrong == "" {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("committed offsets: %s %w", wrong, err)
		}
	}
}

// readWhole reads a ledger from its start to its end.
func (r *round) readWhole(ctx context.Context, l ledger, ends map[int32]int64) error {
	last := r.c.newReader(l.topic, "last reader", l.partitions, func(int32) int64 { return 0 })
	if err := last.run(ctx, ends); err != nil {
		return fmt.Errorf("read %s whole: %w", l.topic, err)
	}
	for p, end := range ends {
		r.h.Find(l.topic, p).End(end)
	}
	return nil
}

// readGroupLog reads the committed offsets in the order in which the coordinator
// wrote them.
func (r *round) readGroupLog(ctx context.Context, adm *kadm.Client) error {
	const topic = "__consumer_offsets"
	listed, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	cl, err := r.c.client("reader of the group's log", kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	left := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("%d partitions of %s are not read: %w", len(left), topic, ctx.Err())
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			r.logged(rec)
			if rec.Offset+1 >= left[rec.Partition] {
				delete(left, rec.Partition)
			}
		})
	}
	return nil
}

// logged notes a record of the offsets topic.
func (r *round) logged(rec *kgo.Record) {
	var key kmsg.OffsetCommitKey
	var value kmsg.OffsetCommitValue
	if rec.Value == nil || key.ReadFrom(rec.Key) != nil || key.Version > 1 || key.Group != groupName || value.ReadFrom(rec.Value) != nil {
		return
	}
	if p := r.h.Find(key.Topic, key.Partition); p != nil {
		r.group.Logged(p, value.Offset)
	}
}

// compare ends the nodes in an orderly way and compares the replicas' files.
func (r *round) compare(ctx context.Context, adm *kadm.Client) error {
	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(r.c.nodes) { // controllers last
		if clean, err := n.terminate(leaving); err != nil {
			return err
		} else if !clean {
			r.h.Verdict.Violate(history.Process, "node %d did not end well after SIGTERM: %s", n.id, n.tail())
		}
	}
	for _, t := range topics.Sorted() {
		for _, p := range t.Partitions.Sorted() {
			if err := r.compareReplicas(t.Topic, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *round) compareReplicas(topic string, p kadm.PartitionDetail) error {
	sums := map[string][]int32{}
	for _, id := range p.Replicas {
		sum, _, err := logdir.Sum(filepath.Join(r.c.nodes[id-1].data, fmt.Sprintf("%s-%d", topic, p.Partition)))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		sums[sum] = append(sums[sum], id)
		r.equal++
	}
	if len(sums) != 1 {
		r.h.Verdict.Violate(history.Replicas, "the replicas of %s-%d differ: %v", topic, p.Partition, sums)
	}
	return nil
}
