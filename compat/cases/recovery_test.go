package cases

import (
	"bytes"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

// B152: what a power cut left at the end of a log is dropped, and nothing that
// is whole.
func TestATornTailIsCutOff(t *testing.T) {
	whole := batch("torn")
	record.Stamp(whole, 3, 0)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-2] ^= 1
	for what, tail := range map[string][]byte{
		"the start of a batch": whole[:30], "all but its last byte": whole[:len(whole)-1], "a wrong checksum": flipped,
		"zeros": make([]byte, 4096), "a huge length": append(bytes.Clone(whole[:8]), 0x7f, 0xff, 0xff, 0xff, 0, 0),
	} {
		inBubble(t, 1, func(w *world) {
			w.CreateTopic("t", 1, 1, nil)
			w.mustProduce("t", "0", "1", "2")
			w.Kill(1)
			logs := w.files(1, "t", ".log")
			w.overwrite(logs[len(logs)-1], func(b []byte) []byte { return append(b, tail...) })
			w.Restart(1)
			w.WaitLeader("t", 0)
			w.WaitHW("t", 0, 3)
			if leo, hw := w.mark(1, "t"); leo != 3 || hw != 3 {
				t.Errorf("%s: the log ends at %d, the high watermark is %d", what, leo, hw)
			}
			if o := w.mustProduce("t", "3"); o != 3 {
				t.Errorf("%s: the next record got offset %d", what, o)
			}
			if got := fmt.Sprint(w.records(1, "t", 0)); got != "[{0  0} {1  1} {2  2} {3  3}]" {
				t.Errorf("%s: the log holds %s", what, got)
			}
		})
	}
}

// B154: whatever becomes of indexes and producer snapshots, every record and
// every time is found.
func TestLostOrGarbledIndexFilesAreMadeAnew(t *testing.T) {
	garbage := make([]byte, 1200)
	rand.Read(garbage)
	edits := map[string]func([]byte) []byte{
		"lost":    func([]byte) []byte { return nil },
		"empty":   func([]byte) []byte { return []byte{} },
		"garbled": func([]byte) []byte { return bytes.Clone(garbage) },
		"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
	}
	for what, edit := range edits {
		inBubble(t, 1, func(w *world) {
			w.CreateTopic("t", 1, 1, with("internal.segment.bytes", "20000", "index.interval.bytes", "200"))
			o := w.producerID(1)
			begin := time.Now().UnixMilli()
			for i := range 500 {
				o.BaseSequence = int32(i)
				code(t, "produce", w.produce(1, "t", -1, time.Second, batchOf(o, fmt.Sprint(i))).ErrorCode, model.None)
				pass(10 * time.Millisecond)
			}
			for _, end := range []func(int){w.Stop, w.Kill} {
				end(1)
				for _, ending := range []string{".index", ".timeindex", ".snapshot"} {
					for _, f := range w.files(1, "t", ending) {
						w.overwrite(f, edit)
					}
				}
				w.Restart(1)
				w.WaitLeader("t", 0)
				w.WaitHW("t", 0, 500)
				w.findable("t", what, begin)
				again := w.produce(1, "t", -1, time.Second, batchOf(o, "499"))
				if again.ErrorCode != 0 || again.BaseOffset != 499 {
					t.Errorf("%s: the last batch sent again: %v, offset %d", what, model.Error(again.ErrorCode), again.BaseOffset)
				}
			}
		})
	}
}

// findable checks that 500 records, one each 10 ms from begin on, are found by
// offset and by time.
func (w *world) findable(topic, what string, begin int64) {
	w.t.Helper()
	for range 200 {
		n := mrand.Int64N(500)
		f := at(topic, n)
		f.partitionBytes = 1
		p, _ := w.fetch(1, f)
		if got := w.values(p, n); len(got) != 1 || got[0] != fmt.Sprint(n) {
			w.t.Fatalf("%s: %v at offset %d", what, got, n)
		}
	}
	for range 100 {
		n := mrand.Int64N(4999) - 9
		want := max(0, (n+9)/10)
		if l := w.list(1, topic, begin+n); l.ErrorCode != 0 || l.Offset != want || l.Timestamp != begin+10*want {
			w.t.Fatalf("%s: %d ms after the first: offset %d of time %d, want %d", what, n, l.Offset, l.Timestamp-begin, want)
		}
	}
}

// B156: a flipped bit in one replica stays there: no other replica takes it, and
// other partitions go on.
func TestAFlippedBitDoesNotSpread(t *testing.T) {
	inBubble(t, 4, func(w *world) {
		w.CreateTopic("t", 1, 4, smallSegments("min.insync.replicas", "1"))
		w.CreateTopic("other", 4, 4, nil)
		w.Reassign("t", 0, 1, 2, 3)
		w.fill("t", -1, 30)
		w.settle("t", 1, 2, 3)
		w.WaitFor("closed segments are synced", func() bool { return len(w.files(1, "t", ".log")) > 5 })
		w.Stop(1)
		w.overwrite(w.files(1, "t", ".log")[2], func(b []byte) []byte {
			b[record.HeaderSize+40] ^= 4
			return b
		})
		w.Restart(1)
		w.WaitISR("t", 0, 1, 2, 3)
		w.Elect("t", 0, 1)
		bad, good := w.judge(1, "t")
		if bad != 1 || good < 5 {
			t.Errorf("at the damaged leader %d batches are bad and %d good", bad, good)
		}
		w.copiesNothingBad()
	})
}

// copiesNothingBad adds replica 4 to t, whose leader's log is damaged, then
// makes a sound one the leader.
func (w *world) copiesNothingBad() {
	t := w.t
	req := reassignment("t", 0, 1, 2, 3, 4)
	code(t, "add a replica", w.reassigned(req), model.None)
	w.WaitFor("the new replica copies", func() bool { return w.logEnd(4, "t") > 0 })
	pass(5 * time.Second)
	if leo := w.logEnd(4, "t"); leo >= 30 {
		t.Errorf("the new replica took the damaged batch: its log ends at %d", leo)
	}
	for p := range 4 {
		code(t, "another partition", produceTo(w, "other", int32(p), batch("x")).ErrorCode, model.None)
	}
	w.WaitISR("other", 0, 1, 2, 3, 4)
	for _, b := range []int{2, 3} {
		if bad, good := w.judge(b, "t"); bad != 0 || good != 30 {
			t.Errorf("broker %d has %d bad and %d good batches", b, bad, good)
		}
	}
	w.Elect("t", 0, 2)
	w.WaitFor("the new replica catches up with a sound leader", func() bool { return w.logEnd(4, "t") == 30 })
	if bad, good := w.judge(4, "t"); bad != 0 || good != 30 {
		t.Errorf("the new replica has %d bad and %d good batches", bad, good)
	}
}

// judge reads a replica as a consumer does, batch by batch, and counts those
// with a bad checksum, or for which the broker says so.
func (w *world) judge(broker int, topic string) (bad, good int) {
	w.t.Helper()
	for from := int64(0); ; {
		f := at(topic, from)
		f.version, f.partitionBytes = 11, 1
		p, _ := w.fetch(broker, f)
		switch model.Error(p.ErrorCode) {
		case model.ErrCorruptMessage, model.ErrKafkaStorageError:
			bad++
			from++
			continue
		case model.None:
		default:
			w.t.Fatalf("fetch at %d: %v", from, model.Error(p.ErrorCode))
		}
		if len(p.RecordBatches) == 0 {
			return bad, good
		}
		for h, b := range record.Split(p.RecordBatches) {
			if record.Valid(b) {
				good++
			} else {
				bad++
			}
			from = int64(h.Next())
		}
	}
}

// logEnd is where a replica's log ends; -1 if the broker has none.
func (w *world) logEnd(broker int, topic string) int64 {
	for _, m := range w.Marks(topic, 0) {
		if m.Broker == broker {
			return m.LEO
		}
	}
	return -1
}

// B160: when all brokers are killed at once, what acks=all acknowledged is there
// again, with offsets of groups, topics, configs and what is known of producers.
func TestNothingAcknowledgedIsLostWhenAllBrokersDie(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(2))
		w.CreateTopic("idem", 1, 3, minISR(2))
		w.alter("t", "retention.ms", "123456789")
		o := w.producerID(1)
		l := w.startLoad("t", "p", 3, 5*time.Millisecond)
		for i := range loops(20) {
			o.BaseSequence = int32(i)
			code(t, "produce", w.produce(w.WaitLeader("idem", 0), "idem", -1, time.Second, batchOf(o, "x")).ErrorCode, model.None)
			w.commitAlone("g", "t", int64(i))
			pass(300 * time.Millisecond)
			start := time.Now()
			w.all(w.Kill)
			w.all(w.Restart)
			w.settleLeader("idem")
			within(t, "the start", time.Since(start), 30*time.Second)
			if got := w.committedOffset("g", "t"); got != int64(i) {
				t.Errorf("round %d: the committed offset is %d", i, got)
			}
			again := w.produce(w.WaitLeader("idem", 0), "idem", -1, 10*time.Second, batchOf(o, "x"))
			if again.ErrorCode != 0 || again.BaseOffset != int64(i) {
				t.Errorf("round %d: a batch sent again: %v, offset %d", i, model.Error(again.ErrorCode), again.BaseOffset)
			}
			if got := w.topicValue(1, "t", "retention.ms"); got != "123456789" {
				t.Errorf("round %d: retention.ms is %s", i, got)
			}
		}
		pass(time.Second)
		l.stop(t)
		w.settle("t", 1, 2, 3)
		l.exactlyOnce(t, w.records(w.Leader("t", 0), "t", 0))
		w.identical("t", 1, 2, 3)
	}, distant())
}

// settleLeader waits until partition 0 has all its replicas in sync under a
// leader that serves.
func (w *world) settleLeader(topic string) {
	w.t.Helper()
	w.WaitISR(topic, 0, 1, 2, 3)
	w.serving(topic)
}

// B161: a segment is as old as its newest record, goes only after all before it,
// and times are found whatever their order.
func TestASegmentIsAsOldAsItsNewestRecord(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		what     string
		segments [][]time.Duration
		start    int64
	}{
		{"a fresh segment first", [][]time.Duration{{0, 3 * hour, time.Minute}, {3 * hour}, {0}}, 0},
		{"an old segment first", [][]time.Duration{{3 * hour, 2 * hour}, {0, 3 * hour}, {0}}, 2},
		{"all old but the last", [][]time.Duration{{3 * hour}, {4 * hour}, {5 * hour, 0}}, 2},
	} {
		inBubble(t, 1, func(w *world) {
			w.CreateTopic("t", 1, 1, with("retention.ms", "3600000", "segment.ms", "10000"))
			now := time.Now().UnixMilli()
			for i, ages := range c.segments {
				if i > 0 {
					pass(11 * time.Second)
				}
				since := time.Duration(time.Now().UnixMilli()-now) * time.Millisecond
				for j := range ages {
					ages[j] += since // as seen from the beginning
				}
				code(t, "produce", w.produce(1, "t", -1, time.Second, aged(ages...)).ErrorCode, model.None)
			}
			pass(3 * time.Second)
			if got := w.earliest(1, "t"); got != c.start {
				t.Errorf("%s: the log begins at %d, want %d", c.what, got, c.start)
			}
			if l := w.list(1, "t", now); l.Offset < c.start || l.Timestamp < now {
				t.Errorf("%s: the first offset of now is %d of time %d", c.what, l.Offset, l.Timestamp-now)
			}
		}, checks())
	}
}

// B164: a segment is closed when it is old, by the next record. (The clock of a
// test does not go back.)
func TestAnOldSegmentIsClosedByTheNextRecord(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, with("segment.ms", "1000"))
		w.mustProduce("t", "0")
		pass(3 * time.Second)
		if n := len(w.files(1, "t", ".log")); n != 1 {
			t.Errorf("%d segments without traffic", n)
		}
		w.mustProduce("t", "1")
		logs := w.files(1, "t", ".log")
		if len(logs) != 2 {
			t.Fatalf("the log is %v", logs)
		}
		if info, err := os.Stat(logs[1]); err != nil || info.Size() == 0 {
			t.Errorf("the second record is not in a segment of its own: %v", err)
		}
		p, _ := w.fetch(1, at("t", 0))
		if got := w.values(p, 0); len(got) == 0 || got[0] != "0" {
			t.Errorf("read %v", got)
		}
	})
}
