package cases

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/tidetest"
)

// stored is one batch as a replica has it.
type stored struct {
	base, last int64
	epoch      int32
	producer   int64
	sequence   int32
	crc        uint32 // the header's
	bytes      uint32 // a checksum of all bytes
}

// batches reads a replica's log of partition 0 by Fetch v11, as a consumer may
// from any replica, from an offset up to its high watermark.
func (w *world) batches(broker int, topic string, from int64) []stored {
	w.t.Helper()
	var out []stored
	w.scan(broker, topic, from, func(h record.Header, b []byte) {
		out = append(out, stored{base: int64(h.Base), last: int64(h.LastOffset()), epoch: int32(h.LeaderEpoch),
			producer: int64(h.ProducerID), sequence: h.BaseSequence, crc: h.CRC, bytes: crc32.ChecksumIEEE(b)})
	})
	return out
}

// scan hands every batch of a replica, from an offset up to its high watermark,
// to f. A bad checksum fails the test.
func (w *world) scan(broker int, topic string, from int64, f func(h record.Header, b []byte)) {
	w.t.Helper()
	for {
		ask := at(topic, from)
		ask.version, ask.partitionBytes = 11, 8<<20
		p, _ := w.fetch(broker, ask)
		if p.ErrorCode != 0 {
			w.t.Fatalf("fetch %s at %d from broker %d: %v", topic, from, broker, model.Error(p.ErrorCode))
		}
		if len(p.RecordBatches) == 0 {
			if from < p.HighWatermark {
				w.t.Fatalf("broker %d has nothing at %d, though its high watermark is %d", broker, from, p.HighWatermark)
			}
			return
		}
		for h, b := range record.Split(p.RecordBatches) {
			if !record.Valid(b) {
				w.t.Fatalf("broker %d: the batch at %d has a bad checksum", broker, h.Base)
			}
			f(h, b)
			from = int64(h.Next())
		}
	}
}

// logged is a record as the log has it.
type logged struct {
	offset     int64
	key, value string
}

// records reads all records of partition 0 from one replica.
func (w *world) records(broker int, topic string, from int64) []logged {
	w.t.Helper()
	var out []logged
	w.scan(broker, topic, from, func(_ record.Header, b []byte) {
		if err := record.Records(bytes.Clone(b), func(r *record.Record) bool {
			out = append(out, logged{int64(r.Offset), string(r.Key), string(r.Value)})
			return true
		}); err != nil {
			w.t.Fatalf("records: %v", err)
		}
	})
	return out
}

// settle waits until the replicas of partition 0 are these, all in sync, with
// one high watermark that is everybody's log end, and returns it.
func (w *world) settle(topic string, brokers ...int) int64 {
	w.t.Helper()
	w.WaitISR(topic, 0, brokers...)
	hw := int64(-1)
	w.WaitFor(fmt.Sprintf("the replicas of %s agree", topic), func() bool {
		marks := w.Marks(topic, 0)
		even := len(marks) == len(brokers) && slices.ContainsFunc(marks, func(m tidetest.Mark) bool { return m.Leader })
		for _, m := range marks {
			even = even && m.HW == marks[0].HW && m.LEO == m.HW
			hw = m.HW
		}
		return even
	})
	return hw
}

// identical checks that all replicas of a settled topic hold the same batches,
// in order, and returns them.
func (w *world) identical(topic string, brokers ...int) []stored {
	w.t.Helper()
	from := int64(0)
	for _, m := range w.Marks(topic, 0) {
		from = max(from, m.LogStart)
	}
	first := w.batches(brokers[0], topic, from)
	for _, b := range brokers[1:] {
		other := w.batches(b, topic, from)
		if len(other) != len(first) {
			w.t.Errorf("broker %d has %d batches, broker %d has %d", brokers[0], len(first), b, len(other))
		}
		for i := range min(len(first), len(other)) {
			if first[i] != other[i] {
				w.t.Fatalf("batch %d is %+v on broker %d and %+v on broker %d", i, first[i], brokers[0], other[i], b)
			}
		}
	}
	for i := 1; i < len(first); i++ {
		if a, b := first[i-1], first[i]; b.base <= a.last || b.epoch < a.epoch {
			w.t.Errorf("batch %+v comes after %+v", b, a)
		}
	}
	return first
}

// electOther makes a follower the leader and returns it and its epoch.
func (w *world) electOther(topic string) (leader int, epoch int32) {
	w.t.Helper()
	leader = w.followers(topic)[0]
	return leader, w.Elect(topic, 0, leader)
}

// epochEnd asks where an epoch ended, by OffsetForLeaderEpoch v4.
type epochEnd = kmsg.OffsetForLeaderEpochResponseTopicPartition

func (w *world) epochEnd(broker int, topic string, partition, current, epoch, replica int32) epochEnd {
	w.t.Helper()
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Version, req.ReplicaID = 4, replica
	rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	rp.Partition, rp.CurrentLeaderEpoch, rp.LeaderEpoch = partition, current, epoch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.OffsetForLeaderEpochResponse](w, broker, req).Topics[0].Partitions[0]
}

// prober asks brokers that may be dying: a failure is an answer, not the end of
// the test. It belongs to one goroutine.
type prober struct {
	w     *world
	conns map[int]*transport.Client
}

func (w *world) prober() *prober { return &prober{w: w, conns: map[int]*transport.Client{}} }

func (p *prober) close() {
	for _, c := range p.conns {
		c.Close()
	}
}

// do sends a request and waits for its answer for a second at most.
func (p *prober) do(broker int, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c := p.conns[broker]
	if c == nil || c.Err() != nil {
		if c != nil {
			c.Close()
		}
		var err error
		c, err = transport.Dial(ctx, p.w.Addrs()[broker-1], transport.ClientOptions{ClientID: "prober",
			Dial: func(ctx context.Context, addr string) (net.Conn, error) { return p.w.Dial(ctx, "tcp", addr) }})
		if err != nil {
			delete(p.conns, broker)
			return nil, err
		}
		p.conns[broker] = c
	}
	resp, err := c.Do(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("broker %d: %w", broker, err)
	}
	return resp, nil
}

// ends asks a broker for the latest offset of partition 0 and then for the high
// watermark, by a Fetch that only a leader answers; -1 stands for no answer or
// an error. A leader that cannot tell the latest offset yet shows in a Fetch the
// high watermark that it knows, as Kafka's does, so that is not asked for.
func (p *prober) ends(broker int, topic string) (latest, hw int64) {
	resp, err := p.do(broker, listRequest(topic, -1))
	if err != nil {
		return -1, -1
	}
	r := resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	if r.ErrorCode != 0 {
		return -1, -1
	}
	f := at(topic, r.Offset)
	f.version = 10
	if resp, err = p.do(broker, f.request()); err != nil {
		return r.Offset, -1
	}
	if fr := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]; fr.ErrorCode == 0 {
		return r.Offset, fr.HighWatermark
	}
	return r.Offset, -1
}

// listRequest makes a ListOffsets v7 for partition 0.
func listRequest(topic string, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.CurrentLeaderEpoch, p.Timestamp = -1, timestamp
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// ends is what a watcher of the log's end saw.
type ends struct {
	answers int
	last    int64    // highest end
	fallen  []string // where it went back
}

// watchEnds asks the leader of the newest epoch, again and again, where
// consumers see the end of partition 0; the function it returns ends that.
func (w *world) watchEnds(topic string) func() ends {
	stop, result := make(chan struct{}), make(chan ends)
	go func() {
		var e ends
		p, newest := w.prober(), int32(-1)
		defer p.close()
		for {
			select {
			case <-stop:
				result <- e
				return
			case <-time.After(3 * time.Millisecond):
			}
			leader, epoch := w.Leadership(topic, 0)
			if leader == 0 || epoch < newest {
				continue
			}
			newest = epoch
			latest, hw := p.ends(leader, topic)
			for _, o := range []int64{latest, hw} {
				if o < 0 {
					continue
				}
				if e.answers++; o < e.last {
					e.fallen = append(e.fallen, fmt.Sprintf("broker %d in epoch %d: the end went from %d back to %d", leader, epoch, e.last, o))
				}
				e.last = max(e.last, o)
			}
		}
	}()
	return func() ends {
		close(stop)
		return <-result
	}
}

// all does something with all brokers at the same time: a controller that starts
// needs the others.
func (w *world) all(do func(broker int)) {
	w.t.Helper()
	var each sync.WaitGroup
	for broker := 1; broker <= 3; broker++ {
		each.Go(func() { do(broker) })
	}
	each.Wait()
}

// distant is a network on which a byte is under way for a millisecond: time for
// failures to come between two messages.
func distant() tidetest.Option { return tidetest.Delay(time.Millisecond) }
