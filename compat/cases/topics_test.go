package cases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/tidetest"
)

// metadataRequest asks for topics by name.
func metadataRequest(version int16, create bool, names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = version, create
	for _, name := range names {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// metadata asks a broker for topics by name.
func (w *world) metadata(broker int, version int16, create bool, names ...string) *kmsg.MetadataResponse {
	w.t.Helper()
	return ask[*kmsg.MetadataResponse](w, broker, metadataRequest(version, create, names...))
}

// allTopics are the names of all topics that a broker knows.
func (w *world) allTopics(broker int) (names []string) {
	w.t.Helper()
	for _, mt := range w.metadata(broker, 9, false).Topics {
		names = append(names, *mt.Topic)
	}
	return names
}

// B19: each name in a request has an element of its own in the answer, and nothing
// is created.
func TestEveryNameHasItsAnswer(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("ok", 2, 1, nil)
		names := map[string]model.Error{"ok": model.None, "missing": model.ErrUnknownTopicOrPartition, strings.Repeat("a", 249): model.ErrUnknownTopicOrPartition}
		for _, bad := range []string{"bad name!", "", ".", "..", strings.Repeat("a", 250), "a/b", "é", "a\x00"} {
			names[bad] = model.ErrInvalidTopicException
		}
		for _, version := range []int16{1, 9, 12} {
			var ask []string
			for name := range names {
				ask = append(ask, name)
			}
			resp := w.metadata(1, version, true, ask...)
			if len(resp.Topics) != len(names) || len(resp.Brokers) != 1 || resp.ControllerID != 1 {
				t.Fatalf("v%d: %d topics, %d brokers, controller %d", version, len(resp.Topics), len(resp.Brokers), resp.ControllerID)
			}
			for _, mt := range resp.Topics {
				code(t, fmt.Sprintf("v%d of %q", version, *mt.Topic), mt.ErrorCode, names[*mt.Topic])
				if n := len(mt.Partitions); *mt.Topic == "ok" && n != 2 || *mt.Topic != "ok" && n != 0 {
					t.Errorf("v%d: %q has %d partitions", version, *mt.Topic, n)
				}
			}
		}
		pass(10 * time.Second)
		if got := w.allTopics(1); fmt.Sprint(got) != "[ok]" {
			t.Errorf("topics %v", got)
		}
	}, tidetest.Set("auto.create.topics.enable", "false"))
}

// B20: topics are created on demand only for those who ask for it, and are said to
// be there when they are.
func TestTopicsAreCreatedOnDemandOnly(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.WaitFor("a controller is active", func() bool { return w.Controller() != 0 })
		code(t, "not allowed", w.metadata(1, 4, false, "t1").Topics[0].ErrorCode, model.ErrUnknownTopicOrPartition)
		if got := w.allTopics(1); len(got) != 0 {
			t.Errorf("topics %v", got)
		}
		for name, partitions := range map[string]int{"t2": 3, "__consumer_offsets": 8} {
			code(t, name, w.metadata(1, 4, true, name).Topics[0].ErrorCode, model.ErrUnknownTopicOrPartition, model.ErrLeaderNotAvailable)
			var mt kmsg.MetadataResponseTopic
			start := time.Now()
			w.WaitFor("there is "+name, func() bool {
				pass(100 * time.Millisecond)
				mt = w.metadata(1, 4, true, name).Topics[0]
				return mt.ErrorCode == 0 && !slices.ContainsFunc(mt.Partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return p.ErrorCode != 0 || p.Leader < 1 })
			})
			within(t, name, time.Since(start), 5*time.Second)
			if len(mt.Partitions) != partitions || len(mt.Partitions[0].Replicas) != 3 {
				t.Errorf("%s has %d partitions with %d replicas", name, len(mt.Partitions), len(mt.Partitions[0].Replicas))
			}
		}
		pass(5 * time.Second)
		if got := w.allTopics(2); slices.Contains(got, "t1") || len(got) != 2 {
			t.Errorf("topics %v", got)
		}
	}, tidetest.Set("auto.create.topics.enable", "true"), tidetest.Set("num.partitions", "3"))
}

// witness asks one broker for metadata again and again, and keeps what may not be.
type witness struct {
	broker  int
	wrong   []string
	epochs  map[int32]int32 // by partition
	brokers []int32
	answers int
}

// watch asks until stop is closed. A broker that is down is asked again.
func (x *witness) watch(w *world, topic string, stop <-chan struct{}) {
	req := metadataRequest(9, false, topic)
	for {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		c, err := w.tryDial(x.broker)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		resp, err := c.Do(ctx, req)
		cancel()
		c.Close()
		if err == nil {
			x.judge(resp.(*kmsg.MetadataResponse))
		}
	}
}

func (x *witness) judge(m *kmsg.MetadataResponse) {
	x.answers++
	x.brokers = x.brokers[:0]
	for _, b := range m.Brokers {
		x.brokers = append(x.brokers, b.NodeID)
	}
	for _, p := range m.Topics[0].Partitions {
		switch {
		case p.Leader == -1 && p.ErrorCode != model.ErrLeaderNotAvailable.Code(), p.Leader != -1 && !slices.Contains(x.brokers, p.Leader):
			x.wrong = append(x.wrong, fmt.Sprintf("leader %d, error %d, brokers %v", p.Leader, p.ErrorCode, x.brokers))
		case p.ErrorCode == 0 && (len(p.ISR) == 0 || slices.ContainsFunc(p.ISR, func(id int32) bool { return !slices.Contains(p.Replicas, id) })):
			x.wrong = append(x.wrong, fmt.Sprintf("ISR %v of %v", p.ISR, p.Replicas))
		case p.LeaderEpoch < x.epochs[p.Partition]:
			x.wrong = append(x.wrong, fmt.Sprintf("leader epoch %d after %d", p.LeaderEpoch, x.epochs[p.Partition]))
		}
		x.epochs[p.Partition] = p.LeaderEpoch
	}
}

// B22: whatever a broker tells of leaders and replicas fits the brokers that it
// tells of, and a dead broker is soon told of no more.
func TestMetadataIsConsistentWhileBrokersDie(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 6, 3, nil)
		stop := make(chan struct{})
		var all sync.WaitGroup
		var witnesses []*witness
		for id := 1; id <= 3; id++ {
			x := &witness{broker: id, epochs: map[int32]int32{}}
			witnesses = append(witnesses, x)
			all.Go(func() { x.watch(w, "t", stop) })
		}
		for dead := 1; dead <= 3; dead++ {
			w.Kill(dead)
			pass(3 * time.Second)
			for _, id := range []int{1, 2, 3} {
				if id == dead {
					continue
				}
				if bs := w.metadata(id, 9, false).Brokers; len(bs) != 2 {
					t.Errorf("broker %d tells of %d brokers 3 s after the death of broker %d", id, len(bs), dead)
				}
			}
			w.Restart(dead)
			for p := range 6 {
				w.WaitISR("t", p, 1, 2, 3)
			}
		}
		pass(time.Second)
		close(stop)
		all.Wait()
		for _, x := range witnesses {
			if len(x.wrong) > 0 || x.answers < 100 {
				t.Errorf("broker %d gave %d answers, %d of them wrong: %v", x.broker, x.answers, len(x.wrong), x.wrong[:min(3, len(x.wrong))])
			}
		}
		w.sameTopics(1, 2)
		w.sameTopics(1, 3)
	})
}

// sameTopics checks that two brokers tell the same of all partitions.
func (w *world) sameTopics(a, b int) {
	w.t.Helper()
	x, y := w.metadata(a, 9, false), w.metadata(b, 9, false)
	for i := range x.Topics {
		for j := range x.Topics[i].Partitions {
			p, q := x.Topics[i].Partitions[j], y.Topics[i].Partitions[j]
			if p.Leader != q.Leader || p.LeaderEpoch != q.LeaderEpoch || !slices.Equal(p.ISR, q.ISR) || !slices.Equal(p.Replicas, q.Replicas) {
				w.t.Errorf("brokers %d and %d tell %+v and %+v", a, b, p, q)
			}
		}
	}
}

// byID asks a broker for a topic by its id alone.
func (w *world) byID(broker int, version int16, id [16]byte) kmsg.MetadataResponseTopic {
	w.t.Helper()
	req := metadataRequest(version, false, "")
	req.Topics[0].Topic, req.Topics[0].TopicID = nil, id
	resp := ask[*kmsg.MetadataResponse](w, broker, req)
	if len(resp.Topics) != 1 {
		w.t.Fatalf("%d topics", len(resp.Topics))
	}
	return resp.Topics[0]
}

// B24: a topic is found by its id from Metadata v12 on, and its id never changes.
func TestATopicIsFoundByItsID(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		id := w.metadata(1, 10, false, "t").Topics[0].TopicID
		if id == ([16]byte{}) || id[6]>>4 != 4 || id[8]>>6 != 2 {
			t.Errorf("id %x is no random UUID", id)
		}
		mt := w.byID(2, 12, id)
		if code(t, "the id", mt.ErrorCode, model.None); mt.Topic == nil || *mt.Topic != "t" || len(mt.Partitions) != 1 || mt.TopicID != id {
			t.Errorf("found %+v", mt)
		}
		mt = w.byID(2, 12, [16]byte{6: 0x40, 8: 0x80, 15: 9})
		if code(t, "another id", mt.ErrorCode, model.ErrUnknownTopicID); mt.Topic != nil {
			t.Errorf("another id has the name %q", *mt.Topic)
		}
		for _, version := range []int16{10, 11} {
			code(t, fmt.Sprintf("v%d without a name", version), w.byID(2, version, id).ErrorCode, model.ErrInvalidRequest)
		}
		if mt = w.byID(2, 12, [16]byte{}); mt.ErrorCode == 0 {
			t.Error("neither id nor name is no error")
		}
		for broker := 1; broker <= 3; broker++ {
			w.Kill(broker)
			w.Restart(broker)
		}
		for broker := 1; broker <= 3; broker++ {
			if got := w.metadata(broker, 12, false, "t").Topics[0].TopicID; got != id {
				t.Errorf("broker %d: id %x, was %x", broker, got, id)
			}
		}
	})
}

// removeTopic deletes a topic by way of a broker that runs.
func (w *world) removeTopic(topic string) {
	w.t.Helper()
	broker := 1
	for !w.Running(broker) {
		broker++
	}
	code(w.t, "delete "+topic, w.deleteTopic(broker, topic), model.None)
}

// remains are the folders of a topic's partitions on a broker, those that wait for
// their removal too.
func (w *world) remains(broker int, topic string) []string {
	w.t.Helper()
	folders, err := filepath.Glob(filepath.Join(filepath.Dir(w.LogDir(broker, topic, 0)), topic+"-*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return folders
}

// B25: a topic that is created again is a new topic.
func TestATopicThatIsCreatedAgainIsNew(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 2, 3, map[string]string{"retention.ms": "3600000", "file.delete.delay.ms": "1000"})
		w.commitAlone("g", "t", 70)
		old := w.topicID("t")
		o := w.producerID(1)
		for i := range 10 {
			w.accepted("a batch", "t", numbered(o, int32(10*i), 10), int64(10*i))
		}
		w.WaitHW("t", 0, 100)
		w.Elect("t", 0, w.followers("t")[0])
		leader, _ := w.serving("t")
		w.deleteRecords(leader, "t", 50)
		w.removeTopic("t")
		w.CreateTopic("t", 2, 3, nil)
		w.WaitFor("all brokers know the new topic", func() bool { return !w.told(old) })
		w.isNew("t", old)
		w.accepted("the same producer", "t", numbered(o, 0, 10), 0)
		pass(6 * time.Second)
		for broker := 1; broker <= 3; broker++ {
			if got := w.remains(broker, "t"); len(got) != 2 {
				t.Errorf("broker %d keeps %v", broker, got)
			}
		}
	})
}

// isNew checks that nothing tells of a topic of the same name that had another id.
func (w *world) isNew(topic string, old [16]byte) {
	t := w.t
	leader, epoch := w.serving(topic)
	if w.topicID(topic) == old || epoch != 0 {
		t.Errorf("the new topic has the old id, or leader epoch %d", epoch)
	}
	f := at(topic, 0)
	f.version = 13
	req := f.request()
	req.Topics[0].TopicID = old
	code(t, "Fetch with the old id", ask[*kmsg.FetchResponse](w, leader, req).Topics[0].Partitions[0].ErrorCode, model.ErrUnknownTopicID)
	p, _ := w.fetch(leader, at(topic, 0))
	if code(t, "Fetch", p.ErrorCode, model.None); p.HighWatermark != 0 || len(p.RecordBatches) != 0 {
		t.Errorf("high watermark %d, %d bytes", p.HighWatermark, len(p.RecordBatches))
	}
	w.found(7, topic, earliest, 0, -1)
	w.found(7, topic, latest, 0, -1)
	if got := w.topicConfig(1, topic, "retention.ms"); got != "604800000" {
		t.Errorf("retention.ms is %s", got)
	}
	if got := w.committedOffset("g", topic); got != -1 {
		t.Errorf("the group's offset is %d", got)
	}
}

// B25: a fetch session that knows a deleted topic's id never gets what the new topic
// of that name holds.
func TestASessionOfADeletedTopicGetsNothingOfTheNewOne(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		w.mustProduce("t", "old")
		f, old := at("t", 1), w.topicID("t")
		f.version = 13
		req := f.request()
		req.SessionEpoch, req.Topics[0].TopicID = 0, old
		session := ask[*kmsg.FetchResponse](w, 1, req).SessionID
		w.removeTopic("t")
		w.WaitFor("the broker knows no such topic", func() bool { return !w.told(old) })
		w.CreateTopic("t", 1, 1, nil) // waits for the new one, not for the old one
		w.mustProduce("t", "new 0", "new 1")
		w.WaitHW("t", 0, 2)
		for epoch := int32(1); epoch < 4; epoch++ {
			next := kmsg.NewPtrFetchRequest()
			next.Version, next.MaxBytes, next.SessionID, next.SessionEpoch = 13, 50<<20, session, epoch
			resp := ask[*kmsg.FetchResponse](w, 1, next)
			code(t, "the session", resp.ErrorCode, model.None)
			if len(resp.Topics) != 1 || resp.Topics[0].TopicID != old {
				t.Fatalf("turn %d tells of %d topics", epoch, len(resp.Topics))
			}
			p := resp.Topics[0].Partitions[0]
			code(t, fmt.Sprint("turn ", epoch), p.ErrorCode, model.ErrUnknownTopicID, model.ErrInconsistentTopicID, model.ErrUnknownTopicOrPartition)
			if len(p.RecordBatches) != 0 {
				t.Errorf("turn %d: %d bytes of the new topic", epoch, len(p.RecordBatches))
			}
		}
	})
}

// told says whether any broker still tells of a topic's id.
func (w *world) told(id [16]byte) bool {
	w.t.Helper()
	for broker := 1; broker <= len(w.Addrs()); broker++ {
		if w.Running(broker) && w.byID(broker, 12, id).ErrorCode == 0 {
			return true
		}
	}
	return false
}

// B27: a broker that was down while a topic was deleted serves nothing of it, and
// holds the new topic of that name like all others.
func TestABrokerThatMissedADeletionServesNothingOfTheOldTopic(t *testing.T) {
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint("created again: ", again), func(t *testing.T) {
			inBubble(t, 3, func(w *world) { w.missesADeletion(again) })
		})
	}
}

func (w *world) missesADeletion(again bool) {
	t := w.t
	w.CreateTopic("t", 1, 3, minISR(2))
	w.mustProduce("t", "old 0", "old 1", "old 2")
	w.WaitHW("t", 0, 3)
	absent, old := w.followers("t")[0], w.topicID("t")
	w.Kill(absent)
	w.WaitFor("a controller is active", func() bool { return w.Controller() != 0 })
	w.removeTopic("t")
	start := time.Now()
	w.WaitFor("no broker tells of the topic", func() bool { return !w.told(old) })
	within(t, "the deletion", time.Since(start), 5*time.Second)
	if !again {
		w.Restart(absent)
		code(t, "the topic", w.metadata(absent, 12, false, "t").Topics[0].ErrorCode, model.ErrUnknownTopicOrPartition)
		w.WaitFor("the old log is out of the way", func() bool {
			_, err := os.Stat(w.LogDir(absent, "t", 0))
			return os.IsNotExist(err)
		})
		return
	}
	w.createOn("t", absent)
	for i := range 10 {
		w.mustProduce("t", fmt.Sprint("new ", i))
	}
	w.Restart(absent)
	w.WaitISR("t", 0, 1, 2, 3)
	w.WaitHW("t", 0, 10)
	w.Elect("t", 0, absent)
	got := w.read(absent, "t")
	for i := range 10 {
		if len(got) != 10 || got[int64(i)] != fmt.Sprint("new ", i) {
			t.Fatalf("the broker that was away serves %v", got)
		}
	}
}

// createOn creates a topic on all three brokers, one of which is down.
func (w *world) createOn(topic string, down int) {
	w.t.Helper()
	live := slices.DeleteFunc([]int32{1, 2, 3}, func(id int32) bool { return int(id) == down })
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 10_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, -1, -1
	rt.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: append(live, int32(down))}}
	req.Topics = append(req.Topics, rt)
	code(w.t, "create "+topic, ask[*kmsg.CreateTopicsResponse](w, int(live[0]), req).Topics[0].ErrorCode, model.None)
	w.serving(topic)
}

// B28: each way to ask for a deletion that cannot be has its code, and deletes
// nothing.
func TestADeletionThatCannotBeHasItsCode(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.CreateTopic(name, 1, 1, nil)
		}
		names := kmsg.NewPtrDeleteTopicsRequest()
		names.Version, names.TimeoutMillis, names.TopicNames = 1, 1000, []string{"a", "a", "missing"}
		for _, dt := range ask[*kmsg.DeleteTopicsResponse](w, 1, names).Topics {
			want := model.ErrInvalidRequest
			if *dt.Topic == "missing" {
				want = model.ErrUnknownTopicOrPartition
			}
			code(t, *dt.Topic, dt.ErrorCode, want)
		}
		b := w.topicID("b")
		ids := kmsg.NewPtrDeleteTopicsRequest()
		ids.Version, ids.TimeoutMillis = 6, 1000
		ids.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: b}, {TopicID: [16]byte{1, 6: 0x40, 8: 0x80}},
			{Topic: kmsg.StringPtr("c"), TopicID: w.topicID("c")}, {}}
		resp := ask[*kmsg.DeleteTopicsResponse](w, 1, ids)
		want := map[[16]byte]model.Error{b: model.None, ids.Topics[1].TopicID: model.ErrUnknownTopicID,
			ids.Topics[2].TopicID: model.ErrInvalidRequest, {}: model.ErrInvalidRequest}
		for _, dt := range resp.Topics {
			code(t, fmt.Sprintf("id %x", dt.TopicID[:4]), dt.ErrorCode, want[dt.TopicID])
			if dt.TopicID == b && (dt.ErrorCode != 0 || dt.Topic == nil || *dt.Topic != "b") {
				t.Errorf("deletion by id: %v, name %v", model.Error(dt.ErrorCode), dt.Topic)
			}
		}
		if len(resp.Topics) != 4 {
			t.Errorf("%d answers", len(resp.Topics))
		}
		start := time.Now()
		w.WaitFor("b alone is gone", func() bool { return fmt.Sprint(w.allTopics(1)) == "[a c]" })
		within(t, "the deletion", time.Since(start), atOnce)
	})
}

// B28: where deletion is switched off, nothing is deleted.
func TestWhereDeletionIsOffNothingIsDeleted(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("a", 1, 1, nil)
		for version := int16(1); version <= 6; version++ {
			req := kmsg.NewPtrDeleteTopicsRequest()
			req.Version, req.TimeoutMillis, req.TopicNames = version, 1000, []string{"a"}
			req.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: kmsg.StringPtr("a")}}
			want := model.ErrTopicDeletionDisabled
			if version < 3 {
				want = model.ErrInvalidRequest
			}
			code(t, fmt.Sprint("v", version), ask[*kmsg.DeleteTopicsResponse](w, 1, req).Topics[0].ErrorCode, want)
		}
		if got := w.allTopics(1); fmt.Sprint(got) != "[a]" {
			t.Errorf("topics %v are left", got)
		}
	}, tidetest.Set("delete.topic.enable", "false"))
}
