package cases

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/tidetest"
)

// checks has brokers look for what to delete twice a second.
func checks() tidetest.Option { return tidetest.Set("log.retention.check.interval.ms", "500") }

// with is a topic's config of these keys and values.
func with(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// smallSegments is a topic's config whose segments hold a record or a few, with
// further keys and values.
func smallSegments(pairs ...string) map[string]string {
	return with(append([]string{"internal.segment.bytes", "1000", "file.delete.delay.ms", "100"}, pairs...)...)
}

// alter sets keys of a topic on the whole cluster and waits until all brokers
// that run know it.
func (w *world) alter(topic string, pairs ...string) {
	w.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = 1
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for key, value := range with(pairs...) {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = key, kmsg.StringPtr(value)
		r.Configs = append(r.Configs, c)
	}
	req.Resources = append(req.Resources, r)
	resp := ask[*kmsg.IncrementalAlterConfigsResponse](w, 1, req)
	if err := model.Error(resp.Resources[0].ErrorCode); err != model.None {
		w.t.Fatalf("alter %s: %v", topic, err)
	}
	pass(100 * time.Millisecond)
}

// lowered is what one partition answered to a DeleteRecords.
type lowered = kmsg.DeleteRecordsResponseTopicPartition

// tryDelete asks a broker to raise the log start of a partition.
func (w *world) tryDelete(broker int, topic string, partition int32, offset int64, timeout time.Duration) lowered {
	w.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 2, int32(timeout.Milliseconds())
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = partition, offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.DeleteRecordsResponse](w, broker, req).Topics[0].Partitions[0]
}

// earliest is the first offset of partition 0 that a broker tells.
func (w *world) earliest(broker int, topic string) int64 {
	w.t.Helper()
	l := w.list(broker, topic, -2)
	code(w.t, "earliest", l.ErrorCode, model.None)
	return l.Offset
}

// aged is a batch of one record for each of these ages, whose values they are.
func aged(ages ...time.Duration) []byte {
	b := record.NewBuilder(record.PlainOptions())
	for _, age := range ages {
		b.Add(model.Millis(time.Now().Add(-age).UnixMilli()), nil, []byte(age.String()))
	}
	return bytes.Clone(b.Bytes())
}

// fill writes n records of about 300 bytes with an acks value, one batch each.
func (w *world) fill(topic string, acks int16, n int) {
	w.t.Helper()
	leader := w.WaitLeader(topic, 0)
	for range n {
		p := w.produce(leader, topic, acks, 10*time.Second, batch(strings.Repeat("f", 300)))
		code(w.t, "produce", p.ErrorCode, model.None)
	}
}

// files are a replica's files of partition 0 whose names end so, in order.
func (w *world) files(broker int, topic, ending string) []string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.LogDir(broker, topic, 0), "*"+ending))
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.Sorted(slices.Values(all))
}

// overwrite replaces a file by what edit makes of its bytes; nil removes it.
func (w *world) overwrite(file string, edit func([]byte) []byte) {
	w.t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	if b = edit(b); b == nil {
		err = os.Remove(file)
	} else {
		err = os.WriteFile(file, b, 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// starts waits until the log of partition 0 begins at an offset on all brokers
// that have it.
func (w *world) starts(topic string, offset int64) {
	w.t.Helper()
	w.WaitFor(topic+" begins where it should on all brokers", func() bool {
		marks := w.Marks(topic, 0)
		return len(marks) > 0 && !slices.ContainsFunc(marks, func(m tidetest.Mark) bool { return m.LogStart != offset })
	})
}

// oldest is a consumer that always reads where the log begins, on a connection
// of its own.
type oldest struct {
	w   *world
	ask *transport.Client
}

// follow reads until stop is closed. What it may hear: whole records, nothing,
// that its offset is gone, and, once, that the topic is.
func (r *oldest) follow(topic string, stop <-chan struct{}) {
	for from := int64(0); ; pass(5 * time.Millisecond) {
		select {
		case <-stop:
			return
		default:
		}
		resp, err := r.ask.Do(context.Background(), at(topic, from).request())
		if err != nil {
			r.w.t.Errorf("fetch at %d: %v", from, err)
			return
		}
		p := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		switch model.Error(p.ErrorCode) {
		case model.None:
			from = r.check(p, from)
		case model.ErrOffsetOutOfRange:
			resp, err := r.ask.Do(context.Background(), listRequest(topic, -2))
			if err != nil {
				r.w.t.Errorf("list: %v", err)
				return
			}
			if l := resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]; l.ErrorCode == 0 {
				from = l.Offset
			}
		case model.ErrUnknownTopicOrPartition, model.ErrNotLeaderOrFollower:
			if r.w.Leader(topic, 0) == 0 {
				return
			}
			fallthrough
		default:
			r.w.t.Errorf("fetch at %d: %v", from, model.Error(p.ErrorCode))
		}
	}
}

// check judges the batches of one answer and returns the offset after the first.
func (r *oldest) check(p fetched, from int64) int64 {
	next := int64(-1)
	for h, b := range record.Split(p.RecordBatches) {
		if !record.Valid(b) || int64(h.Next()) <= from || next >= 0 && int64(h.Base) < next {
			r.w.t.Errorf("a fetch at %d returned a batch of [%d, %d), valid: %v", from, h.Base, h.Next(), record.Valid(b))
		}
		if next < 0 {
			next = int64(h.Next())
		}
	}
	return max(from, next)
}

// openDeleted counts the open files of this process that have been deleted; it
// is 0 where the system does not tell.
func (w *world) openDeleted() int {
	n := 0
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasSuffix(to, " (deleted)") && strings.Contains(to, filepath.Dir(w.LogDir(1, "x", 0))) {
			n++
		}
	}
	return n
}
