package preview

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/wire"
)

func batchOf(opts record.BatchOptions, bytes int) []byte {
	b := record.NewBuilder(opts)
	b.Add(1_700_000_000_000, nil, make([]byte, bytes))
	return b.Bytes()
}

// arrive has a preview see a frame come in pieces.
func arrive(frame []byte, version int16, rng *rand.Rand) *Preview {
	p := New(version)
	most := 1 + rng.IntN(1+len(frame))
	for came := 0; came < len(frame); {
		came = min(len(frame), came+1+rng.IntN(most))
		p.Extend(frame[:came:came])
	}
	return p
}

// seenBatches counts the batches of a request that a preview saw, each in its place.
func seenBatches(p *Preview, frame []byte, req *kmsg.ProduceRequest) (seen, all int) {
	for _, t := range req.Topics {
		for _, part := range t.Partitions {
			if len(part.Records) > 0 && p.Survey(all, frame, part.Records) != nil {
				seen++
			}
			all++
		}
	}
	return seen, all
}

// produceFrame is a request with some batches, as it comes on a connection, and as it
// is decoded.
func produceFrame(t *testing.T, version int16, topics, parts int, client kmsg.RequestFormatter) ([]byte, *kmsg.ProduceRequest) {
	t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks = version, -1
	for i := range topics {
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic, topic.TopicID[0] = fmt.Sprint("topic-", i), byte(i)
		for j := range parts {
			part := kmsg.NewProduceRequestTopicPartition()
			part.Partition, part.Records = int32(j), batchOf(record.PlainOptions(), 1+10*j)
			topic.Partitions = append(topic.Partitions, part)
		}
		req.Topics = append(req.Topics, topic)
	}
	frame := client.AppendRequest(nil, req, 7)[4:]
	return frame, decoded(t, frame, version)
}

func decoded(t *testing.T, frame []byte, version int16) *kmsg.ProduceRequest {
	t.Helper()
	h, body, err := wire.ParseRequest(frame)
	if err != nil || h.Version != version {
		t.Fatalf("version %d: %v", h.Version, err)
	}
	req := &kmsg.ProduceRequest{Version: version}
	if err := req.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	return req
}

func TestAPreviewSeesEveryBatchOfEveryVersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for version := range int16(14) {
		for _, f := range []*kmsg.RequestFormatter{kmsg.NewRequestFormatter(), kmsg.NewRequestFormatter(kmsg.FormatterClientID("a client"))} {
			for topics := range 4 {
				frame, req := produceFrame(t, version, topics, topics, *f)
				for range 5 {
					p := arrive(frame, version, rng)
					if seen, all := seenBatches(p, frame, req); seen != all || p.unwanted {
						t.Errorf("version %d: %d of %d batches were seen", version, seen, all)
					}
					p.Free()
				}
			}
		}
	}
}

// What a preview does not expect, an empty batch, tags, or nonsense, ends it: what it
// has seen by then is right, and for the rest it does not vouch.
func TestAPreviewVouchesForNothingElse(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 20_000 {
		version := int16(rng.IntN(14))
		frame, _ := produceFrame(t, version, 2, 3, *kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")))
		for range 1 + rng.IntN(3) {
			frame[4+rng.IntN(len(frame)-4)] = byte(rng.Uint32())
		}
		p := arrive(frame, version, rng)
		_, body, err := wire.ParseRequest(frame)
		req := &kmsg.ProduceRequest{Version: version}
		if err != nil || req.ReadFrom(body) != nil {
			continue
		}
		i := 0
		for _, topic := range req.Topics {
			for _, part := range topic.Partitions {
				without := record.CheckRules{BeforeMax: record.NoTimeLimit, AfterMax: record.NoTimeLimit}
				with := without
				with.Seen = p.Survey(i, frame, part.Records)
				if got, want := record.Check(part.Records, 0, &with), record.Check(part.Records, 0, &without); got.Err != want.Err || got.Message != want.Message {
					t.Fatalf("version %d, batch %d: %v %q with a preview, %v %q without", version, i, got.Err, got.Message, want.Err, want.Message)
				}
				i++
			}
		}
	}
}

// A topic without partitions has a tag section too, and a null batch is no batch.
func TestAPreviewGoesOnBehindAnEmptyTopic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, version := range []int16{8, 9, 13} {
		req := kmsg.NewPtrProduceRequest()
		req.Version = version
		full := kmsg.NewProduceRequestTopic()
		part := kmsg.NewProduceRequestTopicPartition()
		part.Records = batchOf(record.PlainOptions(), 3)
		full.Partitions = append(full.Partitions, part)
		req.Topics = append(req.Topics, kmsg.NewProduceRequestTopic(), full)
		frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)[4:]
		got := decoded(t, frame, version)
		if seen, _ := seenBatches(arrive(frame, version, rng), frame, got); seen != 1 {
			t.Errorf("version %d: the batch behind an empty topic was not seen", version)
		}
		req.Topics[1].Partitions[0].Records = nil
		frame = kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)[4:]
		if p := arrive(frame, version, rng); !p.unwanted || len(p.surveys) != 0 {
			t.Errorf("version %d: a null batch was surveyed", version)
		}
	}
}
