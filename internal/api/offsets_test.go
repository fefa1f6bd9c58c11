package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
)

type listed1 struct {
	code, epoch       int
	offset, timestamp int64
}

// list asks for one partition.
func (w *world) list(version int16, topic string, id int32, ts int64, epoch int32) listed1 {
	w.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = version, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = id, ts, epoch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	out := do[*kmsg.ListOffsetsResponse](w, req).Topics[0].Partitions[0]
	return listed1{int(out.ErrorCode), int(out.LeaderEpoch), out.Offset, out.Timestamp}
}

func TestOffsetsOfAnEmptyTopic(t *testing.T) { // case B165
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	for _, version := range []int16{1, 5, 7} {
		for ts, want := range map[int64]int64{-2: 0, -1: 0, int64(wall): -1, 0: -1} {
			if got := w.list(version, "t", 0, ts, -1); got.code != 0 || got.offset != want || got.timestamp != -1 {
				t.Errorf("v%d timestamp %d: %+v, want offset %d", version, ts, got, want)
			}
		}
	}
	if got := w.list(7, "t", 0, -3, -1); got.code != 0 || got.offset != -1 {
		t.Errorf("max timestamp: %+v", got)
	}
}

func TestLookUpByTimeFindsTheFirstAtOrAfter(t *testing.T) { // case B166
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	for _, ts := range []model.Millis{2, 4, 6, 8} {
		w.append("t", 0, record.PlainOptions(), ts)
	}
	for ts, want := range map[int64][2]int64{0: {0, 2}, 2: {0, 2}, 3: {1, 4}, 4: {1, 4}, 5: {2, 6}, 8: {3, 8}, 9: {-1, -1}} {
		if got := w.list(7, "t", 0, ts, -1); got.code != 0 || got.offset != want[0] || got.timestamp != want[1] {
			t.Errorf("%d: %+v, want %v", ts, got, want)
		}
	}
}

func TestMaxTimestamp(t *testing.T) { // case B168
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	w.append("t", 0, record.PlainOptions(), 100, 300, 200)
	w.append("t", 0, record.PlainOptions(), 300, 50)
	if got := w.list(7, "t", 0, -3, -1); got != (listed1{0, 0, 1, 300}) {
		t.Errorf("%+v", got)
	}
}

func TestSpecialTimestampsByVersion(t *testing.T) { // cases B170, B171
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	w.append("t", 0, record.PlainOptions(), 5, 6, 7)
	w.deleteTo("t", 0, 2)
	for _, c := range []struct {
		version int16
		ts      int64
		code    int
		offset  int64
	}{
		{6, -3, 35, -1}, {7, -3, 0, 2}, {7, -4, 35, -1}, {8, -4, 0, 2}, {8, -5, 35, -1}, {9, -5, 0, -1},
		{10, -6, 35, -1}, {11, -6, 0, -1}, {11, -99, 35, -1}, {11, -2, 0, 2}, {11, -1, 0, 3},
	} {
		if got := w.list(c.version, "t", 0, c.ts, -1); got.code != c.code || got.offset != c.offset {
			t.Errorf("v%d timestamp %d: %+v, want code %d offset %d", c.version, c.ts, got, c.code, c.offset)
		}
	}
}

func TestListOffsetsErrors(t *testing.T) { // cases B87, B170, B174
	w := newWorld(t, nil)
	id := w.createTopic("t", 1)
	w.change(&metalog.Partition{PartitionID: 1, TopicID: id, Replicas: []model.BrokerID{2}, ISR: []model.BrokerID{2}, Leader: 2, Directories: []model.UUID{{1}}})
	for _, c := range []struct {
		topic     string
		partition int32
		epoch     int32
		code      int
	}{
		{"t", 0, 0, 0}, {"t", 0, 4, 75}, {"t", 1, -1, 6}, {"t", 99, -1, 3}, {"t", -1, -1, 3}, {"no", 0, -1, 3},
	} {
		got := w.list(7, c.topic, c.partition, -1, c.epoch)
		if got.code != c.code || c.code != 0 && (got.offset != -1 || got.timestamp != -1 || got.epoch != -1) {
			t.Errorf("%s-%d epoch %d: %+v, want %d", c.topic, c.partition, c.epoch, got, c.code)
		}
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = 7
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = "t"
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = -1
	topic.Partitions = append(topic.Partitions, p, p)
	req.Topics = append(req.Topics, topic)
	for _, out := range do[*kmsg.ListOffsetsResponse](w, req).Topics[0].Partitions {
		if out.ErrorCode != 42 {
			t.Errorf("a partition that is named twice: %d", out.ErrorCode)
		}
	}
}

func (w *world) endOf(version int16, topic string, id, current, epoch int32) (int16, int32, int64) {
	w.t.Helper()
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Version = version
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = id, current, epoch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	out := do[*kmsg.OffsetForLeaderEpochResponse](w, req).Topics[0].Partitions[0]
	return out.ErrorCode, out.LeaderEpoch, out.EndOffset
}

func TestOffsetForLeaderEpoch(t *testing.T) { // cases B99, B101
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	w.append("t", 0, record.PlainOptions(), 1, 2, 3)
	for _, c := range []struct {
		topic                     string
		partition, current, epoch int32
		code                      int16
		end                       int64
	}{
		{"t", 0, -1, 0, 0, 3}, {"t", 0, 0, 0, 0, 3}, {"t", 0, -1, 1, 0, -1}, {"t", 0, -1, -1, 0, -1},
		{"t", 0, 3, 0, 75, -1}, {"t", 9, -1, 0, 3, -1}, {"no", 0, -1, 0, 3, -1},
	} {
		for version := int16(2); version <= 4; version++ {
			code, _, end := w.endOf(version, c.topic, c.partition, c.current, c.epoch)
			if code != c.code || end != c.end {
				t.Errorf("v%d %+v: code %d end %d", version, c, code, end)
			}
		}
	}
}

func (w *world) deleteTo(topic string, id int32, offset int64) (int16, int64) {
	w.t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version, req.TimeoutMillis = 2, 1000
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = topic
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = id, offset
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	out := do[*kmsg.DeleteRecordsResponse](w, req).Topics[0].Partitions[0]
	return out.ErrorCode, out.LowWatermark
}

func TestDeleteRecords(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	w.createTopic("compact", 1, "cleanup.policy", "compact")
	w.createTopic(offsetsTopic, 1)
	w.append("t", 0, record.PlainOptions(), 1, 2, 3)
	for _, c := range []struct {
		topic  string
		id     int32
		offset int64
		code   int16
		low    int64
	}{
		{"t", 0, 2, 0, 2}, {"t", 0, 1, 0, 2}, {"t", 0, -1, 0, 3}, {"t", 0, 4, 1, -1}, {"t", 7, 0, 3, -1}, {"no", 0, 0, 3, -1},
		{"compact", 0, 0, 44, -1}, {offsetsTopic, 0, 0, 17, -1},
	} {
		if code, low := w.deleteTo(c.topic, c.id, c.offset); code != c.code || low != c.low {
			t.Errorf("%s-%d to %d: code %d low %d, want %d %d", c.topic, c.id, c.offset, code, low, c.code, c.low)
		}
	}
	if got := w.list(7, "t", 0, -2, -1); got.offset != 3 {
		t.Errorf("log start %d", got.offset)
	}
}

func TestDescribeProducers(t *testing.T) { // KIP-664
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	w.append("t", 0, record.BatchOptions{ProducerID: 7, ProducerEpoch: 1, BaseSequence: 0}, 11, 12)
	req := kmsg.NewPtrDescribeProducersRequest()
	topic := kmsg.NewDescribeProducersRequestTopic()
	topic.Topic, topic.Partitions = "t", []int32{0, 5}
	req.Topics = append(req.Topics, topic)
	parts := do[*kmsg.DescribeProducersResponse](w, req).Topics[0].Partitions
	if parts[0].ErrorCode != 0 || len(parts[0].ActiveProducers) != 1 || parts[1].ErrorCode != 3 {
		t.Fatalf("%+v", parts)
	}
	if p := parts[0].ActiveProducers[0]; p.ProducerID != 7 || p.ProducerEpoch != 1 || p.LastSequence != 1 || p.LastTimestamp != 12 || p.CurrentTxnStartOffset != -1 {
		t.Errorf("%+v", p)
	}
}

func TestDescribeLogDirs(t *testing.T) { // case B225
	w := newWorld(t, nil)
	w.createTopic("b", 2)
	w.createTopic("a", 1)
	for _, topic := range []string{"a", "b"} {
		w.append(topic, 0, record.PlainOptions(), 1, 2, 3)
	}
	w.append("b", 1, record.PlainOptions(), 1)
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.Version, req.Topics = 5, nil
	dir := do[*kmsg.DescribeLogDirsResponse](w, req).Dirs[0]
	if dir.Dir != "/data" || dir.TotalBytes != 1000 || dir.UsableBytes != 400 || len(dir.Topics) != 2 || len(dir.Topics[1].Partitions) != 2 {
		t.Fatalf("%+v", dir)
	}
	log := w.ByName(model.TopicPartition{Topic: "a"}).Log
	if got := dir.Topics[0].Partitions[0]; got.Size != log.Size() || got.Size == 0 || got.OffsetLag != 0 {
		t.Errorf("%+v, the log has %d bytes", got, log.Size())
	}
	for name, want := range map[string]int{"b": 1, "missing": 0} {
		ask := kmsg.NewDescribeLogDirsRequestTopic()
		ask.Topic, ask.Partitions = name, []int32{1}
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{ask}
		if got := len(do[*kmsg.DescribeLogDirsResponse](w, req).Dirs[0].Topics); got != want {
			t.Errorf("%s: %d topics", name, got)
		}
	}
}

func TestProducerIDsAreNeverHandedOutTwice(t *testing.T) {
	w := newWorld(t, nil)
	seen := map[int64]bool{}
	for range 2500 { // three blocks of 1000
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version = 4
		resp := do[*kmsg.InitProducerIDResponse](w, req)
		if resp.ErrorCode != 0 || resp.ProducerEpoch != 0 || resp.ProducerID < 0 || seen[resp.ProducerID] {
			t.Fatalf("%+v", resp)
		}
		seen[resp.ProducerID] = true
	}
	if next := w.Image().NextProducerID(); next != 3000 {
		t.Errorf("the controller gave ids up to %d", next)
	}
}

func TestInitProducerIDErrors(t *testing.T) {
	w := newWorld(t, nil)
	empty, txn := "", "txn"
	for _, c := range []struct {
		txn   *string
		id    int64
		epoch int16
		want  model.Error
	}{
		{nil, -1, 3, model.ErrInvalidRequest}, {nil, 3, -1, model.ErrInvalidRequest}, {nil, 3, 3, model.None},
		{&empty, -1, -1, model.ErrInvalidRequest}, {&txn, -1, -1, model.ErrUnsupportedVersion},
	} {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch = 4, c.txn, c.id, c.epoch
		resp := do[*kmsg.InitProducerIDResponse](w, req)
		if got := model.Error(resp.ErrorCode); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if c.want != model.None && (resp.ProducerID != -1 || resp.ProducerEpoch != -1) {
			t.Errorf("%+v: id %d epoch %d", c, resp.ProducerID, resp.ProducerEpoch)
		}
	}
	w = newWorld(t, nil)
	w.lose(errNoController)
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = 4
	if got := model.Error(do[*kmsg.InitProducerIDResponse](w, req).ErrorCode); got != model.ErrCoordinatorLoadInProgress {
		t.Errorf("without a controller: %v", got)
	}
	w.lose(nil)
	if got := do[*kmsg.InitProducerIDResponse](w, req).ErrorCode; got != 0 {
		t.Errorf("with one again: %d", got)
	}
}
