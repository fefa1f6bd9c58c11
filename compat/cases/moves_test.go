package cases

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// moving lists the reassignments under way, as "t-0 +[4] -[1]".
func (w *world) moving(broker int) (out []string) {
	w.t.Helper()
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.TimeoutMillis = 10_000
	resp := ask[*kmsg.ListPartitionReassignmentsResponse](w, broker, req)
	code(w.t, "list reassignments", resp.ErrorCode, model.None)
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			out = append(out, fmt.Sprintf("%s-%d +%v -%v", t.Topic, p.Partition, p.AddingReplicas, p.RemovingReplicas))
		}
	}
	return out
}

// B226: a partition moves to another broker while it is written to, or stays
// where it was when that is cancelled.
func TestAPartitionMovesUnderLoad(t *testing.T) {
	inBubble(t, 4, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		w.Reassign("t", 0, 1, 2, 3)
		w.hundreds("t", 20)
		l := w.startLoad("t", "p", 2, 5*time.Millisecond)
		code(t, "one broker twice", w.reassigned(reassignment("t", 0, 2, 2, 3)), model.ErrInvalidReplicaAssignment)
		code(t, "no such broker", w.reassigned(reassignment("t", 0, 2, 3, 9)), model.ErrInvalidReplicaAssignment)
		code(t, "nothing to cancel", w.reassigned(reassignment("t", 0)), model.ErrNoReassignmentInProgress)
		code(t, "no such topic", w.reassigned(reassignment("u", 0, 1, 2, 3)), model.ErrUnknownTopicOrPartition)

		w.Kill(4)
		code(t, "to a broker that is down", w.reassigned(reassignment("t", 0, 2, 3, 4)), model.None, model.ErrInvalidReplicaAssignment)
		pass(time.Second)
		if got := w.moving(2); fmt.Sprint(got) != "[t-0 +[4] -[1]]" {
			t.Errorf("under way: %v", got)
		}
		code(t, "cancel", w.reassigned(reassignment("t", 0)), model.None)
		pass(time.Second)
		if got := slices.Sorted(slices.Values(w.partitionOf(2, "t").Replicas)); !slices.Equal(got, []int32{1, 2, 3}) || len(w.moving(3)) > 0 {
			t.Errorf("after it was cancelled the replicas are %v", got)
		}
		w.Restart(4)
		start := time.Now()
		code(t, "move", w.reassigned(reassignment("t", 0, 2, 3, 4)), model.None)
		w.WaitISR("t", 0, 2, 3, 4)
		w.WaitFor("nothing moves any more", func() bool { return len(w.moving(1)) == 0 })
		within(t, "the move", time.Since(start), 10*time.Second)
		pass(time.Second)
		l.stop(t)
		if got := w.partitionOf(1, "t").Replicas; !slices.Equal(got, []int32{2, 3, 4}) {
			t.Errorf("the replicas are %v", got)
		}
		w.WaitFor("the old replica is gone", func() bool { return w.logEnd(1, "t") == -1 })
		w.settle("t", 2, 3, 4)
		w.identical("t", 2, 3, 4)
	})
}

// B228: the cluster's id and the brokers' stay, whatever restarts.
func TestTheClusterKeepsItsName(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		names := func() (out []string) {
			for broker := 1; broker <= 3; broker++ {
				req := kmsg.NewPtrMetadataRequest()
				req.Version = 9
				resp := ask[*kmsg.MetadataResponse](w, broker, req)
				var brokers []string
				for _, b := range resp.Brokers {
					brokers = append(brokers, fmt.Sprintf("%d@%s:%d", b.NodeID, b.Host, b.Port))
				}
				slices.Sort(brokers)
				if resp.ClusterID == nil || *resp.ClusterID == "" {
					t.Fatal("no cluster id")
				}
				out = append(out, *resp.ClusterID, fmt.Sprint(brokers))
			}
			return out
		}
		w.CreateTopic("t", 1, 3, nil)
		before := names()
		if before[0] != before[2] || before[0] != before[4] || before[1] != before[3] {
			t.Errorf("brokers disagree: %v", before)
		}
		for _, end := range []func(int){w.Kill, w.Stop} {
			w.all(end)
			w.all(w.Restart)
			w.settleLeader("t")
			if after := names(); !slices.Equal(after, before) {
				t.Errorf("%v became %v", before, after)
			}
		}
	})
}
