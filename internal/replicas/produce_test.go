package replicas

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// answers checks what became of a request: whether its bytes are free and the
// answer of each part, or that there is none yet.
func (w *asked) answers(t *testing.T, stored int, want ...model.Error) {
	t.Helper()
	done := 0
	if len(want) > 0 {
		done = 1
	}
	if w.stored != stored || w.done != done {
		t.Fatalf("bytes given back %d times and answered %d times, not %d and %d", w.stored, w.done, stored, done)
	}
	for i, err := range want {
		if got := w.Parts[i].Err; got != err {
			t.Errorf("part %d is answered %v, not %v", i, got, err)
		}
	}
}

func TestWhatCameTogetherIsWrittenTogether(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	var all []*asked
	for range 5 {
		all = append(all, produce(1, r))
	}
	c.post(all...)
	before := c.writes
	c.write()
	if n := c.writes - before; n != 1 {
		t.Errorf("five batches took %d writes", n)
	}
	for _, w := range all {
		w.answers(t, 0)
	}
	c.tell()
	for i, w := range all {
		w.answers(t, 1, model.None)
		if w.Parts[0].Base != model.Offset(i) {
			t.Errorf("batch %d begins at %d", i, w.Parts[0].Base)
		}
	}
}

// With flush.messages=1 a batch is answered for once it is durable. That does not cost
// each its own sync: one serves all that came for a log while the writer was busy, and
// the loop hears of all logs at once.
func TestWhatCameTogetherIsMadeDurableTogether(t *testing.T) {
	c := newCrank(t)
	logs := []*replica{c.led(0), c.led(1)}
	for _, r := range logs {
		cfg := r.log.Config()
		cfg.FlushMessages = 1
		r.log.SetConfig(cfg)
	}
	var all []*asked
	for i := range 50 {
		w := produce(1, logs[i%2])
		all = append(all, w)
		c.post(w)
	}
	syncs := 0
	c.onSync = func(string) error { syncs++; return nil }
	c.write()
	if syncs != 2 {
		t.Errorf("50 batches for two logs took %d syncs", syncs)
	}
	for _, r := range logs {
		if end := r.log.RecoveryPoint(); end != 25 {
			t.Errorf("the log of %s is durable up to %d of 25", r.tp(), end)
		}
	}
	if len(c.told) != 1 {
		t.Errorf("the loop is told %d times", len(c.told))
	}
	c.tell()
	for _, w := range all {
		w.answers(t, 1, model.None)
	}
}

func TestAProduceWaitsForTheStartOfTheEpoch(t *testing.T) {
	c := newCrank(t)
	r := c.hosted(0)
	c.assigned(r, 1, 1)
	first, second := produce(1, r), produce(-1, r)
	c.post(first, second)
	first.answers(t, 0)
	c.write()
	c.tell() // the epoch is on disk: the batches go to the log in their order
	first.answers(t, 0)
	c.settle()
	first.answers(t, 1, model.None)
	second.answers(t, 1)
	if first.Parts[0].Base != 0 || second.Parts[0].Base != 1 {
		t.Errorf("bases %d and %d", first.Parts[0].Base, second.Parts[0].Base)
	}
}

func TestAHeldProduceIsRefusedWhenTheLeadershipEnds(t *testing.T) {
	c := newCrank(t)
	r := c.hosted(0)
	c.assigned(r, 1, 1)
	w := produce(-1, r)
	c.post(w)
	c.assigned(r, 2, 2)
	w.answers(t, 1, model.ErrNotLeaderOrFollower)
	if w.Parts[0].Leader != 2 || w.Parts[0].LeaderEpoch != 2 {
		t.Errorf("the answer names leader %d of epoch %d", w.Parts[0].Leader, w.Parts[0].LeaderEpoch)
	}
	c.settle()
}

// sequenced makes a request of one batch of producer 7 that begins at a
// sequence.
func sequenced(acks int16, sequence int32, r *replica) *asked {
	w := produce(acks)
	w.Parts = append(w.Parts, partOf(r, batchOf(record.BatchOptions{ProducerID: 7, BaseSequence: sequence}, 2, 10)))
	return w
}

func TestADuplicateOfABatchInFlightWaitsForItsBytes(t *testing.T) {
	c := newCrank(t)
	r := c.led(0)
	original, other, again := sequenced(1, 0, r), produce(1, r), sequenced(1, 0, r)
	c.post(original, other, again)
	again.answers(t, 0)
	c.settle()
	for _, w := range []*asked{original, other, again} {
		w.answers(t, 1, model.None)
	}
	if again.Parts[0].Base != 0 || r.p.Marks().LEO != 3 {
		t.Errorf("the duplicate begins at %d, the log ends at %d", again.Parts[0].Base, r.p.Marks().LEO)
	}
}

func TestARequestIsAnsweredOnceAllItsPartitionsAre(t *testing.T) {
	c := newCrank(t)
	alone, shared := c.led(0, 1), c.led(1)
	w := produce(-1, alone, shared, alone)
	c.post(w)
	c.settle()
	w.answers(t, 1)
	c.ask(fetchOf(2, 0, 1, 1, shared), fetchOf(3, 0, 1, 1, shared))
	w.answers(t, 1, model.None, model.None, model.None)
	if w.Parts[0].Base != 0 || w.Parts[2].Base != 1 {
		t.Errorf("a partition that is named twice has its batches at %d and %d", w.Parts[0].Base, w.Parts[2].Base)
	}
}

func TestTimeTurnsOnlyWhatIsUndecidedIntoATimeout(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 0, -time.Second} {
		c := newCrank(t)
		alone, shared := c.led(0, 1), c.led(1)
		w := produce(-1, alone, shared)
		w.Timeout = timeout
		c.post(w)
		c.settle()
		if timeout > 0 {
			w.answers(t, 1)
			c.wait(timeout)
		}
		w.answers(t, 1, model.None, model.ErrRequestTimedOut)
	}
}

func TestARequestWithoutPartitionsIsAnsweredAtOnce(t *testing.T) {
	c := newCrank(t)
	for _, acks := range []int16{-1, 0, 1} {
		w := produce(acks)
		c.post(w)
		if w.stored != 1 || w.done != 1 {
			t.Errorf("acks=%d: given back %d times, answered %d times", acks, w.stored, w.done)
		}
	}
}

func TestABrokenDiskAnswersWhatWaitsForIt(t *testing.T) {
	c := newCrank(t)
	r, parked, late := c.led(0), c.led(1), c.hosted(2)
	waiting := produce(-1, parked)
	c.post(waiting)
	c.settle()
	c.broken = true
	c.assigned(late, 1, 1)
	reader, follower := fetchOf(model.NoBroker, time.Minute, 1, 0, r), fetchOf(2, time.Minute, 1, 0, r)
	c.ask(reader, follower)
	held, inFlight, both := produce(1, late), produce(1, r), produce(-1, r, parked)
	c.post(held, inFlight, both)
	batch := c.writer.inbox.Take(nil)
	if err := c.writer.Turn(batch); err == nil {
		t.Fatal("the log writer writes to a broken disk")
	}
	c.turn(offline{})
	for _, p := range []*asked{inFlight, both} {
		if p.stored != 0 || p.done != 0 {
			t.Error("bytes were given back that the log writer may still write from")
		}
	}
	c.turn(writerEnded{})
	waiting.answers(t, 1, model.ErrKafkaStorageError)
	held.answers(t, 1, model.ErrKafkaStorageError)
	inFlight.answers(t, 1, model.ErrKafkaStorageError)
	both.answers(t, 1, model.ErrKafkaStorageError, model.ErrKafkaStorageError)
	for _, f := range []*poll{reader, follower} {
		if f.done != 1 || f.Parts[0].Reply.Err != model.ErrKafkaStorageError {
			t.Errorf("a fetch was answered %d times, with %v", f.done, f.Parts[0].Reply.Err)
		}
	}
	after := produce(1, r)
	c.post(after)
	after.answers(t, 1, model.ErrKafkaStorageError)
}
