package cases

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/tidetest"
)

// B29: there are three values of acks, and no others.
func TestOtherValuesOfAcksAreRefused(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		for _, acks := range []int16{2, -2, 1<<15 - 1, -1 << 15} {
			p := w.produce(1, "t", acks, time.Second, batch("x"))
			code(t, fmt.Sprint("acks=", acks), p.ErrorCode, model.ErrInvalidRequiredAcks)
			if p.BaseOffset != -1 || w.end("t") != 0 {
				t.Errorf("acks=%d: base offset %d, log end %d", acks, p.BaseOffset, w.end("t"))
			}
		}
		p := w.produce(1, "t", 1, time.Second, batch("x"))
		code(t, "acks=1", p.ErrorCode, model.None)
		if p.BaseOffset != 0 {
			t.Errorf("acks=1: offset %d", p.BaseOffset)
		}
	})
}

// B30: acks=0 has no answer, and an error closes the connection.
func TestAcksZeroHasNoAnswerAndAnErrorClosesTheConnection(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		s := w.socket(1)
		s.put(requestBytes(produceRequest("t", 0, 0, time.Second, batch("x")), 1))
		meta := w.sound(3, 12)
		s.put(requestBytes(meta, 2))
		decoded(t, meta, s.mustTake(2))
		w.WaitHW("t", 0, 1)
		corrupt := batch("y")
		corrupt[len(corrupt)-2] ^= 1
		for what, req := range map[string]*kmsg.ProduceRequest{
			"an unknown partition": produceRequest("t", 99, 0, time.Second, batch("y")),
			"an unknown topic":     produceRequest("u", 0, 0, time.Second, batch("y")),
			"a bad checksum":       produceRequest("t", 0, 0, time.Second, corrupt),
		} {
			s := w.socket(1)
			s.put(requestBytes(req, 1))
			s.ends(what, time.Second)
		}
		if got := w.read(1, "t"); fmt.Sprint(got) != "map[0:x]" {
			t.Errorf("read %v", got)
		}
	})
}

// B32: a partition's part of a request is exactly one batch.
func TestAPartitionTakesExactlyOneBatch(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		one := batch("x")
		for what, set := range map[string][]byte{
			"two batches": append(bytes.Clone(one), one...), "no bytes": {}, "null": nil, "a byte": {0}, "a header": one[:record.HeaderSize],
			"half a batch": one[:len(one)-1], "a batch and a byte": append(bytes.Clone(one), 0),
			"a batch and a half": append(bytes.Clone(one), one[:40]...),
		} {
			w.denied(what, "t", set, model.ErrInvalidRecord)
		}
		w.accepted("one batch", "t", one, 0)
	})
}

// B34: a batch with a bad checksum never gets into the log. The leader epoch that
// a client sends, which no checksum covers, means nothing.
func TestABadChecksumIsRefused(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.Elect("t", 0, w.followers("t")[0])
		_, epoch := w.serving("t")
		good := batch("x", "y")
		for _, i := range []int{atBatchCRC, atAttributes, atLastDelta, atProducerID, record.HeaderSize, len(good) - 1} {
			bad := bytes.Clone(good)
			bad[i] ^= 0x40
			w.denied(fmt.Sprint("byte ", i, " flipped"), "t", bad, model.ErrCorruptMessage)
		}
		good[atBatchEpoch+3] ^= 0x40
		w.accepted("another leader epoch", "t", good, 0)
		w.WaitHW("t", 0, 2)
		if h, _ := w.headerAt("t", 0); int32(h.LeaderEpoch) != epoch {
			t.Errorf("stored with leader epoch %d, the leader's is %d", h.LeaderEpoch, epoch)
		}
	})
}

// B35: the offset that a client writes into a batch never makes a hole.
func TestABaseOffsetOfTheClientMakesNoHole(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		for _, base := range []model.Offset{1000, 1, -1, 1 << 62} {
			b := batch("x")
			record.Stamp(b, base, 0)
			w.denied(fmt.Sprint("base offset ", base), "t", b, model.ErrInvalidRecord)
		}
		w.accepted("base offset 0", "t", batch("x"), 0)
	})
}

// B36: the count of records and the last offset delta agree, with the records and
// with each other.
func TestTheCountAndTheLastOffsetAgree(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		for _, codec := range []record.Codec{record.CodecNone, record.CodecLZ4} {
			o := record.PlainOptions()
			o.Codec = codec
			three := batchOf(o, "a", "b", "c")
			for _, c := range [][2]int64{{3, 5}, {5, 4}, {3, 0}, {2, 1}, {0, -1}, {0, 2}, {-1, -2}, {1<<31 - 1, 1<<31 - 2}} {
				b := forged(forged(three, atCount, 4, c[0]), atLastDelta, 4, c[1])
				w.denied(fmt.Sprintf("%v: count %d, last offset delta %d", codec, c[0], c[1]), "t", b, model.ErrInvalidRecord)
			}
		}
		w.accepted("three records", "t", batch("a", "b", "c"), 0)
	})
}

// B38: a client cannot write what only a coordinator may.
func TestAClientCannotWriteAControlBatch(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		w.mustProduce("t", "x")
		plain, idempotent := batch("x"), batchOf(w.producerID(1), "x")
		marker := record.Marker{Producer: 5, Commit: true}.Batch(0, 0, 0)
		for what, b := range map[string][]byte{
			"control": forged(plain, atAttributes, 2, controlFlag), "control and transactional": forged(plain, atAttributes, 2, controlFlag|transactionFlag),
			"of a producer": forged(idempotent, atAttributes, 2, controlFlag), "a marker": marker,
		} {
			w.denied(what, "t", b, model.ErrInvalidRecord, model.ErrTransactionalIDAuthorizationFailed)
		}
		w.WaitHW("t", 0, 1)
		f := at("t", 0)
		f.committed = true
		if p, _ := w.fetch(1, f); p.LastStableOffset != 1 {
			t.Errorf("last stable offset %d", p.LastStableOffset)
		}
	})
}

// B39: a producer id comes with a sequence. A sequence without an id says
// nothing.
func TestAProducerIDComesWithASequence(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		o := record.PlainOptions()
		o.ProducerID, o.ProducerEpoch = 5, 0
		w.denied("no sequence", "t", batchOf(o, "x"), model.ErrInvalidRecord)
		w.accepted("no producer", "t", forged(batch("x"), atBaseSequence, 4, 7), 0)
		w.denied("a transaction of nobody", "t", forged(batch("x"), atAttributes, 2, transactionFlag), model.ErrInvalidRecord,
			model.ErrTransactionalIDAuthorizationFailed, model.ErrInvalidProducerEpoch, model.ErrInvalidTxnState)
		o.BaseSequence = 0
		w.accepted("the first sequence", "t", batchOf(o, "x"), 1)
	})
}

// B40: a compacted topic names the records that have no key.
func TestACompactedTopicNamesRecordsWithoutAKey(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		for i, policy := range []string{"compact", "compact,delete"} {
			topic := fmt.Sprint("t", i)
			w.CreateTopic(topic, 1, 1, map[string]string{"cleanup.policy": policy})
			b := record.NewBuilder(record.PlainOptions())
			for _, key := range [][]byte{[]byte("k"), nil, {}, nil, []byte("k")} {
				b.Add(1000, key, []byte("v"))
			}
			p := w.denied(policy, topic, b.Bytes(), model.ErrInvalidRecord)
			if len(p.ErrorRecords) != 2 || p.ErrorRecords[0].RelativeOffset != 1 || p.ErrorRecords[1].RelativeOffset != 3 ||
				p.ErrorRecords[0].ErrorMessage == nil || p.ErrorMessage == nil {
				t.Errorf("%s: records %+v, message %v", policy, p.ErrorRecords, p.ErrorMessage)
			}
			req := produceRequest(topic, 0, -1, time.Second, b.Bytes())
			req.Version = 7
			old := ask[*kmsg.ProduceResponse](w, 1, req).Topics[0].Partitions[0]
			code(t, "v7", old.ErrorCode, model.ErrInvalidRecord, model.ErrCorruptMessage)
			b.Reset(record.PlainOptions())
			b.Add(1000, []byte{}, []byte("v"))
			w.accepted("an empty key", topic, b.Bytes(), 0)
		}
	})
}

// B42: the limit of a batch is that of all its bytes, to the byte.
func TestTheLimitOfABatchIsExact(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 2, 3, map[string]string{"max.message.bytes": "10000", "min.insync.replicas": "3"})
		w.accepted("10000 bytes", "t", sized(t, 10_000), 0)
		w.denied("10001 bytes", "t", sized(t, 10_001), model.ErrMessageTooLarge)
		w.Elect("t", 1, w.Leader("t", 0))
		req := produceRequest("t", 0, -1, 10*time.Second, sized(t, 10_000))
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, produceRequest("t", 1, -1, 0, sized(t, 10_001)).Topics[0].Partitions...)
		ps := ask[*kmsg.ProduceResponse](w, w.Leader("t", 0), req).Topics[0].Partitions
		code(t, "beside a batch that is too large", ps[0].ErrorCode, model.None)
		code(t, "a batch that is too large", ps[1].ErrorCode, model.ErrMessageTooLarge)
		o := record.PlainOptions()
		o.Codec = record.CodecZstd
		w.accepted("20000 bytes that are packed", "t", batchOf(o, string(make([]byte, 20_000))), 2)
		if got := w.topicConfig(1, "t", "max.message.bytes"); got != "10000" {
			t.Errorf("max.message.bytes is described as %s", got)
		}
	})
}

// topicConfig asks a broker for one key of a topic.
func (w *world) topicConfig(broker int, topic, key string) string {
	w.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = 4
	rr := kmsg.NewDescribeConfigsRequestResource()
	rr.ResourceType, rr.ResourceName, rr.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{key}
	req.Resources = append(req.Resources, rr)
	r := ask[*kmsg.DescribeConfigsResponse](w, broker, req).Resources[0]
	if len(r.Configs) != 1 || r.Configs[0].Value == nil {
		w.t.Fatalf("describe %s of %s: %v, %d configs", key, topic, model.Error(r.ErrorCode), len(r.Configs))
	}
	return *r.Configs[0].Value
}

// B44: a batch that fits into no segment is refused; the others roll segments.
func TestABatchThatFitsIntoNoSegmentIsRefused(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		const segment = 1 << 20
		w.CreateTopic("t", 1, 1, map[string]string{"segment.bytes": fmt.Sprint(segment), "max.message.bytes": fmt.Sprint(4 * segment)})
		w.denied("beyond a segment", "t", sized(t, segment+1), model.ErrRecordListTooLarge)
		w.accepted("a whole segment", "t", sized(t, segment), 0)
		for i := range int64(10) {
			w.accepted("nearly a segment", "t", sized(t, segment*9/10), i+1)
		}
		w.WaitHW("t", 0, 11)
		if got := w.read(1, "t"); len(got) != 11 {
			t.Errorf("%d records are read", len(got))
		}
	})
}

// B53: clients do not write into internal topics, but may read them.
func TestClientsCannotWriteInternalTopics(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("t", 1, 1, nil)
		w.commitAlone("g", "t", 5)
		p := w.offsetsPartition("g")
		for _, acks := range []int16{1, -1} {
			req := produceRequest("__consumer_offsets", p, acks, time.Second, batch("x"))
			got := ask[*kmsg.ProduceResponse](w, 1, req).Topics[0].Partitions[0]
			code(t, fmt.Sprint("acks=", acks), got.ErrorCode, model.ErrInvalidTopicException)
		}
		if got := w.committedOffset("g", "t"); got != 5 {
			t.Errorf("the group's offset is %d", got)
		}
		f := at("__consumer_offsets", 0)
		f.partition = p
		read, _ := w.fetch(1, f)
		code(t, "reading", read.ErrorCode, model.None)
		if len(w.values(read, 0)) != 1 {
			t.Errorf("%d records are read", len(w.values(read, 0)))
		}
	})
}

// B54: a follower appends nothing and, to those who can hear it, says who leads.
func TestAFollowerSaysWhoLeads(t *testing.T) {
	racks := []string{"a", "b", "c"}
	inBubble(t, 3, func(w *world) {
		w.CreateTopic("t", 1, 3, nil)
		w.Elect("t", 0, w.followers("t")[0])
		leader, epoch := w.serving("t")
		follower := w.followers("t")[0]
		for version := int16(3); version <= 13; version++ {
			req := produceRequest("t", 0, -1, time.Second, batch("x"))
			req.Version, req.Topics[0].TopicID = version, w.topicID("t")
			resp := ask[*kmsg.ProduceResponse](w, follower, req)
			p := resp.Topics[0].Partitions[0]
			code(t, fmt.Sprint("v", version), p.ErrorCode, model.ErrNotLeaderOrFollower)
			if leo, _ := w.mark(follower, "t"); p.BaseOffset != -1 || leo != 0 {
				t.Errorf("v%d: base offset %d, log end %d", version, p.BaseOffset, leo)
			}
			if version < 10 {
				continue
			}
			if p.CurrentLeader.LeaderID != int32(leader) || p.CurrentLeader.LeaderEpoch != epoch || len(resp.Brokers) != 1 {
				t.Fatalf("v%d: leader %+v, %d brokers; broker %d leads in epoch %d", version, p.CurrentLeader, len(resp.Brokers), leader, epoch)
			}
			b := resp.Brokers[0]
			if addr := fmt.Sprintf("%s:%d", b.Host, b.Port); addr != w.Addrs()[leader-1] || b.NodeID != int32(leader) ||
				b.Rack == nil || *b.Rack != racks[leader-1] {
				t.Errorf("v%d: node %+v", version, b)
			}
		}
	}, tidetest.Racks(racks...))
}

// B56: each partition of a request has an answer of its own.
func TestOneBadPartitionDoesNotSpoilTheOthers(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		w.CreateTopic("a", 3, 1, map[string]string{"max.message.bytes": "10000"})
		w.CreateTopic("b", 2, 1, map[string]string{"cleanup.policy": "compact"})
		bad := batch("y")
		bad[len(bad)-2] ^= 1
		req := produceRequest("a", 0, -1, time.Second, batch("good"))
		add := func(topic int, name string, partition int32, set []byte) {
			more := produceRequest(name, partition, -1, time.Second, set).Topics
			if topic == len(req.Topics) {
				req.Topics = append(req.Topics, more...)
				return
			}
			req.Topics[topic].Partitions = append(req.Topics[topic].Partitions, more[0].Partitions...)
		}
		add(0, "a", 1, bad)
		add(0, "a", 2, sized(t, 10_001))
		add(1, "b", 99, batch("nowhere"))
		add(1, "b", 0, batch("no key"))
		add(1, "b", 1, timed(record.PlainOptions(), 1000))
		resp := ask[*kmsg.ProduceResponse](w, 1, req)
		for i, want := range [][]model.Error{{model.None, model.ErrCorruptMessage, model.ErrMessageTooLarge},
			{model.ErrUnknownTopicOrPartition, model.ErrInvalidRecord, model.None}} {
			if len(resp.Topics) != 2 || len(resp.Topics[i].Partitions) != 3 {
				t.Fatalf("the answer has not an element for each partition: %+v", resp.Topics)
			}
			for j, p := range resp.Topics[i].Partitions {
				code(t, fmt.Sprintf("%s-%d", resp.Topics[i].Topic, p.Partition), p.ErrorCode, want[j])
			}
		}
		if got := w.read(1, "a"); fmt.Sprint(got) != "map[0:good]" {
			t.Errorf("read %v", got)
		}
		f := at("b", 0)
		f.partition = 1
		if p, _ := w.fetch(1, f); len(w.values(p, 0)) != 1 {
			t.Errorf("%d records in b-1", len(w.values(p, 0)))
		}
	})
}
