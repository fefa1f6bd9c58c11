package cases

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// B87: a leader tells a client with an old leader epoch from one that knows a
// newer epoch than itself, whatever else the request asks for.
func TestALeaderFencesByItsEpoch(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.mustProduce("t", "a", "b")
		leader, epoch := w.serving("t")
		for epoch < 3 {
			w.Elect("t", 0, w.followers("t")[0])
			leader, epoch = w.serving("t")
		}
		w.WaitHW("t", 0, 2)
		for _, c := range []struct {
			current int32
			want    model.Error
		}{{epoch, model.None}, {-1, model.None}, {epoch - 1, model.ErrFencedLeaderEpoch}, {0, model.ErrFencedLeaderEpoch},
			{epoch + 1, model.ErrUnknownLeaderEpoch}, {1 << 30, model.ErrUnknownLeaderEpoch}} {
			what := func(request string) string { return fmt.Sprintf("%s with epoch %d of %d", request, c.current, epoch) }
			f := at("t", 1)
			f.currentEpoch = c.current
			p, _ := w.fetch(leader, f)
			code(t, what("Fetch"), p.ErrorCode, c.want)
			f.offset = 100
			p, _ = w.fetch(leader, f)
			beyond := c.want
			if beyond == model.None {
				beyond = model.ErrOffsetOutOfRange
			}
			code(t, what("Fetch beyond the log end"), p.ErrorCode, beyond)
			for _, timestamp := range []int64{-1, -2, 0, 1 << 60} {
				code(t, what(fmt.Sprint("ListOffsets of ", timestamp)), w.listAt(leader, "t", c.current, timestamp), c.want)
			}
			for _, e := range []int32{0, epoch, 1000} {
				code(t, what(fmt.Sprint("OffsetForLeaderEpoch of ", e)), w.endOf(leader, "t", c.current, e).ErrorCode, c.want)
			}
		}
	})
}

// listAt asks for an offset of partition 0 as a client that knows a leader epoch,
// and returns the error code.
func (w *world) listAt(broker int, topic string, current int32, timestamp int64) int16 {
	w.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.CurrentLeaderEpoch, p.Timestamp = current, timestamp
	rt.Partitions = append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.ListOffsetsResponse](w, broker, req).Topics[0].Partitions[0].ErrorCode
}

// endOf asks where a leader epoch of partition 0 ended.
func (w *world) endOf(broker int, topic string, current, epoch int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	w.t.Helper()
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Version, req.ReplicaID = 4, -1
	rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
	rt.Topic = topic
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LeaderEpoch = current, epoch
	rt.Partitions = append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.OffsetForLeaderEpochResponse](w, broker, req).Topics[0].Partitions[0]
}

// B95: a follower serves consumers from Fetch v11 on, up to its own high
// watermark.
func TestAFollowerServesConsumersUpToItsOwnHighWatermark(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(1))
		leader, followers := w.Leader("t", 0), w.followers("t")
		f1, f2 := followers[0], followers[1]
		w.mustProduce("t", "0", "1", "2", "3", "4")
		w.WaitFor("the follower knows what is committed", func() bool { _, hw := w.mark(f1, "t"); return hw == 5 })
		w.Pause(f2)
		for i := range 5 {
			code(t, "acks=1", w.produce(leader, "t", 1, time.Second, batch(fmt.Sprint(5+i))).ErrorCode, model.None)
		}
		w.WaitFor("the follower has more than is committed", func() bool { leo, _ := w.mark(f1, "t"); return leo == 10 })
		old := at("t", 0)
		old.version = 10
		p, _ := w.fetch(f1, old)
		code(t, "v10", p.ErrorCode, model.ErrNotLeaderOrFollower)
		for _, rack := range []string{"", "r1"} {
			for offset := int64(0); offset <= 10; offset++ {
				w.readsToHW(f1, rack, offset, 5)
			}
		}
		beyond := at("t", 11)
		beyond.version = 11
		p, _ = w.fetch(f1, beyond)
		code(t, "v11 beyond the follower's log end", p.ErrorCode, model.ErrOffsetOutOfRange)
	}, steady()...)
}

// readsToHW checks that a follower shows what lies below its high watermark.
func (w *world) readsToHW(broker int, rack string, offset, hw int64) {
	w.t.Helper()
	f := at("t", offset)
	f.version, f.rack, f.wait = 11, rack, 100*time.Millisecond
	p, _ := w.fetch(broker, f)
	code(w.t, fmt.Sprintf("v11 at %d from rack %q", offset, rack), p.ErrorCode, model.None)
	if p.HighWatermark != hw || p.PreferredReadReplica != -1 {
		w.t.Errorf("at %d: high watermark %d, preferred replica %d", offset, p.HighWatermark, p.PreferredReadReplica)
	}
	if got := w.values(p, offset); int64(len(got)) != max(0, hw-offset) {
		w.t.Errorf("at %d: %v is read, the high watermark is %d", offset, got, hw)
	}
}

// B96: a leader sends a consumer to the in-sync follower in its rack, and serves
// all others itself.
func TestALeaderSendsAConsumerToTheReplicaInItsRack(t *testing.T) {
	racks := []string{"a", "b", "c"}
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		leader, near := w.Leader("t", 0), w.followers("t")[0]
		w.mustProduce("t", "0", "1")
		w.WaitFor("the follower knows what is committed", func() bool { _, hw := w.mark(near, "t"); return hw == 2 })
		f := at("t", 0)
		f.version, f.rack, f.wait = 11, racks[near-1], 5*time.Second
		for _, f.offset = range []int64{0, 2} {
			p, took := w.fetch(leader, f)
			code(t, "from the follower's rack", p.ErrorCode, model.None)
			within(t, "the redirection", took, atOnce)
			if int(p.PreferredReadReplica) != near || len(p.RecordBatches) != 0 || p.HighWatermark != 2 || p.LogStartOffset != 0 {
				t.Errorf("at %d: replica %d, %d bytes, high watermark %d, log start %d", f.offset,
					p.PreferredReadReplica, len(p.RecordBatches), p.HighWatermark, p.LogStartOffset)
			}
		}
		for _, own := range []wish{{version: 11, rack: racks[leader-1]}, {version: 11, rack: "elsewhere"}, {version: 11}, {version: 10}} {
			f := at("t", 0)
			f.version, f.rack = own.version, own.rack
			p, _ := w.fetch(leader, f)
			if p.PreferredReadReplica != -1 || len(w.values(p, 0)) == 0 {
				t.Errorf("v%d from rack %q: replica %d, %d bytes", f.version, f.rack, p.PreferredReadReplica, len(p.RecordBatches))
			}
		}
		for i := range loops(20) {
			w.mustProduce("t", "x")
			f.offset = int64(2 + i)
			p, took := w.fetch(near, f)
			within(t, "the record on the follower", took, time.Second)
			if got := w.values(p, f.offset); len(got) != 1 {
				t.Errorf("at %d the follower shows %v", f.offset, got)
			}
		}
	}, rackAware(racks...)...)
}

// B96: a follower outside the ISR is nobody's replica to read from.
func TestALeaderSendsNobodyToAReplicaOutsideTheISR(t *testing.T) {
	racks := []string{"a", "b", "c"}
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, minISR(1))
		leader, near := w.Leader("t", 0), w.followers("t")[0]
		w.mustProduce("t", "0")
		w.Pause(near)
		w.mustProduce("t", "1")
		f := at("t", 1)
		f.version, f.rack = 11, racks[near-1]
		p, _ := w.fetch(leader, f)
		if p.PreferredReadReplica != -1 || len(w.values(p, 1)) != 1 {
			t.Errorf("replica %d, %d bytes", p.PreferredReadReplica, len(p.RecordBatches))
		}
		w.Resume(near)
		w.WaitISR("t", 0, 1, 2, 3)
		w.WaitFor("the leader sends to the replica again", func() bool {
			p, _ := w.fetch(leader, f)
			return int(p.PreferredReadReplica) == near
		})
	}, append(rackAware(racks...), brisk()...)...)
}

func rackAware(racks ...string) []tidetest.Option {
	return []tidetest.Option{tidetest.Racks(racks...),
		tidetest.Set("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector")}
}
