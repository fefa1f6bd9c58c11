package replicas

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
)

// waits checks that a fetch is parked.
func (f *poll) waits(t *testing.T) {
	t.Helper()
	if f.done != 0 {
		t.Fatalf("answered at once: %+v", f.Parts[0].Reply)
	}
}

// ends checks that a fetch was answered, and of each part up to where there are
// records.
func (f *poll) ends(t *testing.T, limits ...model.Offset) {
	t.Helper()
	if f.done != 1 {
		t.Fatalf("answered %d times", f.done)
	}
	for i, limit := range limits {
		if got := f.Parts[i].Reply; got.Err != model.None || got.Limit != limit {
			t.Errorf("part %d is answered %v with records below %d, not below %d", i, got.Err, got.Limit, limit)
		}
	}
}

// append writes one batch with a value of so many bytes to each replica.
func (c *crank) append(bytes int, to ...*replica) {
	c.t.Helper()
	w := produce(1, to...)
	for i, r := range to {
		w.Parts[i] = partOf(r, batchOf(record.PlainOptions(), 1, bytes))
	}
	c.post(w)
	c.settle()
}

const reader = model.NoBroker

func TestMinBytesAreCountedOverAllPartitions(t *testing.T) {
	c := newCrank(t)
	a, b := c.led(0, 1), c.led(1, 1)
	f := fetchOf(reader, time.Minute, 1500, 0, a, b)
	c.ask(f)
	c.append(1000, a)
	f.waits(t)
	c.append(1000, b)
	f.ends(t, 1, 1)
}

func TestBytesBelowAHighWatermarkThatTrailsAreCounted(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	f := fetchOf(reader, time.Minute, 500, 0, r)
	c.ask(f)
	c.append(1000, r)
	c.append(1000, r)
	c.ask(fetchOf(2, 0, 1, 1, r))
	f.waits(t)
	c.ask(fetchOf(3, 0, 1, 1, r))
	f.ends(t, 1)
}

func TestATruncationForgetsWhereAppendsEnded(t *testing.T) {
	c := newCrank(t)
	r := c.followed(0)
	s := c.sourceOf(2)
	c.wish(s, true)
	c.turn(answerOf(s, batchesFor(r, 3)))
	c.settle()
	if !r.ends.of(3).Known() {
		t.Fatal("the position of the end is not known")
	}
	c.wish(s, false)
	c.turn(answerOf(s, fetchedPart{id: r.hosted.ID, resp: partition.FetchResponse{Diverging: model.EpochEnd{Epoch: 0, End: 0}}}))
	c.settle()
	if r.p.Marks().LEO != 0 || r.ends.of(3).Known() {
		t.Errorf("after the cut to %d the old end has a position", r.p.Marks().LEO)
	}
}

func TestAFetchThatMayNotWaitIsAnsweredAtOnce(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	for _, f := range []*poll{fetchOf(reader, 0, 1, 0, r), fetchOf(reader, -time.Second, 1, 0, r),
		fetchOf(reader, time.Minute, 0, 0, r), fetchOf(reader, time.Minute, -1, 0, r), fetchOf(reader, time.Minute, 1, 0)} {
		c.ask(f)
		f.ends(t)
	}
	if c.fetches.Len() != 0 {
		t.Errorf("%d are parked", c.fetches.Len())
	}
}

func TestTimeEndsAFetch(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	f := fetchOf(reader, 500*time.Millisecond, 1, 0, r)
	c.ask(f)
	c.wait(499 * time.Millisecond)
	f.waits(t)
	c.wait(time.Millisecond)
	f.ends(t, 0)
}

func TestAFetchThatNamesAPartitionTwiceIsAnsweredOnce(t *testing.T) {
	c := newCrank(t)
	r := c.led(0, 1)
	f := fetchOf(reader, time.Minute, 1, 0, r, r)
	c.ask(f)
	f.waits(t)
	c.append(10, r)
	f.ends(t, 1, 1)
}

func TestALongPollEndsWithTheLeadership(t *testing.T) {
	ends := map[string]func(c *crank, r *replica) model.BrokerID{
		"another leader": func(c *crank, r *replica) model.BrokerID { c.assigned(r, 3, 2); return 3 },
		"hosted no more": func(c *crank, r *replica) model.BrokerID {
			c.turn(call(func(l *Loop) { l.drop(r.hosted) }))
			return model.NoBroker
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			c := newCrank(t)
			other, r := c.led(0), c.led(1)
			f := fetchOf(reader, time.Minute, 1, 0, other, r)
			f.Parts[1].Request.LeaderEpoch = model.NoEpoch
			c.ask(f)
			f.waits(t)
			leader := end(c, r)
			f.ends(t, 0)
			if got := f.Parts[1].Reply; got.Err != model.ErrNotLeaderOrFollower || got.Leader != leader {
				t.Errorf("the answer is %v with leader %d, not %d", got.Err, got.Leader, leader)
			}
		})
	}
}

func TestANewLeaderHurriesItsFollowers(t *testing.T) {
	c := newCrank(t)
	old := c.led(0)
	c.ask(fetchOf(2, 0, 1, 0, old), fetchOf(3, 0, 1, 0, old))
	f, consumer := fetchOf(2, 500*time.Millisecond, 1, 0, old), fetchOf(reader, time.Minute, 1, 0, old)
	c.ask(f, consumer)
	f.waits(t)
	won := c.led(1)
	f.ends(t, 0)
	consumer.waits(t)
	if len(c.parked[2]) != 0 {
		t.Errorf("%d answered fetches of broker 2 are remembered", len(c.parked[2]))
	}
	again := fetchOf(2, 500*time.Millisecond, 1, 0, old)
	c.ask(again)
	again.waits(t)
	c.wait(expectWait)
	again.ends(t, 0)
	named := fetchOf(2, 500*time.Millisecond, 1, 0, old, won)
	c.ask(named)
	c.wait(expectWait)
	named.waits(t)
}

func TestNobodyIsExpectedForEver(t *testing.T) {
	c := newCrank(t)
	gone, stays := c.led(0), c.led(1)
	c.turn(call(func(l *Loop) { l.drop(gone.hosted) }))
	if len(c.expected) != 2 || len(c.expected[2]) != 1 {
		t.Fatalf("expected after a replica left: %v", c.expected)
	}
	c.wait(c.opts.LagMax)
	if len(c.expected) != 0 {
		t.Errorf("expected after %v: %v", c.opts.LagMax, c.expected)
	}
	f := fetchOf(2, 500*time.Millisecond, 1, 0, stays)
	c.ask(f)
	c.wait(expectWait)
	f.waits(t)
}

func TestNothingWaitsForABrokerThatWasFenced(t *testing.T) {
	c := newCrank(t)
	r := c.led(0, 1, 2)
	c.ask(fetchOf(2, 0, 1, 0, r), fetchOf(3, 0, 1, 0, r))
	c.answered(model.ErrIneligibleReplica)
	w := produce(-1, r)
	c.post(w)
	c.settle()
	c.ask(fetchOf(2, 0, 1, 1, r))
	w.answers(t, 1) // broker 3 is about to join
	c.turn(call((&Change{Peers: partition.Peers{1: {Epoch: 10}, 2: {Epoch: 20}, 3: {Epoch: 30, Fenced: true}}}).turn))
	w.answers(t, 1, model.None)
}
