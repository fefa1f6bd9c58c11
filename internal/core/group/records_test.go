package group

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

func fresh() *Shard { return New(newEnv().cfg, 0, origin) }

// The bytes that Kafka's own brokers and console tools read.
func TestRecordsHaveKafkasBytes(t *testing.T) {
	o := offsetRecord("g", topicPartition{"t", 1}, offset{offset: 5, leaderEpoch: 7, metadata: "m", committed: 1000})
	g := newGroup("g", 2000)
	g.generation = 3
	g.add(&member{id: "a-1", clientID: "a", host: "/h", sessionTimeout: millis(10), rebalanceTimeout: millis(20),
		protocols: []protocol{{name: "range", metadata: []byte("s")}}, assignment: []byte("x")}, consumerProtocol)
	g.protocol = "range"
	m := g.record(2000, nil)
	for _, c := range []struct{ what, got, want string }{
		{"offset key", string(o.Key), "0001 0001 67 0001 74 00000001"},
		{"offset value", string(o.Value), "0003 0000000000000005 00000007 0001 6d 00000000000003e8"},
		{"group key", string(m.Key), "0002 0001 67"},
		{"group value", string(m.Value), "0003 0008 636f6e73756d6572 00000003 0005 72616e6765 0003 612d31 00000000000007d0 00000001" +
			"0003 612d31 ffff 0001 61 0002 2f68 00000014 0000000a 00000001 73 00000001 78"},
	} {
		if got := hex.EncodeToString([]byte(c.got)); got != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("%s is %s, want %s", c.what, got, c.want)
		}
	}
}

func TestTransactionalOffsetsWaitForTheirMarker(t *testing.T) {
	s := fresh()
	tp := topicPartition{"t", 0}
	put := func(at model.Offset, id model.ProducerID) {
		if err := s.Replay(offsetRecord("g", tp, offset{offset: at, leaderEpoch: -1}), id); err != nil {
			t.Fatal(err)
		}
	}
	get := func(stable bool) string {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.Group, req.RequireStable = 7, "g", stable
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0}}}
		return show(s.Handle(0, origin, Request{Req: req}).Replies[0].Resp)
	}
	expect := func(stable bool, want string) {
		t.Helper()
		if got := get(stable); got != want {
			t.Errorf("offset is %q, want %q", got, want)
		}
	}
	put(5, model.NoProducerID)
	put(6, 1)
	put(7, 2)
	expect(false, "get ok t/0:5")
	expect(true, "get ok t/0:-1:UNSTABLE_OFFSET_COMMIT")
	s.EndTransaction(2, false)
	s.EndTransaction(1, true)
	expect(true, "get ok t/0:6")
}

func TestAnOffsetInATransactionDoesNotExpire(t *testing.T) {
	s := fresh()
	for i, id := range []model.ProducerID{model.NoProducerID, 1, model.NoProducerID} {
		tp := topicPartition{"t", int32(i / 2)}
		if err := s.Replay(offsetRecord("g", tp, offset{leaderEpoch: -1, committed: origin}), id); err != nil {
			t.Fatal(err)
		}
	}
	s.Loaded(0, origin)
	later := s.cfg.Retention + s.cfg.CheckInterval
	r := s.Tick(model.Time(later), origin+model.Millis(later.Milliseconds()))
	if len(r.Writes) != 1 || len(r.Writes[0].Records) != 1 || describe(r.Writes[0].Records[0]) != "g t-1: nothing" {
		t.Errorf("writes %v, want the tombstone of t-1 only", r.Writes)
	}
}

func TestUnreadableRecordsChangeNothing(t *testing.T) {
	s := fresh()
	good := offsetRecord("g", topicPartition{"t", 0}, offset{offset: 5})
	twice := newGroup("g", 0)
	for range 2 {
		twice.add(&member{id: "a", sessionTimeout: millis(10)}, consumerProtocol)
	}
	for _, r := range []Record{
		twice.record(0, nil),
		{Key: nil}, {Key: []byte{0}}, {Key: []byte{0, 9}}, {Key: []byte{0, 3, 1, 2}, Value: []byte{1}},
		{Key: []byte{0, 1, 0, 9}}, {Key: good.Key, Value: []byte{0, 3}}, {Key: groupKey("g"), Value: []byte{0, 3, 0}},
		{Key: groupKey("g"), Value: append([]byte{0, 3, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0}, 0x7f, 255, 255, 255)},
	} {
		if err := s.Replay(r, model.NoProducerID); err == nil {
			t.Errorf("%x was read", r.Key)
		}
	}
	if len(s.groups) != 0 {
		t.Errorf("%d groups came of garbage", len(s.groups))
	}
}
