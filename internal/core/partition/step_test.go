package partition

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

func plain(records int32) producers.Batch {
	return producers.Batch{ID: model.NoProducerID, Records: records}
}

// newLeader is b1, leader of epoch 0, with followers b2 and b3 in the ISR.
func newLeader(t testing.TB) *Partition {
	t.Helper()
	peers := Peers{1: {Epoch: 1}, 2: {Epoch: 2}, 3: {Epoch: 3}}
	p := New(Config{ID: 1, MinISR: 2, LagMax: 30 * time.Second, Peers: &peers})
	rd := p.Step(0, 0, &Assign{Leader: 1, Replicas: []model.BrokerID{1, 2, 3}, ISR: []model.BrokerID{1, 2, 3}})
	if rd.PersistEpochs == nil {
		t.Fatal("a new leader does not persist its epoch")
	}
	p.Step(0, 0, &EpochPersisted{Epoch: 0})
	return p
}

// newFollower is b2, follower of b1 in epoch 0, with an empty log.
func newFollower(t testing.TB) *Partition {
	t.Helper()
	p := New(Config{ID: 2, MinISR: 1, LagMax: 30 * time.Second})
	rd := p.Step(0, 0, &Assign{Leader: 1, Replicas: []model.BrokerID{1, 2}, ISR: []model.BrokerID{1, 2}})
	if rd.FetchFrom == nil || *rd.FetchFrom != 1 {
		t.Fatal("a new follower does not fetch")
	}
	return p
}

// round is one record through its whole life on the leader: produced, written,
// fetched and acknowledged by two followers, each fetch looked at twice as it is
// when it comes out of the purgatory.
type round struct {
	produce  Produce
	appended Appended
	fetch    FetchRequest
}

func (r *round) play(p *Partition) {
	r.produce = Produce{Acks: -1, Batch: plain(1), Bytes: 100}
	rd := p.Step(0, 0, &r.produce)
	r.appended = Appended{End: rd.Append.End, Pos: model.Position{Byte: int64(rd.Append.End) * 100}}
	p.Step(0, 0, &r.appended)
	for id := model.BrokerID(2); id <= 3; id++ {
		r.fetch = FetchRequest{Replica: id, ReplicaEpoch: model.BrokerEpoch(id), Offset: r.appended.End, MaxBytes: 1 << 20}
		p.Step(0, 0, &r.fetch)
		r.fetch.Retry, r.fetch.Answering = true, true
		p.Step(0, 0, &r.fetch)
	}
}

func TestProduceAndFetchAllocateNothing(t *testing.T) {
	p, r := newLeader(t), round{}
	if n := testing.AllocsPerRun(100, func() { r.play(p) }); n != 0 {
		t.Errorf("a record costs the leader %v allocations", n)
	}
	if m := p.Marks(); m.HW != m.LEO {
		t.Fatalf("HW %d, LEO %d: the rounds commit nothing", m.HW, m.LEO)
	}
}

func TestFollowerAllocatesNothing(t *testing.T) {
	p := newFollower(t)
	in, done := FetchResponse{Batches: make([]FetchedBatch, 1)}, Appended{}
	copyOne := func() {
		at, ok := p.NextFetch()
		if !ok {
			t.Fatal("the follower does not fetch")
		}
		in.LeaderEpoch, in.Offset, in.HW, in.Diverging = at.LeaderEpoch, at.Offset, at.Offset, model.UndefinedEpochEnd
		in.Batches[0] = FetchedBatch{Base: at.Offset, Last: at.Offset, Producer: plain(1)}
		p.Step(0, 0, &in)
		done.End = at.Offset + 1
		p.Step(0, 0, &done)
	}
	copyOne() // the first record of an epoch is noted in the cache
	if n := testing.AllocsPerRun(100, copyOne); n != 0 {
		t.Errorf("a record costs the follower %v allocations", n)
	}
}

func BenchmarkRecordThroughTheLeader(b *testing.B) {
	p, r := newLeader(b), round{}
	b.ReportAllocs()
	for b.Loop() {
		r.play(p)
	}
}

// A broker sends one proposal at a time, so this answer should not happen; were
// it taken for the open one, a refusal would shrink the ISR that counts.
func TestAnswerToAnEarlierProposalIsIgnored(t *testing.T) {
	p := newLeader(t)
	p.Step(0, 0, &Produce{Acks: 1, Batch: plain(1)})
	p.Step(0, 0, &Appended{End: 1})
	now := model.Time(time.Minute)
	first := *p.Step(now, 0, &Tick{}).AlterISR
	p.Step(now, 0, &Assign{Leader: 1, PartitionEpoch: 1, Replicas: []model.BrokerID{1, 2, 3}, ISR: []model.BrokerID{1}})
	rd := p.Step(now, 0, &FetchRequest{Replica: 2, ReplicaEpoch: 2, Offset: 1})
	if rd.AlterISR == nil || rd.AlterISR.Proposal == first.Proposal {
		t.Fatalf("the second proposal is %+v", rd.AlterISR)
	}
	p.Step(now, 0, &ISRAnswer{Proposal: first.Proposal, Err: model.ErrIneligibleReplica})
	if v := p.View(); !v.PendingISR || len(v.MaximalISR) != 2 {
		t.Errorf("the open proposal was closed by an answer to another: %+v", v)
	}
}

func TestContradictoryMetadataIsRefused(t *testing.T) {
	ids := func(list ...model.BrokerID) []model.BrokerID { return list }
	for name, in := range map[string]Assign{
		"leader outside its ISR":  {Leader: 1, LeaderEpoch: 1, PartitionEpoch: 1, Replicas: ids(1, 2, 3), ISR: ids(2)},
		"ISR outside AR":          {Leader: 1, LeaderEpoch: 1, PartitionEpoch: 1, Replicas: ids(1, 2), ISR: ids(1, 3)},
		"two leaders of an epoch": {Leader: 2, LeaderEpoch: 0, PartitionEpoch: 1, Replicas: ids(1, 2, 3), ISR: ids(1, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newLeader(t)
			if rd := p.Step(0, 0, &in); rd.Err != model.ErrInvalidRequest {
				t.Errorf("answer %v", rd.Err)
			}
			if id, epoch := p.Leader(); id != 1 || epoch != 0 || p.Role() != Leader {
				t.Errorf("now %v, leader b%d in epoch %d", p.Role(), id, epoch)
			}
		})
	}
}

func TestStoppedReplicaAnswersEverything(t *testing.T) {
	p := newLeader(t)
	p.Step(0, 0, &Produce{Acks: -1, Batch: plain(1)})
	wait := ProduceWait{End: 1, Leadership: p.Leadership()}
	rd := p.Step(0, 0, &Stop{Err: model.ErrKafkaStorageError})
	if rd.Wake != WakeFetch|WakeProduce|WakeDelete {
		t.Errorf("wakes %b", rd.Wake)
	}
	if done, err := p.ProduceStatus(wait); !done || err != model.ErrKafkaStorageError {
		t.Errorf("a waiting producer gets %v, %v", done, err)
	}
	if rd := p.Step(0, 0, &Produce{Acks: 1, Batch: plain(1)}); rd.Err != model.ErrKafkaStorageError || rd.Append != nil {
		t.Errorf("a produce gets %+v", rd)
	}
	rd = p.Step(0, 0, &FetchRequest{Replica: model.NoBroker, LeaderEpoch: model.NoEpoch})
	if rd.Reply == nil || rd.Reply.Err != model.ErrKafkaStorageError || !rd.Reply.Now {
		t.Errorf("a fetch gets %+v", rd.Reply)
	}
	p.Step(0, 0, &Appended{End: 1}) // the log writer's late report
	if _, _, err := p.ListBound(model.NoEpoch, ReadUncommitted); err != model.ErrKafkaStorageError {
		t.Errorf("ListOffsets gets %v", err)
	}
}

func TestEveryReasonHasANameAndWords(t *testing.T) {
	names := map[string]bool{}
	for code := range DeleteBeyondHW + 1 {
		if name := code.String(); name == "" || names[name] {
			t.Errorf("code %d has the name %q", uint8(code), name)
		} else {
			names[name] = true
		}
		s := Reason{Code: code, Broker: 1, Offset: 2, Bound: 3, Epoch: 4, Err: model.ErrNotController}.String()
		if s == "" || strings.Contains(s, "%!") {
			t.Errorf("code %v says %q", code, s)
		}
	}
	if s := (Reason{Code: 255}).String(); s != "reason-255" {
		t.Errorf("an unknown code says %q", s)
	}
}

// edge draws offsets and the like where hostile values hide.
var edge = rapid.SampledFrom([]int64{math.MinInt64, -2, -1, 0, 1, 2, 3, 5, 8, math.MaxInt32, math.MaxInt64 - 1, math.MaxInt64})

func wild(t *rapid.T, name string) model.Offset { return model.Offset(edge.Draw(t, name)) }

func wildEpoch(t *rapid.T, name string) model.Epoch {
	return model.Epoch(rapid.SampledFrom([]int32{math.MinInt32, -2, -1, 0, 1, math.MaxInt32}).Draw(t, name))
}

// What comes from the network may be anything: it must never break an invariant,
// which Step would answer with a panic.
func TestHostilePeersNeverBreakAnInvariant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newFollower(t)
		if rapid.Bool().Draw(rt, "leader") {
			p = newLeader(t)
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			hostileStep(rt, p)
		}
	})
}

func hostileStep(t *rapid.T, p *Partition) {
	var rd Ready
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		rd = p.Step(0, 0, &FetchRequest{
			Replica: model.BrokerID(rapid.IntRange(-2, 4).Draw(t, "replica")), ReplicaEpoch: model.BrokerEpoch(wild(t, "life")),
			LeaderEpoch: wildEpoch(t, "epoch"), LastEpoch: wildEpoch(t, "last"), Offset: wild(t, "offset"),
			LogStart: wild(t, "start"), MaxBytes: int32(wild(t, "max")), FollowerOK: true,
			Committed: rapid.Bool().Draw(t, "committed"), Retry: rapid.Bool().Draw(t, "retry"),
		})
	case 1:
		rd = p.Step(0, 0, hostileResponse(t, p))
	case 2:
		rd = p.Step(0, 0, &LeaderOffsets{LogStart: wild(t, "start"), LEO: wild(t, "leo")})
	case 3:
		rd = p.Step(0, 0, &DeleteRecords{Offset: wild(t, "to")})
	case 4:
		rd = p.Step(0, 0, &Produce{Acks: 1, Batch: plain(int32(rapid.IntRange(-1, 3).Draw(t, "records")))})
	}
	obey(p, rd)
}

// hostileResponse is an answer that fits the fetch of p, with anything in it.
func hostileResponse(t *rapid.T, p *Partition) *FetchResponse {
	in := &FetchResponse{
		Offset: p.Marks().LEO, Err: rapid.SampledFrom([]model.Error{0, 0, 0, 1, 6, 74}).Draw(t, "err"),
		Diverging: model.EpochEnd{Epoch: wildEpoch(t, "diverging"), End: wild(t, "end")}, HW: wild(t, "hw"), LogStart: wild(t, "start"),
	}
	if rapid.Bool().Draw(t, "agree") {
		in.Diverging = model.UndefinedEpochEnd
	}
	for range rapid.IntRange(0, 3).Draw(t, "batches") {
		in.Batches = append(in.Batches, FetchedBatch{Base: wild(t, "base"), Last: wild(t, "last"), Epoch: wildEpoch(t, "of"), Producer: plain(1)})
	}
	return in
}

// obey is a storage that does at once what a Ready asks.
func obey(p *Partition, rd Ready) {
	truncate, appended, raise := rd.Truncate, rd.Append, rd.RaiseLogStart
	var t Truncate
	if truncate != nil {
		t = *truncate
	}
	var end, start model.Offset
	if appended != nil {
		end = appended.End
	}
	if raise != nil {
		start = *raise
	}
	if truncate != nil {
		at := min(p.Marks().LogStart, t.To)
		if t.Restart {
			at = t.To
		}
		obey(p, p.Step(0, 0, &Truncated{LEO: t.To, LogStart: at}))
	}
	if appended != nil {
		obey(p, p.Step(0, 0, &Appended{End: end}))
	}
	if raise != nil {
		obey(p, p.Step(0, 0, &LogStartMoved{To: start}))
	}
}

// Whatever a fetch that waits would be told, looking ahead tells the same, and
// the partition is as it was.
func TestAPeekAtAFetchChangesNothing(t *testing.T) {
	p := newLeader(t)
	p.Step(0, 0, &Produce{Acks: 1, Batch: plain(1), Bytes: 100})
	p.Step(0, 0, &Appended{End: 1, Pos: model.Position{Byte: 100}})
	for name, in := range map[string]FetchRequest{
		"behind":   {Replica: 2, ReplicaEpoch: 2, Offset: 0, MaxBytes: 1 << 20},
		"caught":   {Replica: 3, ReplicaEpoch: 3, Offset: 1, MaxBytes: 1 << 20},
		"consumer": {Replica: model.NoBroker, LeaderEpoch: model.NoEpoch, Offset: 0, MaxBytes: 1 << 20},
		"beyond":   {Replica: model.NoBroker, LeaderEpoch: model.NoEpoch, Offset: 9, MaxBytes: 1 << 20},
		"stranger": {Replica: 7, Offset: 0},
	} {
		in.LastEpoch = model.NoEpoch
		view, remotes := p.View(), slices.Clone(p.lead.remotes)
		got := p.Peek(in)
		if after := p.View(); !reflect.DeepEqual(after, view) || !slices.Equal(remotes, p.lead.remotes) {
			t.Errorf("%s: %+v after the look, %+v before", name, after, view)
		}
		in.Retry = true
		if want := *p.Step(0, 0, &in).Reply; got != want {
			t.Errorf("%s: %+v, and the retry is told %+v", name, got, want)
		}
	}
}
