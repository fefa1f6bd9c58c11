package cases

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// numbered is a batch of n records of a producer, from a sequence on.
func numbered(o record.BatchOptions, sequence int32, n int) []byte {
	o.BaseSequence = sequence
	var values []string
	for i := range n {
		values = append(values, fmt.Sprint(int(sequence)+i))
	}
	return batchOf(o, values...)
}

// B59: a retry of what was acknowledged is acknowledged again with its offset, and
// nothing is stored twice.
func TestARetryIsAcknowledgedAgain(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		o := w.producerID(1)
		first := numbered(o, 0, 10)
		w.accepted("the first batch", "t", first, 0)
		w.accepted("a retry", "t", first, 0)
		resp := askOn[*kmsg.ProduceResponse](w, w.dial(1), produceRequest("t", 0, -1, time.Second, first))
		p := resp.Topics[0].Partitions[0]
		if code(t, "a retry on another connection", p.ErrorCode, model.None); p.BaseOffset != 0 {
			t.Errorf("a retry on another connection got offset %d", p.BaseOffset)
		}
		w.accepted("the next", "t", numbered(o, 10, 1), 10)
		if w.end("t") != 11 {
			t.Errorf("the log ends at %d", w.end("t"))
		}
		for i := range int32(4) {
			w.accepted("more", "t", numbered(o, 11+i, 1), int64(11+i))
		}
		w.denied("a retry of the sixth batch before", "t", first, model.ErrOutOfOrderSequenceNumber, model.ErrDuplicateSequenceNumber)
		w.denied("a part of a batch", "t", numbered(o, 14, 2), model.ErrOutOfOrderSequenceNumber)
	})
}

// B61: gaps and old epochs have codes of their own, and leave no trace.
func TestGapsAndOldEpochsAreRefused(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		of := func(epoch int16) record.BatchOptions {
			o := w.producerID(1)
			o.ProducerID, o.ProducerEpoch = 7777, epoch
			return o
		}
		w.accepted("epoch 1", "t", numbered(of(1), 0, 5), 0)
		w.denied("a gap", "t", numbered(of(1), 6, 1), model.ErrOutOfOrderSequenceNumber)
		w.accepted("what is next", "t", numbered(of(1), 5, 1), 5)
		w.denied("an old epoch", "t", numbered(of(0), 0, 1), model.ErrInvalidProducerEpoch)
		w.denied("an old epoch with the next sequence", "t", numbered(of(0), 6, 1), model.ErrInvalidProducerEpoch)
		w.denied("a new epoch that does not begin", "t", numbered(of(2), 3, 1), model.ErrOutOfOrderSequenceNumber)
		w.accepted("a new epoch", "t", numbered(of(2), 0, 1), 6)
		w.denied("the epoch before", "t", numbered(of(1), 6, 1), model.ErrInvalidProducerEpoch)
	})
}

// B62: sequences go on at 0 after 2^31-1.
func TestSequencesWrap(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		o := w.producerID(1)
		w.accepted("up to the last", "t", numbered(o, 2147483640, 8), 0)
		w.accepted("0", "t", numbered(o, 0, 1), 8)
		w.accepted("a retry", "t", numbered(o, 2147483640, 8), 0)
		o = w.producerID(1)
		w.accepted("across the limit", "t", numbered(o, 2147483645, 10), 9)
		w.accepted("a retry across the limit", "t", numbered(o, 2147483645, 10), 9)
		w.denied("a gap", "t", numbered(o, 8, 1), model.ErrOutOfOrderSequenceNumber)
		w.accepted("what is next", "t", numbered(o, 7, 1), 19)
	})
}

// B63: a new leader knows the retries of batches that its predecessor took,
// however it became leader.
func TestANewLeaderKnowsRetries(t *testing.T) {
	ends := map[string]func(w *world, leader int){
		"killed":  func(w *world, leader int) { w.Kill(leader) },
		"stopped": func(w *world, leader int) { w.Stop(leader) },
		"elected": func(w *world, _ int) { w.Elect("t", 0, w.followers("t")[0]) },
	}
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			inBubble(t, 3, func(w *world) {
				w.CreateTopic("t", 1, 3, minISR(2))
				old := w.Leader("t", 0)
				o := w.producerID(old)
				for i := range 10 {
					w.accepted("a batch", "t", numbered(o, int32(5*i), 5), int64(5*i))
				}
				end(w, old)
				w.WaitLeader("t", 0, old)
				w.serving("t")
				for i := 5; i < 10; i++ {
					w.accepted("a retry", "t", numbered(o, int32(5*i), 5), int64(5*i))
				}
				w.accepted("a new batch", "t", numbered(o, 50, 5), 50)
				w.WaitHW("t", 0, 55)
				got := w.read(w.Leader("t", 0), "t")
				for i := range 55 {
					if got[int64(i)] != fmt.Sprint(i) || len(got) != 55 {
						t.Fatalf("%d records; offset %d holds %q", len(got), i, got[int64(i)])
					}
				}
			})
		})
	}
}

// B65: a broker that is started again knows the last batches of a producer, after
// an orderly stop and after a crash.
func TestARestartedBrokerKnowsRetries(t *testing.T) {
	for _, orderly := range []bool{true, false} {
		t.Run(fmt.Sprint("orderly ", orderly), func(t *testing.T) {
			inBubble(t, 1, func(w *world) {
				w.CreateTopic("t", 1, 1, nil)
				o := w.producerID(1)
				for i := range 10 {
					w.accepted("a batch", "t", numbered(o, int32(i), 1), int64(i))
				}
				if orderly {
					w.Stop(1)
				} else {
					w.Kill(1)
				}
				w.Restart(1)
				w.serving("t")
				for i := int32(5); i < 10; i++ {
					w.accepted("a retry", "t", numbered(o, i, 1), int64(i))
				}
				w.accepted("the next", "t", numbered(o, 10, 1), 10)
			})
		})
	}
}

// B68: a producer goes on although all its records are deleted.
func TestAProducerGoesOnWhenItsRecordsAreDeleted(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		o := w.producerID(1)
		w.accepted("the first batch", "t", numbered(o, 0, 10), 0)
		w.WaitHW("t", 0, 10)
		w.deleteRecords(1, "t", 10)
		w.accepted("after the deletion", "t", numbered(o, 10, 1), 10)
		w.WaitHW("t", 0, 11)
		w.deleteRecords(1, "t", 11)
		for i, end := range []func(int){w.Stop, w.Kill, w.Stop} {
			end(1)
			w.Restart(1)
			w.serving("t")
			next := int32(11 + i)
			w.accepted("after a restart", "t", numbered(o, next, 1), int64(next))
			w.accepted("a retry", "t", numbered(o, next, 1), int64(next))
			w.WaitHW("t", 0, int64(next)+1)
			w.deleteRecords(1, "t", int64(next)+1)
		}
	})
}

// B70: no two producers ever get the same id.
func TestProducerIDsAreUnique(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		seen := map[int64]bool{}
		n := 2000
		for range 2 {
			w.manyProducerIDs(n, seen)
			for id := range 3 {
				w.Kill(id + 1)
			}
			var all sync.WaitGroup
			for id := range 3 {
				all.Go(func() { w.Restart(id + 1) })
			}
			all.Wait()
		}
		if len(seen) != 6*n {
			t.Errorf("%d ids, %d of them different", 6*n, len(seen))
		}
	})
}

// manyProducerIDs asks all brokers at once for n ids each, on connections of
// their own.
func (w *world) manyProducerIDs(n int, seen map[int64]bool) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for broker := 1; broker <= 3; broker++ {
		c := w.dial(broker)
		all.Go(func() {
			for range n {
				req := kmsg.NewPtrInitProducerIDRequest()
				req.Version, req.ProducerID, req.ProducerEpoch = 4, -1, -1
				resp, err := c.Do(context.Background(), req)
				if err != nil {
					w.t.Errorf("broker %d: %v", broker, err)
					return
				}
				r := resp.(*kmsg.InitProducerIDResponse)
				if r.ErrorCode != 0 || r.ProducerEpoch != 0 || r.ProducerID < 0 {
					w.t.Errorf("broker %d: %v, id %d, epoch %d", broker, model.Error(r.ErrorCode), r.ProducerID, r.ProducerEpoch)
				}
				mu.Lock()
				seen[r.ProducerID] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
}
