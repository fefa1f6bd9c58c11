package replicas

import (
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// minimums are changes of min.insync.replicas together with one of the partition that
// this broker leads.
var minimums = []struct {
	what     string
	was, is  int
	to       image.Partition
	hw       model.Offset // after the change
	produces model.Error  // what a produce with acks=all is told then
}{
	{"lowered after the leadership was lost", 2, 1,
		image.Partition{ISR: []model.BrokerID{2}, Leader: 2, LeaderEpoch: 2, PartitionEpoch: 2}, 0, model.ErrNotLeaderOrFollower},
	{"lowered, and it goes on", 2, 1,
		image.Partition{ISR: []model.BrokerID{1}, Leader: 1, LeaderEpoch: 1, PartitionEpoch: 2}, 1, model.None},
	{"raised before the ISR grew less", 1, 2,
		image.Partition{ISR: []model.BrokerID{1}, Leader: 1, LeaderEpoch: 1, PartitionEpoch: 2}, 0, model.ErrNotEnoughReplicas},
}

// A change may hold much that came one after the other, when a node was away. What a
// minimum allows under one leadership, or one ISR, it does not allow under another.
func TestAMinimumCountsForWhatHeldWhenItCame(t *testing.T) {
	for _, k := range minimums {
		c := newCrank(t)
		set := func(min int) Configured {
			return Configured{Hosted: c.all[idOf(0)].hosted, MinISR: min, Log: storage.DefaultLogConfig()}
		}
		isr := []model.BrokerID{1}
		if k.was == 1 {
			isr = nil // all three: the high watermark waits for them
		}
		r := c.led(0, isr...)
		c.turn(call((&Change{Configured: []Configured{set(k.was)}}).turn))
		c.append(10, r)
		if hw := r.p.Marks().HW; hw != 0 {
			t.Fatalf("%s: the high watermark is %d before", k.what, hw)
		}
		k.to.Replicas = []model.BrokerID{1, 2, 3}
		c.turn(call((&Change{Configured: []Configured{set(k.is)}, Assigned: []Assigned{{Hosted: r.hosted, To: &k.to}}}).turn))
		c.settle()
		if hw := r.p.Marks().HW; hw != k.hw || r.p.MinISR() != k.is {
			t.Errorf("%s: the high watermark is %d, want %d; the minimum is %d", k.what, hw, k.hw, r.p.MinISR())
		}
		w := produce(-1, r)
		c.post(w)
		c.settle()
		if err := w.Parts[0].Err; err != k.produces {
			t.Errorf("%s: a produce is told %v, want %v", k.what, err, k.produces)
		}
	}
}

// Who is fenced need not be waited for, but not by a leader that is none any more.
func TestAHighWatermarkWaitsForWhoWasFencedAfterTheLeadership(t *testing.T) {
	c := newCrank(t)
	r := c.led(0, 1, 2)
	c.ask(fetchOf(2, 0, 1, 0, r), fetchOf(3, 0, 1, 0, r))
	c.answered(model.ErrIneligibleReplica)
	c.append(10, r)
	c.ask(fetchOf(2, 0, 1, 1, r))
	if m := r.p.Marks(); m.HW != 0 || m.LEO != 1 { // broker 3 is about to join
		t.Fatalf("marks before: %+v", m)
	}
	to := &image.Partition{Replicas: []model.BrokerID{1, 2, 3}, ISR: []model.BrokerID{2}, Leader: model.NoBroker, LeaderEpoch: 2, PartitionEpoch: 2}
	c.turn(call((&Change{
		Peers:      partition.Peers{1: {Epoch: 10}, 2: {Epoch: 20}, 3: {Epoch: 30, Fenced: true}},
		Configured: []Configured{{Hosted: r.hosted, MinISR: r.p.MinISR(), Log: storage.DefaultLogConfig()}},
		Assigned:   []Assigned{{Hosted: r.hosted, To: to}},
	}).turn))
	if hw := r.p.Marks().HW; hw != 0 {
		t.Errorf("the high watermark is %d, want 0", hw)
	}
}
