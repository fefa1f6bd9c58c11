package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func served(t testing.TB, brokers int) *world {
	w := newWorld(t, 1)
	w.takeOver()
	for id := range brokers {
		w.alive(model.BrokerID(id + 1))
	}
	return w
}

// many creates a topic with n partitions, all on the same brokers in the same
// order.
func (w *world) many(name string, n int, on ...int32) {
	parts := make([][]int32, n)
	for i := range parts {
		parts[i] = on
	}
	if code := w.create(name, parts...).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode; code != 0 {
		w.t.Fatalf("create %s: %v", name, model.Error(code))
	}
}

func TestHeartbeatAllocatesItsResponseOnly(t *testing.T) {
	w := served(t, 3)
	w.create("t", []int32{1, 2, 3})
	var req kmsg.Request = w.beat(1)
	c := w.call()
	if n := testing.AllocsPerRun(100, func() { w.s.Handle(c, req) }); n > 1 {
		t.Fatalf("a heartbeat costs %v allocations", n)
	}
}

func TestOtherRequestsAreNotHandled(t *testing.T) {
	w := served(t, 1)
	if _, ok := w.s.Handle(w.call(), kmsg.NewPtrMetadataRequest()); ok {
		t.Fatal("Metadata was handled")
	}
}

func TestLargeDecisionIsOneTransaction(t *testing.T) {
	w := served(t, 2)
	w.many("t", 12_000, 1, 2)
	first, last := w.last.Records[0], w.last.Records[len(w.last.Records)-1]
	if first.Type() != metalog.TypeBeginTransaction || last.Type() != metalog.TypeEndTransaction {
		t.Fatalf("records run from %v to %v", first.Type(), last.Type())
	}
	if n := len(w.last.Batches()); n != 2 {
		t.Fatalf("%d batches", n)
	}
	if n := len(w.s.Image().TopicByName("t").Partitions); n != 12_000 {
		t.Fatalf("%d partitions", n)
	}
}

// A broker's epoch is the offset of its registration record, also when the
// changes that come with it do not fit one batch.
func TestBrokerEpochIsTheOffsetOfTheRecord(t *testing.T) {
	w := served(t, 2)
	w.many("t", 12_000, 1, 2)
	w.s.Disconnected(w.now, 1, w.s.Image().Broker(1).Epoch)
	at := w.end
	resp := w.do(w.registration(1, 2, -1)).(*kmsg.BrokerRegistrationResponse)
	offset := at + model.Offset(slices.IndexFunc(w.last.Records, func(r metalog.Record) bool {
		return r.Type() == metalog.TypeRegisterBroker
	}))
	if len(w.last.Records) < 12_000 || resp.BrokerEpoch != int64(offset) || w.s.Image().Broker(1).Epoch != model.BrokerEpoch(offset) {
		t.Fatalf("record at %d, answered epoch %d, registered %d", offset, resp.BrokerEpoch, w.s.Image().Broker(1).Epoch)
	}
}

func TestTakeOverAbortsAnOpenTransaction(t *testing.T) {
	w := served(t, 1)
	begun := []metalog.Record{&metalog.BeginTransaction{}, &metalog.Topic{Name: "half", TopicID: model.UUID{1}}}
	w.end += 2
	w.s.Replay(begun, w.end, w.epoch)
	w.takeOver()
	if w.s.Image().InTransaction() || w.s.Image().TopicByName("half") != nil {
		t.Fatal("the predecessor's transaction is still open, or in force")
	}
	if w.last.Records[0].Type() != metalog.TypeAbortTransaction {
		t.Fatalf("the first record is %v", w.last.Records[0].Type())
	}
}

// A controller that dies in the middle of an election leaves partitions without
// a leader although somebody may lead; the next one looks for them.
func TestTakeOverElectsWhoWasForgotten(t *testing.T) {
	w := served(t, 2)
	w.many("t", 2500, 1, 2)
	var recs []metalog.Record
	topic := w.s.Image().TopicByName("t")
	for id := range topic.Partitions {
		c := metalog.NewPartitionChange(topic.ID, int32(id))
		c.Leader = model.NoBroker
		recs = append(recs, c)
	}
	w.end += model.Offset(len(recs))
	w.s.Replay(recs, w.end, w.epoch)
	w.check.t = quiet{t} // what it finds on the way is the point of the test
	w.takeOver()
	if n := len(w.last.Records); n != maxElections {
		t.Fatalf("%d elections at once", n)
	}
	w.pass(0, func(Result) {})
	if n := w.s.Image().LeaderlessCount(); n != 0 {
		t.Fatalf("%d partitions have no leader", n)
	}
}

// quiet ignores what a checker says.
type quiet struct{ testing.TB }

func (quiet) Fatalf(string, ...any) {}

func TestRebalanceGoesInSteps(t *testing.T) {
	w := served(t, 2)
	w.many("t", 2500, 1, 2)
	for _, id := range []model.BrokerID{1, 1} {
		b := w.beat(id)
		b.WantFence = !w.s.Image().Broker(id).Fenced
		w.do(b)
	}
	topic := w.s.Image().TopicByName("t")
	r := kmsg.NewPtrAlterPartitionRequest()
	r.Version, r.BrokerID, r.BrokerEpoch = 2, 2, w.beat(2).BrokerEpoch
	rt := kmsg.NewAlterPartitionRequestTopic()
	rt.TopicID = topic.ID
	for id, p := range topic.Partitions {
		rp := kmsg.NewAlterPartitionRequestTopicPartition()
		rp.Partition, rp.LeaderEpoch, rp.PartitionEpoch, rp.NewISR = int32(id), int32(p.LeaderEpoch), int32(p.PartitionEpoch), []int32{2, 1}
		rt.Partitions = append(rt.Partitions, rp)
	}
	r.Topics = append(r.Topics, rt)
	w.do(r)
	var steps []int
	w.s.cfg.SessionTimeout = time.Hour
	w.pass(300*time.Second, func(r Result) {
		if len(r.Records) > 0 {
			steps = append(steps, len(r.Records))
		}
	})
	if !slices.Equal(steps, []int{1000, 1000, 500}) {
		t.Fatalf("steps of %v elections", steps)
	}
	if n := w.s.Image().LeaderCount(1); n != 2500 {
		t.Fatalf("broker 1 leads %d", n)
	}
}

func TestPlacementUsesRacksEvenly(t *testing.T) {
	w := newWorld(t, 1)
	w.takeOver()
	for id := range model.BrokerID(7) {
		r := w.registration(id+1, 1, -1)
		if id < 4 { // brokers 1 and 3 in r0, 2 and 4 in r1, 5 and 6 in none
			r.Rack = kmsg.StringPtr(fmt.Sprint("r", id%2))
		}
		w.do(r)
		if id != 5 { // broker 6 stays fenced
			w.do(w.beat(id + 1))
		}
	}
	stop := w.beat(7)
	w.create("lead", []int32{7})
	stop.WantShutdown = true
	w.do(stop) // broker 7 is shutting down
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version = 7
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 90, 3
	r.Topics = append(r.Topics, topic)
	w.do(r)
	leads, holds := map[model.BrokerID]int{}, map[model.BrokerID]int{}
	for id, p := range w.s.Image().TopicByName("t").Partitions {
		racks := map[string]bool{}
		for _, b := range p.Replicas {
			rack := ""
			if br := w.s.Image().Broker(b); br.Rack != nil {
				rack = *br.Rack
			}
			racks[rack] = true
			holds[b]++
		}
		if len(racks) != 3 {
			t.Fatalf("partition %d is on %v, in %d racks", id, p.Replicas, len(racks))
		}
		leads[p.Replicas[0]]++
	}
	if leads[6] > 0 || holds[7] > 0 {
		t.Fatalf("a fenced broker comes first %d times, one that shuts down is used %d times", leads[6], holds[7])
	}
	for _, rack := range [][2]int{{leads[1] + leads[3], holds[1] + holds[3]}, {leads[2] + leads[4], holds[2] + holds[4]}, {leads[5], holds[5]}} {
		if rack[0] < 27 || rack[0] > 33 || rack[1] != 90 {
			t.Fatalf("a rack leads %d and holds %d; all leads %v", rack[0], rack[1], leads)
		}
	}
	for b := range model.BrokerID(4) {
		if leads[b+1] < 10 {
			t.Fatalf("broker %d leads %d of 90", b+1, leads[b+1])
		}
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	w := served(b, 100)
	var req kmsg.Request = w.beat(50)
	c := w.call()
	b.ReportAllocs()
	for b.Loop() {
		w.s.Handle(c, req)
	}
}

// BenchmarkFence fences a broker that leads a third of 30,000 partitions and is
// in sync in all of them.
func BenchmarkFence(b *testing.B) {
	w := served(b, 3)
	for i := range 30 {
		parts := make([][]int32, 1000)
		for k := range parts {
			parts[k] = [][]int32{{1, 2, 3}, {2, 3, 1}, {3, 1, 2}}[k%3]
		}
		w.create(fmt.Sprint("t", i), parts...)
	}
	epoch := w.s.Image().Broker(1).Epoch
	w.s.Disconnected(w.now, 1, epoch)
	b.ReportAllocs()
	for b.Loop() {
		if r := w.s.ProbeRefused(w.call(), 1, epoch); len(r.Records) < 30_000 {
			b.Fatalf("%d records", len(r.Records))
		}
	}
}
