package api

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/preview"
	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// produceCall is one Produce request from its frame to its answer. Parts are
// the partitions of all topics in the order of the request.
type produceCall struct {
	d     *DataPath
	r     *transport.Request
	in    kmsg.ProduceRequest
	img   *image.Image
	work  Produce
	said  []verdict        // parallel to work.Parts
	seen  *preview.Preview // until the batches are checked; nil when there is none
	grown int64            // bytes that batches of the request took more when they were repacked
}

// maxGrowth bounds what the batches of one request may take more than what came.
const maxGrowth = 64 << 20

// verdict is what the check of a batch says to the client besides the code.
type verdict struct {
	message string
	bad     []record.BadRecord
	append  model.Millis
	size    int // bytes that came
}

// Produce serves key 0, versions 0 to 13: it checks every batch and posts what
// is sound (R2.1-R2.6, KIP-467, 516, 951). Unsound partitions fail alone.
func (d *DataPath) Produce(r *transport.Request) {
	c := &produceCall{d: d, r: r, img: d.Image()}
	c.in.Version = r.Header.Version
	if err := c.in.ReadFrom(r.Body); err != nil {
		r.CloseConn(fmt.Errorf("decode produce request: %w", err))
		return
	}
	r.Retain()
	c.seen, _ = r.Preview.(*preview.Preview)
	c.work = Produce{Acks: c.in.Acks, Timeout: time.Duration(c.in.TimeoutMillis) * time.Millisecond,
		Stored: c.stored, Done: c.done}
	n := 0
	for i := range c.in.Topics {
		n += len(c.in.Topics[i].Partitions)
	}
	c.work.Parts = make([]ProducePart, 0, n)
	c.said = make([]verdict, 0, n)
	for i := range c.in.Topics {
		t := &c.in.Topics[i]
		for j := range t.Partitions {
			c.work.Parts = append(c.work.Parts, ProducePart{})
			c.said = append(c.said, verdict{append: -1, size: len(t.Partitions[j].Records)})
			c.check(t, &t.Partitions[j], len(c.work.Parts)-1)
		}
	}
	if c.seen != nil {
		c.seen.Free()
		c.seen, r.Preview = nil, nil
	}
	d.Replicas.Produce(&c.work)
}

// check judges one partition's batch and fills its part in.
func (c *produceCall) check(t *kmsg.ProduceRequestTopic, p *kmsg.ProduceRequestTopicPartition, i int) {
	part, said := &c.work.Parts[i], &c.said[i]
	part.Base, part.Timestamp, part.LogStart = model.UnknownOffset, -1, model.UnknownOffset
	part.Leader, part.LeaderEpoch = model.NoBroker, model.NoEpoch
	if c.in.Acks < -1 || c.in.Acks > 1 {
		part.Err = model.ErrInvalidRequiredAcks
		return
	}
	topic, h, err := c.place(t, p.Partition)
	if err == model.ErrNotLeaderOrFollower {
		part.Leader, part.LeaderEpoch = leaderOf(topic, p.Partition)
	}
	if err == model.None && internalTopic(h.TP.Topic) {
		err = model.ErrInvalidTopicException
	}
	if err != model.None {
		part.Err = err
		return
	}
	rules := c.rules(c.d.Topic(h.TP.Topic))
	rules.Seen = c.seen.Survey(i, c.r.Frame(), p.Records)
	res := record.Check(p.Records, c.d.Wall(), rules)
	if res.Err != model.None {
		part.Err, said.message, said.bad = res.Err, res.Message, res.Bad
		return
	}
	if grown := int64(len(res.Batch) - len(p.Records)); grown > 0 {
		if c.grown += grown; c.grown > maxGrowth {
			part.Err, said.message = model.ErrRecordListTooLarge, "the batches of the request take too much when they are unpacked: send fewer at once"
			return
		}
		c.r.Grow(grown)
	}
	said.append = res.AppendTime
	part.Hosted, part.Batch, part.Producer = h, res.Batch, res.Header.Producer()
}

func (c *produceCall) place(t *kmsg.ProduceRequestTopic, partition int32) (*image.Topic, *Hosted, model.Error) {
	if c.in.Version >= 13 {
		h, err := c.d.placeByID(c.img, t.TopicID, partition)
		return c.img.TopicByID(t.TopicID), h, err
	}
	h, err := c.d.placeByName(c.img, t.Topic, partition)
	return c.img.TopicByName(t.Topic), h, err
}

// rules are what the topic and the version of the request allow.
func (c *produceCall) rules(t *config.Topic) *record.CheckRules {
	return &record.CheckRules{
		MaxBytes: t.MaxMessageBytes, SegmentBytes: t.SegmentBytes, MaxRecord: t.MaxDecompressedBytes,
		Compacted: t.CleanupCompact, LogAppendTime: t.LogAppendTime,
		BeforeMax: bound(t.TimestampBeforeMax), AfterMax: bound(t.TimestampAfterMax),
		Codec: record.Codec(t.Codec), Level: level(t), NoZstd: c.in.Version < 7, Room: c.r,
	}
}

func bound(d time.Duration) model.Millis {
	if d == config.Forever {
		return record.NoTimeLimit
	}
	return model.Millis(d.Milliseconds())
}

func level(t *config.Topic) int {
	switch t.Codec {
	case config.CodecGzip:
		return t.GzipLevel
	case config.CodecLZ4:
		return t.LZ4Level
	case config.CodecZstd:
		return t.ZstdLevel
	}
	return 0
}

// stored gives the frame back: what waits for other replicas does not count as
// in flight, else one slow partition would keep the producers of all out.
func (c *produceCall) stored() {
	for i := range c.work.Parts {
		c.work.Parts[i].Batch = nil
	}
	c.r.Release()
	c.r.Free()
}

// done answers. With acks=0 there is no answer, and an error can only be told
// by closing the connection (R2.17).
func (c *produceCall) done() {
	if c.d.Meter != nil {
		c.count()
	}
	if c.in.Acks == 0 {
		for i := range c.work.Parts {
			if err := c.work.Parts[i].Err; err != model.None {
				c.r.CloseConn(fmt.Errorf("a produce request with acks=0 failed: %w", err))
				return
			}
		}
		c.r.ReplyNone()
		return
	}
	c.r.Reply(transport.Message(c.response()))
}

// count tells the meter what was taken and what was refused.
func (c *produceCall) count() {
	for i := range c.work.Parts {
		if p := &c.work.Parts[i]; p.Err == model.None {
			c.d.Meter.Produced(int(p.Producer.Records), c.said[i].size)
		} else {
			c.d.Meter.Refused(c.said[i].size)
		}
	}
}

func (c *produceCall) response() *kmsg.ProduceResponse {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = c.in.Version
	resp.Topics = make([]kmsg.ProduceResponseTopic, 0, len(c.in.Topics))
	next := 0
	for i := range c.in.Topics {
		t := &c.in.Topics[i]
		out := kmsg.NewProduceResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, 0, len(t.Partitions))
		for j := range t.Partitions {
			out.Partitions = append(out.Partitions, c.answer(t.Partitions[j].Partition, next, resp))
			next++
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (c *produceCall) answer(partition int32, i int, resp *kmsg.ProduceResponse) kmsg.ProduceResponseTopicPartition {
	part, said := &c.work.Parts[i], &c.said[i]
	out := kmsg.NewProduceResponseTopicPartition()
	out.Partition, out.ErrorCode = partition, part.Err.Code()
	out.BaseOffset, out.LogStartOffset, out.LogAppendTime = int64(part.Base), int64(part.LogStart), -1
	if part.Err == model.None {
		out.LogAppendTime = int64(said.append)
		if part.Timestamp >= 0 { // the original's (R2.11)
			out.LogAppendTime = int64(part.Timestamp)
		}
	}
	if said.message != "" {
		out.ErrorMessage = &said.message
	}
	for _, b := range said.bad {
		e := kmsg.NewProduceResponseTopicPartitionErrorRecord()
		e.RelativeOffset = b.Index
		if b.Message != "" {
			e.ErrorMessage = &b.Message
		}
		out.ErrorRecords = append(out.ErrorRecords, e)
	}
	if c.in.Version >= 10 && (part.Err == model.ErrNotLeaderOrFollower || part.Err == model.ErrFencedLeaderEpoch) {
		out.CurrentLeader.LeaderID, out.CurrentLeader.LeaderEpoch = int32(part.Leader), int32(part.LeaderEpoch)
		c.addNode(resp, part.Leader)
	}
	return out
}

// addNode says where the leader is (KIP-951).
func (c *produceCall) addNode(resp *kmsg.ProduceResponse, id model.BrokerID) {
	n, ok := c.d.Node(id, c.r.Conn.Listener())
	if !ok {
		return
	}
	for i := range resp.Brokers {
		if resp.Brokers[i].NodeID == int32(id) {
			return
		}
	}
	b := kmsg.NewProduceResponseBroker()
	b.NodeID, b.Host, b.Port, b.Rack = int32(n.ID), n.Host, n.Port, n.Rack
	resp.Brokers = append(resp.Brokers, b)
}
