package cases

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/tidetest"
)

// atOnce is how soon an answer is that waits for nothing.
const atOnce = 100 * time.Millisecond

// B72: an offset beyond the log end is out of range at once, the log end itself
// waits.
func TestAnOffsetBeyondTheLogEndIsOutOfRangeAtOnce(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		for i := range 10 {
			w.mustProduce("t", fmt.Sprint(i))
		}
		w.WaitHW("t", 0, 10)
		outOfRange := func(offset int64) {
			f := at("t", offset)
			f.wait = 5 * time.Second
			p, took := w.fetch(1, f)
			code(t, fmt.Sprint("fetch at ", offset), p.ErrorCode, model.ErrOffsetOutOfRange)
			if p.HighWatermark != -1 || p.LastStableOffset != -1 || p.LogStartOffset != -1 || len(p.RecordBatches) != 0 {
				t.Errorf("fetch at %d: HW %d, LSO %d, log start %d", offset, p.HighWatermark, p.LastStableOffset, p.LogStartOffset)
			}
			if took > atOnce {
				t.Errorf("OFFSET_OUT_OF_RANGE at %d came after %v", offset, took)
			}
		}
		outOfRange(11)
		outOfRange(-1)
		f := at("t", 10)
		f.wait = 5 * time.Second
		p, took := w.fetch(1, f)
		code(t, "fetch at the log end", p.ErrorCode, model.None)
		about(t, "a fetch at the log end", took, 5*time.Second, 200*time.Millisecond)
		if p.HighWatermark != 10 || len(p.RecordBatches) != 0 {
			t.Errorf("fetch at the log end: HW %d, %d bytes", p.HighWatermark, len(p.RecordBatches))
		}
		p, _ = w.fetch(1, at("t", 0))
		if got := w.values(p, 0); len(got) != 10 {
			t.Errorf("fetch at 0 returned %v", got)
		}
		w.deleteRecords(1, "t", 4)
		outOfRange(3)
	})
}

// deleteRecords raises the log start of partition 0.
func (w *world) deleteRecords(broker int, topic string, offset int64) {
	w.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 2, 30_000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Offset = offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	p := ask[*kmsg.DeleteRecordsResponse](w, broker, req).Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		w.t.Fatalf("delete records below %d: %v", offset, model.Error(p.ErrorCode))
	}
}

// B73: between the high watermark and the log end there is nothing to see, and
// nothing wrong either.
func TestAnOffsetBetweenHighWatermarkAndLogEndIsNotOutOfRange(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(1))
		leader := w.Leader("t", 0)
		for _, f := range w.followers("t") {
			w.Pause(f)
		}
		for i := range 10 {
			code(t, "acks=1", w.produce(leader, "t", 1, time.Second, batch(fmt.Sprint(i))).ErrorCode, model.None)
		}
		for _, offset := range []int64{0, 5, 10} {
			f := at("t", offset)
			f.wait = 500 * time.Millisecond
			p, took := w.fetch(leader, f)
			code(t, fmt.Sprint("fetch at ", offset), p.ErrorCode, model.None)
			if p.HighWatermark != 0 || len(p.RecordBatches) != 0 {
				t.Errorf("fetch at %d: HW %d, %d bytes", offset, p.HighWatermark, len(p.RecordBatches))
			}
			if offset == 0 {
				about(t, "a fetch at the high watermark", took, 500*time.Millisecond, 50*time.Millisecond)
			} else if took > atOnce {
				t.Errorf("a fetch at %d above the high watermark waited %v", offset, took)
			}
		}
		p, took := w.fetch(leader, at("t", 11))
		code(t, "fetch at 11", p.ErrorCode, model.ErrOffsetOutOfRange)
		if took > atOnce {
			t.Errorf("OFFSET_OUT_OF_RANGE came after %v", took)
		}
	}, steady()...)
}

// B75: what only the leader has is not seen, and is seen once it is replicated.
func TestARecordIsInvisibleUntilItIsReplicated(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(1))
		leader := w.Leader("t", 0)
		followers := w.followers("t")
		for _, f := range followers {
			w.Pause(f)
		}
		code(t, "acks=1", w.produce(leader, "t", 1, time.Second, batch("x")).ErrorCode, model.None)
		f := at("t", 0)
		f.wait = 300 * time.Millisecond
		p, _ := w.fetch(leader, f)
		if p.HighWatermark != 0 || len(p.RecordBatches) != 0 {
			t.Errorf("HW %d, %d bytes before replication", p.HighWatermark, len(p.RecordBatches))
		}
		if l := w.list(leader, "t", -1); l.Offset != 0 {
			t.Errorf("latest is %d before replication", l.Offset)
		}
		for _, f := range followers {
			w.Resume(f)
		}
		f.wait = 30 * time.Second
		p, _ = w.fetch(leader, f)
		if got := w.values(p, 0); len(got) != 1 || got[0] != "x" {
			t.Errorf("after replication %v is seen", got)
		}
		if l := w.list(leader, "t", -1); l.Offset != 1 {
			t.Errorf("latest is %d after replication", l.Offset)
		}
	}, steady()...)
}

// B77: the first batch comes whole, however small the limits are.
func TestTheFirstBatchComesWholeWhateverTheLimits(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		big := batch(strings.Repeat("b", 900<<10))
		code(t, "produce", w.produce(1, "t", -1, time.Second, big).ErrorCode, model.None)
		w.mustProduce("t", "small", "small too")
		for _, limits := range [][2]int32{{1000, 1000}, {50 << 20, 0}, {0, 1 << 20}} {
			f := at("t", 0)
			f.maxBytes, f.partitionBytes = limits[0], limits[1]
			p, _ := w.fetch(1, f)
			n := 0
			for _, b := range record.Split(p.RecordBatches) {
				n++
				if !record.Valid(b) {
					t.Errorf("limits %v: a batch with a bad checksum", limits)
				}
			}
			if limits != [2]int32{0, 1 << 20} && n != 1 || n < 1 {
				t.Errorf("limits %v: %d batches", limits, n)
			}
			if h, _ := record.ParseHeader(p.RecordBatches); h.Size() != len(big) {
				t.Errorf("limits %v: the first batch has %d bytes, %d were written", limits, h.Size(), len(big))
			}
		}
	})
}

// B79: a fetch from inside a batch returns the whole batch, untouched.
func TestAFetchFromInsideABatchReturnsTheWholeBatch(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		o := record.PlainOptions()
		o.Codec = record.CodecLZ4
		set := batchOf(o, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
		code(t, "produce", w.produce(1, "t", -1, time.Second, set).ErrorCode, model.None)
		first, _ := w.fetch(1, at("t", 0))
		inside, _ := w.fetch(1, at("t", 7))
		if !bytes.Equal(first.RecordBatches, inside.RecordBatches) || len(inside.RecordBatches) == 0 {
			t.Error("the answers at 0 and at 7 differ")
		}
		if h, _ := record.ParseHeader(inside.RecordBatches); h.Base != 0 {
			t.Errorf("the batch begins at %d", h.Base)
		}
		if got := w.values(inside, 7); fmt.Sprint(got) != "[7 8 9]" {
			t.Errorf("records from 7 on: %v", got)
		}
	})
}

// B81: a long poll lasts as long as it says, and no longer than it must.
func TestALongPollWaitsAndWakes(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		f := at("t", 0)
		f.wait = 2 * time.Second
		_, took := w.fetch(1, f)
		about(t, "a long poll without traffic", took, 2*time.Second, 200*time.Millisecond)

		own := w.dial(1)
		meanwhile := sync.WaitGroup{}
		meanwhile.Go(func() {
			pass(300 * time.Millisecond)
			askOn[*kmsg.ProduceResponse](w, own, produceRequest("t", 0, -1, time.Second, batch("x")))
		})
		p, took := w.fetch(1, f)
		meanwhile.Wait()
		about(t, "a long poll that a record ends", took, 300*time.Millisecond, 100*time.Millisecond)
		if len(w.values(p, 0)) != 1 {
			t.Error("the long poll ended without the record")
		}
		f.offset, f.wait = 1, 0
		if _, took = w.fetch(1, f); took > atOnce {
			t.Errorf("max wait 0 took %v", took)
		}
		f.wait, f.minBytes = 2*time.Second, 0
		if _, took = w.fetch(1, f); took > atOnce {
			t.Errorf("min bytes 0 took %v", took)
		}
	})
}

// B82: min bytes counts what can be read, over all partitions.
func TestMinBytesCountsReadableBytesOverAllPartitions(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 4, 1, nil)
		req := at("t", 0).request()
		req.MinBytes, req.MaxWaitMillis = 5000, 3000
		for i := range 4 {
			p := req.Topics[0].Partitions[0]
			p.Partition = int32(i)
			if i > 0 {
				req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
			}
		}
		own := w.dial(1)
		meanwhile := sync.WaitGroup{}
		meanwhile.Go(func() {
			for i := range 4 {
				askOn[*kmsg.ProduceResponse](w, own, produceRequest("t", int32(i), -1, time.Second, batch(strings.Repeat("x", 1000))))
			}
			pass(time.Second)
			askOn[*kmsg.ProduceResponse](w, own, produceRequest("t", 2, -1, time.Second, batch(strings.Repeat("y", 1500))))
		})
		start := time.Now()
		resp := ask[*kmsg.FetchResponse](w, 1, req)
		about(t, "the answer", time.Since(start), time.Second, 200*time.Millisecond)
		meanwhile.Wait()
		n := 0
		for _, p := range resp.Topics[0].Partitions {
			n += len(w.values(p, 0))
		}
		if n != 5 {
			t.Errorf("%d records came, 5 were written", n)
		}
	})
}

// B84: a fetch that waits ends when its topic is deleted.
func TestAWaitingFetchEndsWhenItsTopicIsDeleted(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		for _, version := range []int16{12, 13} {
			topic := fmt.Sprintf("t%d", version)
			w.CreateTopic(topic, 1, 3, nil)
			leader := w.Leader(topic, 0)
			f := at(topic, 0)
			f.version, f.wait = version, 10*time.Second
			req := f.request()
			req.Topics[0].TopicID = w.topicID(topic)
			own := w.dial(1)
			meanwhile := sync.WaitGroup{}
			meanwhile.Go(func() {
				pass(500 * time.Millisecond)
				d := kmsg.NewPtrDeleteTopicsRequest()
				d.Version, d.TimeoutMillis, d.TopicNames = 5, 10_000, []string{topic}
				askOn[*kmsg.DeleteTopicsResponse](w, own, d)
			})
			start := time.Now()
			resp := ask[*kmsg.FetchResponse](w, leader, req)
			if took := time.Since(start); took > 1500*time.Millisecond {
				t.Errorf("v%d: the fetch ended %v after it began", version, took)
			}
			meanwhile.Wait()
			code(t, topic, resp.Topics[0].Partitions[0].ErrorCode, model.ErrUnknownTopicOrPartition, model.ErrNotLeaderOrFollower, model.ErrUnknownTopicID)
		}
	})
}

// topicID asks a broker for the id of a topic.
func (w *world) topicID(topic string) [16]byte {
	w.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.MetadataResponse](w, 1, req).Topics[0].TopicID
}

// B86: min bytes above max bytes can still be satisfied.
func TestMinBytesAboveMaxBytesIsSatisfied(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		for range 100 {
			w.mustProduce("t", strings.Repeat("x", 1000))
		}
		f := at("t", 0)
		f.minBytes, f.maxBytes, f.wait = 10_000_000, 50_000, 5*time.Second
		p, took := w.fetch(1, f)
		if n := len(p.RecordBatches); took > atOnce || n < 40_000 || n > 50_000 {
			t.Errorf("%d bytes after %v", n, took)
		}
		f.minBytes, f.partitionBytes = 50_000, 1000
		p, took = w.fetch(1, f)
		if took > 5200*time.Millisecond || len(p.RecordBatches) == 0 {
			t.Errorf("with a small partition limit: %d bytes after %v", len(p.RecordBatches), took)
		}
	})
}

// B89: a fetch session tells only what changed, and holds to its epochs.
func TestAFetchSessionTellsOnlyWhatChanged(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("a", 1, 1, nil)
		w.CreateTopic("b", 1, 1, nil)
		first := at("a", 0).request()
		first.SessionID, first.SessionEpoch = 0, 0
		first.Topics = append(first.Topics, at("b", 0).request().Topics...)
		s := ask[*kmsg.FetchResponse](w, 1, first).SessionID
		if s <= 0 {
			t.Fatalf("session id %d", s)
		}
		next := func(id, epoch int32) *kmsg.FetchResponse {
			req := kmsg.NewPtrFetchRequest()
			req.Version, req.MaxBytes, req.SessionID, req.SessionEpoch = 12, 50<<20, id, epoch
			return ask[*kmsg.FetchResponse](w, 1, req)
		}
		if r := next(s, 1); len(r.Topics) != 0 || r.SessionID != s {
			t.Errorf("an idle turn tells of %d topics in session %d", len(r.Topics), r.SessionID)
		}
		w.mustProduce("b", "x")
		if r := next(s, 2); len(r.Topics) != 1 || r.Topics[0].Topic != "b" {
			t.Errorf("after a record in b the turn tells of %d topics", len(r.Topics))
		}
		code(t, "a repeated epoch", next(s, 2).ErrorCode, model.ErrInvalidFetchSessionEpoch)
		code(t, "an unknown session", next(s+1, 3).ErrorCode, model.ErrFetchSessionIDNotFound)
		last := at("a", 0).request()
		last.SessionID, last.SessionEpoch = s, -1
		if r := ask[*kmsg.FetchResponse](w, 1, last); r.SessionID != 0 || r.ErrorCode != 0 {
			t.Errorf("the closing turn answers session %d, error %d", r.SessionID, r.ErrorCode)
		}
		code(t, "a closed session", next(s, 4).ErrorCode, model.ErrFetchSessionIDNotFound)
	})
}

// B92: when all session slots are taken, others are served without a session.
func TestWithoutAFreeSessionSlotAFetchIsServedWhole(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		w.mustProduce("t", "x")
		open := func() int32 {
			req := at("t", 0).request()
			req.SessionID, req.SessionEpoch = 0, 0
			r := askOn[*kmsg.FetchResponse](w, w.dial(1), req)
			if r.ErrorCode != 0 || len(w.values(r.Topics[0].Partitions[0], 0)) != 1 {
				t.Errorf("error %d, %d records", r.ErrorCode, len(w.values(r.Topics[0].Partitions[0], 0)))
			}
			return r.SessionID
		}
		var ids []int32
		for range 15 {
			if id := open(); id != 0 {
				ids = append(ids, id)
			}
		}
		if len(ids) != 10 {
			t.Errorf("%d sessions in 10 slots", len(ids))
		}
		for epoch := range int32(5) {
			for _, id := range ids {
				req := kmsg.NewPtrFetchRequest()
				req.Version, req.MaxBytes, req.SessionID, req.SessionEpoch = 12, 50<<20, id, epoch+1
				code(t, "an established session", ask[*kmsg.FetchResponse](w, 1, req).ErrorCode, model.None)
			}
			pass(time.Second)
		}
		for _, id := range ids {
			req := at("t", 0).request()
			req.SessionID, req.SessionEpoch = id, -1
			ask[*kmsg.FetchResponse](w, 1, req)
		}
		if open() == 0 {
			t.Error("no session after ten were closed")
		}
	}, tidetest.Set("max.incremental.fetch.session.cache.slots", "10"))
}

// B93: a session is used with names or with ids, not with both.
func TestASessionIsUsedWithNamesOrWithIDs(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		id := w.topicID("t")
		for _, versions := range [][2]int16{{12, 13}, {13, 12}} {
			first := at("t", 0).request()
			first.Version, first.SessionEpoch, first.Topics[0].TopicID = versions[0], 0, id
			s := ask[*kmsg.FetchResponse](w, 1, first).SessionID
			second := kmsg.NewPtrFetchRequest()
			second.Version, second.MaxBytes, second.SessionID, second.SessionEpoch = versions[1], 50<<20, s, 1
			code(t, fmt.Sprint(versions), ask[*kmsg.FetchResponse](w, 1, second).ErrorCode, model.ErrFetchSessionTopicIDError)
			fresh := at("t", 0).request()
			fresh.Version, fresh.SessionEpoch, fresh.Topics[0].TopicID = versions[1], 0, id
			code(t, "a fresh full fetch", ask[*kmsg.FetchResponse](w, 1, fresh).ErrorCode, model.None)
		}
	})
}
