package wire

import (
	"bytes"
	"io"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// flatSink joins the pieces; files are read at once.
type flatSink struct{ out, buf []byte }

func (s *flatSink) Buffer() []byte     { return s.buf }
func (s *flatSink) SetBuffer(b []byte) { s.buf = b }
func (s *flatSink) Bytes(b []byte) {
	s.out = append(append(s.out, s.buf...), b...)
	s.buf = s.buf[:0]
}

func (s *flatSink) File(f io.ReaderAt, off int64, n int, release func()) {
	b := make([]byte, n)
	f.ReadAt(b, off)
	s.Bytes(b)
	if release != nil {
		release()
	}
}

func (s *flatSink) bytes() []byte { s.Bytes(nil); return s.out }

// kmsg is the oracle: same content, same bytes, in every version, wherever the
// records come from.
func TestFetchResponseBytesAreKmsgs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.Int16Range(4, 18).Draw(t, "version")
		oracle := kmsg.NewPtrFetchResponse()
		fill(t, reflect.ValueOf(oracle).Elem())
		oracle.Version = version
		if version < 16 {
			oracle.Brokers = nil // kmsg writes this tag from v12 on, Kafka from v16
		}
		pins := 0
		ours := fromKmsg(t, oracle, &pins)
		sink := &flatSink{}
		ours.Layout(sink)
		if got, want := sink.bytes(), oracle.AppendTo(nil); !bytes.Equal(got, want) {
			t.Fatalf("v%d\n got %x\nwant %x", version, got, want)
		}
		if pins != 0 {
			t.Fatalf("%d file ranges were not released", pins)
		}
	})
}

func fromKmsg(t *rapid.T, k *kmsg.FetchResponse, pins *int) *FetchResponse {
	r := &FetchResponse{Version: k.Version, ThrottleMillis: k.ThrottleMillis, Err: model.Error(k.ErrorCode), SessionID: k.SessionID}
	for _, kt := range k.Topics {
		topic := FetchTopic{Name: kt.Topic, ID: kt.TopicID}
		for i := range kt.Partitions {
			topic.Partitions = append(topic.Partitions, partitionFromKmsg(t, &kt.Partitions[i], pins))
		}
		r.Topics = append(r.Topics, topic)
	}
	for _, b := range k.Brokers {
		r.Nodes = append(r.Nodes, Node{ID: model.BrokerID(b.NodeID), Host: b.Host, Port: b.Port, Rack: b.Rack})
	}
	return r
}

func partitionFromKmsg(t *rapid.T, k *kmsg.FetchResponseTopicPartition, pins *int) FetchPartition {
	p := NewFetchPartition(k.Partition, model.Error(k.ErrorCode))
	p.HW, p.LSO, p.LogStart = model.Offset(k.HighWatermark), model.Offset(k.LastStableOffset), model.Offset(k.LogStartOffset)
	p.Preferred = model.BrokerID(k.PreferredReadReplica)
	p.Leader, p.LeaderEpoch = model.BrokerID(k.CurrentLeader.LeaderID), model.Epoch(k.CurrentLeader.LeaderEpoch)
	p.Diverging = model.EpochEnd{Epoch: model.Epoch(k.DivergingEpoch.Epoch), End: model.Offset(k.DivergingEpoch.EndOffset)}
	p.Snapshot = model.EpochEnd{Epoch: model.Epoch(k.SnapshotID.Epoch), End: model.Offset(k.SnapshotID.EndOffset)}
	if k.AbortedTransactions != nil {
		p.Aborted = []AbortedTxn{}
	}
	for _, a := range k.AbortedTransactions {
		p.Aborted = append(p.Aborted, AbortedTxn{Producer: model.ProducerID(a.ProducerID), First: model.Offset(a.FirstOffset)})
	}
	if !rapid.Bool().Draw(t, "from a file") {
		p.Records = Records{Bytes: k.RecordBatches}
		return p
	}
	*pins++
	file := append([]byte("before"), k.RecordBatches...)
	file = append(file, "after"...)
	p.Records = Records{File: bytes.NewReader(file), Off: 6, Len: len(k.RecordBatches), Release: func() { *pins-- }}
	return p
}

func TestNewFetchPartitionIsKafkasDefault(t *testing.T) {
	oracle := kmsg.NewFetchResponse()
	oracle.Version = 17
	part := kmsg.NewFetchResponseTopicPartition()
	part.Partition, part.ErrorCode, part.HighWatermark, part.RecordBatches = 3, 6, -1, []byte{}
	topic := kmsg.NewFetchResponseTopic()
	topic.Partitions = append(topic.Partitions, part)
	oracle.Topics = append(oracle.Topics, topic)

	ours := &FetchResponse{Version: 17, Topics: []FetchTopic{{
		Partitions: []FetchPartition{NewFetchPartition(3, model.ErrNotLeaderOrFollower)},
	}}}
	sink := &flatSink{}
	ours.Layout(sink)
	if got, want := sink.bytes(), oracle.AppendTo(nil); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestDiscardReleasesEveryRange(t *testing.T) {
	released := 0
	p := NewFetchPartition(0, model.None)
	p.Records = Records{File: bytes.NewReader(nil), Release: func() { released++ }}
	r := &FetchResponse{Version: 17, Topics: []FetchTopic{{Partitions: []FetchPartition{p, NewFetchPartition(1, model.None), p}}}}
	r.Discard()
	if released != 2 {
		t.Errorf("%d ranges released, want 2", released)
	}
}

func TestEncodingAFetchResponseAllocatesNothing(t *testing.T) {
	r := &FetchResponse{Version: 17, Topics: make([]FetchTopic, 10)}
	for i := range r.Topics {
		for j := range int32(10) {
			p := NewFetchPartition(j, model.None)
			p.Records.Bytes = []byte("records")
			r.Topics[i].Partitions = append(r.Topics[i].Partitions, p)
		}
	}
	sink := &flatSink{buf: make([]byte, 0, 1<<16), out: make([]byte, 0, 1<<16)}
	allocs := testing.AllocsPerRun(100, func() {
		sink.out = sink.out[:0]
		r.Layout(sink)
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
