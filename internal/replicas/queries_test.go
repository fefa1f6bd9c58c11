package replicas

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/task"
)

// deletion asks to delete records below an offset of each replica.
func deletion(offset model.Offset, of ...*replica) *deleteOp {
	var rt *task.Runtime
	op := &deleteOp{done: rt.NewSignal()}
	for _, r := range of {
		op.asks = append(op.asks, api.DeleteQuery{Hosted: r.hosted, Offset: offset})
	}
	return op
}

// ended checks the answers of a deletion, or that there are none yet.
func (op *deleteOp) ended(t *testing.T, want ...model.Error) {
	t.Helper()
	if over := op.done.Closed(); over != (len(want) > 0) {
		t.Fatalf("the deletion is over: %v", over)
	}
	for i, err := range want {
		if op.asks[i].Err != err {
			t.Errorf("answer %d is %v, not %v", i, op.asks[i].Err, err)
		}
	}
}

func TestADeletionWaitsForTheLogsOfAllLiveReplicas(t *testing.T) {
	c := newCrank(t)
	a, b := c.led(0), c.led(1)
	c.append(10, a, b)
	c.ask(fetchOf(2, 0, 1, 1, a, b), fetchOf(3, 0, 1, 1, a, b))
	beyond, op := deletion(2, a), deletion(-1, a, b)
	c.turn(beyond, op)
	beyond.ended(t, model.ErrOffsetOutOfRange)
	c.settle()
	for _, id := range []model.BrokerID{2, 3} {
		op.ended(t)
		f := fetchOf(id, 0, 1, 1, a, b)
		f.Parts[0].Request.LogStart, f.Parts[1].Request.LogStart = 1, 1
		c.ask(f)
	}
	op.ended(t, model.None, model.None)
	if op.asks[0].LowWatermark != 1 || op.asks[1].LowWatermark != 1 {
		t.Errorf("low watermarks %d and %d", op.asks[0].LowWatermark, op.asks[1].LowWatermark)
	}
}

func TestADeletionEndsWithTheLeadershipOrTheFence(t *testing.T) {
	ends := map[string]struct {
		end  func(c *crank, r *replica)
		want model.Error
	}{
		"another leader": {func(c *crank, r *replica) { c.assigned(r, 3, 2) }, model.ErrNotLeaderOrFollower},
		"all fenced": {func(c *crank, r *replica) {
			c.turn(call((&Change{Peers: partition.Peers{1: {Epoch: 10}, 2: {Fenced: true}, 3: {Fenced: true}}}).turn))
		}, model.None},
	}
	for name, e := range ends {
		t.Run(name, func(t *testing.T) {
			c := newCrank(t)
			r := c.led(0)
			c.append(10, r)
			c.ask(fetchOf(2, 0, 1, 1, r), fetchOf(3, 0, 1, 1, r))
			op := deletion(1, r)
			c.turn(op)
			c.settle()
			op.ended(t)
			e.end(c, r)
			op.ended(t, e.want)
		})
	}
}

// own is an append of the broker itself; errs takes what became of it.
func own(r *replica, epoch model.Epoch) (op *ownAppend, errs *[]model.Error) {
	errs = &[]model.Error{}
	return &ownAppend{hosted: r.hosted, epoch: epoch, batch: batchOf(record.PlainOptions(), 2, 10),
		done: func(err model.Error) { *errs = append(*errs, err) }}, errs
}

// became checks what became of an own append; nothing yet without want.
func became(t *testing.T, errs *[]model.Error, want ...model.Error) {
	t.Helper()
	if len(*errs) != len(want) || len(want) == 1 && (*errs)[0] != want[0] {
		t.Fatalf("the append became %v, not %v", *errs, want)
	}
}

func TestAnOwnAppendIsDoneWhenItIsCommitted(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	op, errs := own(r, 1)
	c.turn(op)
	c.settle()
	c.wait(time.Hour)
	became(t, errs)
	c.ask(fetchOf(2, 0, 1, 2, r), fetchOf(3, 0, 1, 2, r))
	became(t, errs, model.None)
}

func TestAnOwnAppendNeedsItsLeadership(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	early, errs := own(r, 2)
	c.turn(early)
	became(t, errs, model.ErrNotLeaderOrFollower)
	op, errs := own(r, 1)
	c.turn(op)
	c.settle()
	c.assigned(r, 2, 2)
	became(t, errs, model.ErrNotLeaderOrFollower)
}

func TestACoordinatorWaitsUntilItsPartitionIsSettled(t *testing.T) {
	c := newCrank(t)
	r := c.hosted(0)
	settled := func(epoch model.Epoch, want bool, wantErr model.Error) {
		t.Helper()
		if _, _, err, ok := r.settled(epoch); ok != want || err != wantErr {
			t.Fatalf("epoch %d: settled %v with %v, not %v with %v", epoch, ok, err, want, wantErr)
		}
	}
	settled(1, false, model.None)
	c.assigned(r, 1, 1)
	settled(1, false, model.None) // the epoch is on its way to the disk
	c.settle()
	settled(1, true, model.None)
	settled(0, true, model.ErrNotLeaderOrFollower)
	settled(2, false, model.None) // the metadata is behind
	c.post(produce(1, r))
	settled(1, false, model.None)
	c.settle()
	if start, end, _, ok := r.settled(1); !ok || start != 0 || end != 1 {
		t.Errorf("bounds [%d, %d), settled %v", start, end, ok)
	}
}
