package api

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/storage"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/vfs"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// Produce writes every batch at once. With held, the request is handed over
// when it is stored, to be answered by the test.
func (w *world) Produce(p *Produce) {
	w.mu.Lock()
	for i := range p.Parts {
		if part := &p.Parts[i]; part.Err == model.None {
			w.store(p, part)
		}
	}
	held := w.held
	w.mu.Unlock()
	p.Stored()
	if held != nil {
		held <- p
		return
	}
	p.Done()
}

func (w *world) store(p *Produce, part *ProducePart) {
	core := part.Hosted.Owner.(*partition.Partition)
	rd := core.Step(0, wall, &partition.Produce{Acks: int8(p.Acks), Batch: part.Producer, Bytes: int32(len(part.Batch))})
	switch {
	case rd.Err != model.None:
		part.Err = rd.Err
	case rd.Duplicate != nil:
		part.Base, part.Timestamp = rd.Duplicate.Base, rd.Duplicate.Timestamp
	default:
		part.Base = rd.Append.Base
		res, err := part.Hosted.Log.Append(wall, storage.AppendBatch{Bytes: part.Batch, Stamp: true, Base: rd.Append.Base, Epoch: rd.Append.Epoch})
		if err != nil {
			panic(err)
		}
		core.Step(0, wall, &partition.Appended{End: res.End, Pos: res.Pos})
	}
}

// Leave has nothing to watch.
func (w *world) Leave(*Standing) {}

// Fetch answers at once with what there is.
func (w *world) Fetch(f *Fetch) {
	w.mu.Lock()
	for i := range f.Parts {
		p := &f.Parts[i]
		if p.Hosted == nil {
			continue
		}
		core := p.Hosted.Owner.(*partition.Partition)
		p.Hosted.Generation.Store(core.Generation())
		rd := core.Step(0, wall, &p.Request)
		p.Reply = *rd.Reply
		if rd.Err != model.None {
			p.Refuse(rd.Err)
		}
	}
	w.mu.Unlock()
	f.Done()
}

// produceRequest asks to write one batch to each partition of a topic.
func produceRequest(acks int16, topic string, batch []byte, partitions ...int32) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, 1000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	for _, p := range partitions {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = p, batch
		t.Partitions = append(t.Partitions, part)
	}
	req.Topics = append(req.Topics, t)
	return req
}

func batchOf(opts record.BatchOptions, bytes int) []byte {
	b := record.NewBuilder(opts)
	b.Add(wall-5, nil, make([]byte, bytes))
	return b.Bytes()
}

func TestWhatWaitsForOtherReplicasIsNotInFlight(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	held := make(chan *Produce)
	w.mu.Lock()
	w.held = held
	w.mu.Unlock()
	answered := make(chan *kmsg.ProduceResponse)
	go func() {
		answered <- do[*kmsg.ProduceResponse](w, produceRequest(-1, "t", batchOf(record.PlainOptions(), 100_000), 0))
	}()
	p := <-held
	if n := w.server.InFlight(); n != 0 {
		t.Errorf("%d bytes are in flight although they are stored", n)
	}
	p.Done()
	if resp := <-answered; resp.Topics[0].Topic != "t" || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("answer %+v", resp.Topics)
	}
}

func TestADuplicateIsAnsweredWithTheOriginal(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	for range 2 {
		resp := do[*kmsg.ProduceResponse](w, produceRequest(-1, "t", batchOf(record.BatchOptions{ProducerID: 7}, 10), 0))
		p := resp.Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.BaseOffset != 0 {
			t.Errorf("answer %+v", p)
		}
	}
	resp := do[*kmsg.ProduceResponse](w, produceRequest(-1, "t", batchOf(record.BatchOptions{ProducerID: 7}, 10), 0))
	if got := resp.Topics[0].Partitions[0].LogAppendTime; got != int64(wall-5) {
		t.Errorf("the duplicate's timestamp is %d, not that of the original, %d", got, wall-5)
	}
}

func TestPartitionsOfAProduceFailAlone(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	good := batchOf(record.PlainOptions(), 10)
	req := produceRequest(1, "t", good, 0, 5, 0)
	req.Topics[0].Partitions[2].Records = good[:len(good)-1]
	resp := do[*kmsg.ProduceResponse](w, req)
	for i, want := range []model.Error{model.None, model.ErrUnknownTopicOrPartition, model.ErrInvalidRecord} {
		if got := model.Error(resp.Topics[0].Partitions[i].ErrorCode); got != want {
			t.Errorf("part %d: %v, not %v", i, got, want)
		}
	}
	for _, acks := range []int16{-2, 2} {
		if got := do[*kmsg.ProduceResponse](w, produceRequest(acks, "t", good, 0)).Topics[0].Partitions[0].ErrorCode; got != model.ErrInvalidRequiredAcks.Code() {
			t.Errorf("acks=%d: %v", acks, model.Error(got))
		}
	}
}

func TestWithoutAcksOnlyAnErrorIsHeardOf(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	if err := w.client.Send(t.Context(), produceRequest(0, "t", batchOf(record.PlainOptions(), 10), 0)); err != nil {
		t.Fatal(err)
	}
	if got := do[*kmsg.ProduceResponse](w, produceRequest(1, "t", batchOf(record.PlainOptions(), 10), 0)).Topics[0].Partitions[0].BaseOffset; got != 1 {
		t.Errorf("the next batch begins at %d", got)
	}
	if err := w.client.Send(t.Context(), produceRequest(0, "t", batchOf(record.PlainOptions(), 10), 0, 7)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.client.Closed():
		if err := w.client.Err(); !errors.Is(err, io.EOF) {
			t.Errorf("the connection ends with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the connection goes on after a lost batch")
	}
}

// fetchRequest asks for the partitions of a topic from the start.
func fetchRequest(topic string, partitions ...int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MinBytes, req.MaxBytes, req.SessionEpoch = 12, 1, 1<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	for _, p := range partitions {
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.PartitionMaxBytes = p, 1<<20
		t.Partitions = append(t.Partitions, part)
	}
	req.Topics = append(req.Topics, t)
	return req
}

func TestAPartitionThatIsNamedTwiceIsAnsweredTwice(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	do[*kmsg.ProduceResponse](w, produceRequest(1, "t", batchOf(record.PlainOptions(), 10), 0))
	resp := do[*kmsg.FetchResponse](w, fetchRequest("t", 0, 0))
	if n := len(resp.Topics[0].Partitions); n != 2 {
		t.Fatalf("%d answers", n)
	}
	for i, p := range resp.Topics[0].Partitions {
		if p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
			t.Errorf("answer %d: %v, %d bytes", i, model.Error(p.ErrorCode), len(p.RecordBatches))
		}
	}
}

func TestOnlyTheFirstBatchMayBeLargerThanTheLimits(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 2)
	do[*kmsg.ProduceResponse](w, produceRequest(1, "t", batchOf(record.PlainOptions(), 1000), 0, 1))
	for _, limit := range []int32{100, 1, 0, -1} {
		req := fetchRequest("t", 0, 1)
		req.MaxBytes = limit
		parts := do[*kmsg.FetchResponse](w, req).Topics[0].Partitions
		if len(parts[0].RecordBatches) < 1000 || len(parts[1].RecordBatches) != 0 {
			t.Errorf("a limit of %d brings %d and %d bytes", limit, len(parts[0].RecordBatches), len(parts[1].RecordBatches))
		}
	}
}

// A topic that was deleted and made anew is another one under the same name, also
// where its old replica is hosted for a moment still.
func TestANameMeansTheTopicThatHasItNow(t *testing.T) {
	w := newWorld(t, nil)
	old := w.createTopic("t", 1)
	write := func() { do[*kmsg.ProduceResponse](w, produceRequest(1, "t", batchOf(record.PlainOptions(), 10), 0)) }
	write()
	req := fetchRequest("t", 0)
	req.SessionEpoch = 0
	first := do[*kmsg.FetchResponse](w, req)
	stale := w.ByID(model.TopicIDPartition{TopicID: old})
	w.change(&metalog.RemoveTopic{TopicID: old})
	w.dir.Delete(model.TopicPartition{Topic: "t"})
	w.createTopic("t", 1)
	next := kmsg.NewPtrFetchRequest()
	next.Version, next.MinBytes, next.MaxBytes, next.SessionID, next.SessionEpoch = 12, 1, 1<<20, first.SessionID, 1
	resp := do[*kmsg.FetchResponse](w, next)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions[0].RecordBatches) > 0 || resp.Topics[0].Partitions[0].HighWatermark != 0 {
		t.Errorf("a session by name sees %+v of the new topic", resp.Topics)
	}
	write()
	if end := stale.Log.LEO(); end != 1 {
		t.Errorf("the log of the old topic ends at %d", end)
	}
	if end := w.ByName(model.TopicPartition{Topic: "t"}).Log.LEO(); end != 1 {
		t.Errorf("that of the new one at %d", end)
	}
}

// brittle is a log of 50 records on a disk that fails to read files of a kind once broken
// is set.
func brittle(t *testing.T, kind string) (h *Hosted, broken *bool) {
	broken = new(bool)
	fs := vfs.Faulty(vfs.NewMem(), func(op vfs.Op) error {
		if *broken && op.Kind == vfs.OpRead && strings.HasSuffix(op.Path, kind) {
			return errors.New("the disk is broken")
		}
		return nil
	})
	dir, err := storage.OpenDir(fs, "/data", storage.DirOptions{ClusterID: clusterID, NodeID: 1, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	tp := model.TopicPartition{Topic: "t"}
	log, err := dir.Create(tp, model.UUID{1}, storage.DefaultLogConfig(), wall)
	if err != nil {
		t.Fatal(err)
	}
	for i := range model.Offset(50) {
		if _, err := log.Append(wall, storage.AppendBatch{Bytes: batchOf(record.PlainOptions(), 1000), Stamp: true, Base: i}); err != nil {
			t.Fatal(err)
		}
	}
	return &Hosted{TP: tp, Log: log}, broken
}

func TestAReadThatFailsSaysWhy(t *testing.T) {
	h, broken := brittle(t, ".log")
	read := func(from model.Offset, generation uint64, want model.Error) {
		t.Helper()
		p := &FetchPart{Hosted: h, Request: partition.FetchRequest{MaxBytes: 1000}, Reply: partition.Reply{From: from, Limit: from + 1, Generation: generation}}
		out := wire.NewFetchPartition(3, model.None)
		if has := (&fetchCall{d: &DataPath{}}).read(p, &out, 1000, true); out.Err != want || has != (want == model.None) || out.Partition != 3 {
			t.Errorf("reading from %d in generation %d: %v with records %v, not %v", from, generation, out.Err, has, want)
		}
		if out.Records.Release != nil {
			out.Records.Release()
		}
	}
	h.Generation.Store(2)
	read(0, 2, model.None)
	read(0, 1, model.ErrNotLeaderOrFollower)  // cut meanwhile
	read(51, 2, model.ErrNotLeaderOrFollower) // out of range meanwhile
	*broken = true
	read(20, 2, model.ErrKafkaStorageError)
}

// Records without the list of what was aborted among them would be taken for committed.
func TestRecordsAreNotSentWithoutTheListOfWhatWasAborted(t *testing.T) {
	h, broken := brittle(t, ".txnindex")
	opts := record.PlainOptions()
	opts.Transactional, opts.ProducerID, opts.ProducerEpoch, opts.BaseSequence = true, 7, 0, 0
	marker := record.Marker{Producer: 7}.Batch(51, 0, wall)
	for i, b := range [][]byte{batchOf(opts, 10), marker} {
		if _, err := h.Log.Append(wall, storage.AppendBatch{Bytes: b, Stamp: true, Base: model.Offset(50 + i)}); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (wire.FetchPartition, bool) {
		p := &FetchPart{Hosted: h, Request: partition.FetchRequest{MaxBytes: 1000, Committed: true}, Reply: partition.Reply{From: 50, Limit: 52}}
		out := wire.NewFetchPartition(3, model.None)
		has := (&fetchCall{d: &DataPath{}}).read(p, &out, 1000, true)
		if out.Records.Release != nil {
			out.Records.Release()
		}
		return out, has
	}
	if out, has := read(); !has || len(out.Aborted) != 1 || out.Aborted[0].First != 50 {
		t.Errorf("%v, aborted: %v", has, out.Aborted)
	}
	*broken = true
	if out, has := read(); has || out.Err != model.ErrKafkaStorageError || out.Records.Len != 0 || len(out.Aborted) > 0 {
		t.Errorf("with an index that cannot be read: %v, records %v of %d bytes", out.Err, has, out.Records.Len)
	}
}

// What a batch unpacks to is held within the bound of its listener.
func TestABatchIsUnpackedWithinTheBoundsOfItsListener(t *testing.T) {
	r := &transport.Request{}
	c := &produceCall{r: r}
	if rules := c.rules(&config.Topic{}); rules.Room != r {
		t.Errorf("the room is %v", rules.Room)
	}
}

// A request of some KB may name a partition thousands of times, with batches that are
// stored unpacked: what is kept of it until it is stored has a bound.
func TestWhatTheBatchesOfARequestGrowToIsBounded(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1, "compression.type", "uncompressed", "max.message.bytes", "100000000")
	o := record.PlainOptions()
	o.Codec = record.CodecZstd
	b := record.NewBuilder(o)
	b.Add(wall, nil, make([]byte, maxGrowth*2/5))
	req := produceRequest(1, "t", b.Bytes(), 0, 0, 0)
	parts := do[*kmsg.ProduceResponse](w, req).Topics[0].Partitions
	for i, want := range []model.Error{model.None, model.None, model.ErrRecordListTooLarge} {
		if parts[i].ErrorCode != want.Code() {
			t.Errorf("batch %d: code %d", i, parts[i].ErrorCode)
		}
	}
	next := do[*kmsg.ProduceResponse](w, produceRequest(1, "t", b.Bytes(), 0)).Topics[0].Partitions
	if next[0].ErrorCode != 0 || next[0].BaseOffset != 2 {
		t.Errorf("the next request: %+v", next[0])
	}
}
