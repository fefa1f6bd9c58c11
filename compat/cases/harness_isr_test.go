package cases

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/tidetest"
)

// apart returns the followers of partition 0 so that the last is not the active
// controller: its leader must be able to do without it.
func (w *world) apart(topic string) (first, last int) {
	w.t.Helper()
	w.WaitFor("a controller is active", func() bool { return w.Controller() != 0 })
	fs := w.followers(topic)
	if fs[1] == w.Controller() {
		return fs[1], fs[0]
	}
	return fs[0], fs[1]
}

// holdsFor checks again and again, for a while, that what must hold does.
func (w *world) holdsFor(d time.Duration, what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); pass(20 * time.Millisecond) {
		if !holds() {
			w.t.Fatalf("no longer so: %s", what)
		}
	}
}

// timedProduce is produce with the time it took.
func (w *world) timedProduce(broker int, topic string, acks int16, timeout time.Duration, set []byte) (produced, time.Duration) {
	w.t.Helper()
	start := time.Now()
	p := w.produce(broker, topic, acks, timeout, set)
	return p, time.Since(start)
}

// send writes a batch with acks=0, which has no answer.
func (w *world) send(broker int, topic string, set []byte) {
	w.t.Helper()
	if err := w.conn(broker).Send(context.Background(), produceRequest(topic, 0, 0, time.Second, set)); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// produceTo writes to a partition's leader with acks=all.
func produceTo(w *world, topic string, partition int32, set []byte) produced {
	w.t.Helper()
	req := produceRequest(topic, partition, -1, 10*time.Second, set)
	return ask[*kmsg.ProduceResponse](w, w.Leader(topic, int(partition)), req).Topics[0].Partitions[0]
}

// acknowledged is the values that were acknowledged, by their offsets.
type acknowledged map[int64]string

// mustAcknowledge writes one value with acks=all, however often the leader
// changes meanwhile, and notes it.
func (w *world) mustAcknowledge(log acknowledged, topic, value string) {
	w.t.Helper()
	w.WaitFor(fmt.Sprintf("%q is acknowledged", value), func() bool {
		leader := w.Leader(topic, 0)
		if leader == 0 {
			return false
		}
		p := w.produce(leader, topic, -1, 10*time.Second, batch(value))
		if p.ErrorCode == 0 {
			log[p.BaseOffset] = value
		}
		return p.ErrorCode == 0
	})
}

// read returns all that a consumer sees at a broker, by offset.
func (w *world) read(broker int, topic string) map[int64]string {
	w.t.Helper()
	out := map[int64]string{}
	for from := int64(0); ; {
		f := at(topic, from)
		f.wait = 0
		p, _ := w.fetch(broker, f)
		code(w.t, fmt.Sprint("fetch at ", from), p.ErrorCode, model.None)
		next := from
		for _, b := range record.Split(p.RecordBatches) {
			if err := record.Records(b, func(r *record.Record) bool {
				out[int64(r.Offset)] = string(r.Value)
				next = int64(r.Offset) + 1
				return true
			}); err != nil {
				w.t.Fatalf("records: %v", err)
			}
		}
		if next == from {
			return out
		}
		from = next
	}
}

// check fails the test for every acknowledged value that the leader of a topic
// does not show.
func (w *world) check(log acknowledged, topic string) {
	w.t.Helper()
	leader := w.WaitLeader(topic, 0)
	end := int64(0)
	for o := range log {
		end = max(end, o+1)
	}
	w.WaitHW(topic, 0, end)
	seen := w.read(leader, topic)
	for o, v := range log {
		if seen[o] != v {
			w.t.Errorf("%q was acknowledged at offset %d, where %q is read", v, o, seen[o])
		}
	}
}

// mark is where one replica of partition 0 stands.
func (w *world) mark(broker int, topic string) (leo, hw int64) {
	w.t.Helper()
	for _, m := range w.Marks(topic, 0) {
		if m.Broker == broker {
			return m.LEO, m.HW
		}
	}
	w.t.Fatalf("broker %d has no replica of %s", broker, topic)
	return 0, 0
}

// serving waits until the newest leader of partition 0 takes requests, and
// returns it with its leader epoch.
func (w *world) serving(topic string) (leader int, epoch int32) {
	w.t.Helper()
	w.WaitFor("the leader of "+topic+" takes requests", func() bool {
		leader, epoch = w.Leadership(topic, 0)
		return slices.ContainsFunc(w.Marks(topic, 0), func(m tidetest.Mark) bool {
			return m.Broker == leader && m.Leader && m.Epoch == epoch
		})
	})
	return leader, epoch
}

// producerID asks for the id of an idempotent producer.
func (w *world) producerID(broker int) record.BatchOptions {
	w.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionTimeoutMillis = 4, 60_000
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp := ask[*kmsg.InitProducerIDResponse](w, broker, req)
	if resp.ErrorCode != 0 {
		w.t.Fatalf("init producer id: %v", model.Error(resp.ErrorCode))
	}
	o := record.PlainOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence = model.ProducerID(resp.ProducerID), resp.ProducerEpoch, 0
	return o
}

// partitionOf is what a broker's metadata tells of partition 0.
func (w *world) partitionOf(broker int, topic string) kmsg.MetadataResponseTopicPartition {
	w.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.MetadataResponse](w, broker, req).Topics[0].Partitions[0]
}

// within checks that something took no longer than it may.
func within(t testing.TB, what string, took, atMost time.Duration) {
	t.Helper()
	if took > atMost {
		t.Errorf("%s took %v, at most %v is promised", what, took, atMost)
	}
}
