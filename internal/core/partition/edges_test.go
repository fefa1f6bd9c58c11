package partition

import (
	"testing"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/producers"
)

// Metadata may arrive twice or in the wrong order; what is older than what is
// known changes nothing (R4.1, I6).
func TestOlderMetadataIsIgnored(t *testing.T) {
	ids := []model.BrokerID{1, 2, 3}
	p := newLeader(t)
	p.Step(0, 0, &Assign{Leader: 1, LeaderEpoch: 4, PartitionEpoch: 9, Replicas: ids, ISR: ids})
	p.Step(0, 0, &EpochPersisted{Epoch: 4})
	for name, in := range map[string]Assign{
		"partition epoch": {Leader: 2, LeaderEpoch: 5, PartitionEpoch: 8, Replicas: ids, ISR: ids},
		"leader epoch":    {Leader: 2, LeaderEpoch: 3, PartitionEpoch: 10, Replicas: ids, ISR: ids},
	} {
		rd := p.Step(0, 0, &in)
		if p.Role() != Leader || p.View().LeaderEpoch != 4 || rd.PersistEpochs != nil || rd.FetchFrom != nil {
			t.Errorf("an older %s is taken: %+v", name, p.View())
		}
		if len(rd.Reasons) != 1 || rd.Reasons[0].Code != AssignStale {
			t.Errorf("an older %s has the reasons %v", name, rd.Reasons)
		}
	}
}

// While a change of role waits for the log writer, only newer metadata replaces
// it.
func TestWaitingRoleIsReplacedByNewerMetadataOnly(t *testing.T) {
	ids := []model.BrokerID{1, 2, 3}
	p := newLeader(t)
	p.Step(0, 0, &Produce{Acks: 1, Batch: plain(1)})
	p.Step(0, 0, &Assign{Leader: 2, LeaderEpoch: 2, PartitionEpoch: 2, Replicas: ids, ISR: ids})
	p.Step(0, 0, &Assign{Leader: 3, LeaderEpoch: 1, PartitionEpoch: 1, Replicas: ids, ISR: ids})
	p.Step(0, 0, &Assign{Leader: 3, LeaderEpoch: 3, PartitionEpoch: 3, Replicas: ids, ISR: ids})
	if p.Role() != Leader || p.Serving() {
		t.Fatalf("a %s, serving %v, with an append in flight", p.Role(), p.Serving())
	}
	rd := p.Step(0, 0, &Appended{End: 1})
	if id, epoch := p.Leader(); id != 3 || epoch != 3 || p.Role() != Follower {
		t.Errorf("a %s of b%d in epoch %d", p.Role(), id, epoch)
	}
	if rd.FetchFrom == nil || *rd.FetchFrom != 3 {
		t.Errorf("fetches from %v", rd.FetchFrom)
	}
}

// The controller's answer to an open proposal may be older than what metadata
// told, or for another epoch: it is not taken, and the proposal stays open
// (R5.10).
func TestOlderAnswerDoesNotCloseAProposal(t *testing.T) {
	for name, change := range map[string]func(*ISRAnswer){
		"leader epoch":    func(a *ISRAnswer) { a.LeaderEpoch = 1 },
		"partition epoch": func(a *ISRAnswer) { a.PartitionEpoch = -1 },
		"ISR without us":  func(a *ISRAnswer) { a.ISR = []model.BrokerID{2} },
	} {
		p := newLeader(t)
		p.Step(0, 0, &Produce{Acks: 1, Batch: plain(1)})
		p.Step(0, 0, &Appended{End: 1})
		a := p.Step(model.Time(time.Minute), 0, &Tick{}).AlterISR
		if a == nil {
			t.Fatal("nobody leaves")
		}
		answer := ISRAnswer{Proposal: a.Proposal, Leader: 1, PartitionEpoch: 1, ISR: []model.BrokerID{1}}
		change(&answer)
		p.Step(model.Time(time.Minute), 0, &answer)
		if v := p.View(); !v.PendingISR || len(v.ISR) != 3 {
			t.Errorf("an answer with another %s is taken: %+v", name, v)
		}
	}
}

// A broker that the metadata does not know may not join, however far it is
// (R5.5).
func TestUnregisteredBrokerMayNotJoin(t *testing.T) {
	p := newLeader(t)
	p.Step(0, 0, &Assign{Leader: 1, PartitionEpoch: 1, Replicas: []model.BrokerID{1, 2, 9}, ISR: []model.BrokerID{1, 2}})
	rd := p.Step(0, 0, &FetchRequest{Replica: 9, ReplicaEpoch: 9})
	if rd.AlterISR != nil || len(rd.Reasons) != 1 || rd.Reasons[0].Code != JoinUnregistered {
		t.Errorf("proposes %+v, because %v", rd.AlterISR, rd.Reasons)
	}
}

// A leader that cannot be asked for its bounds is asked again by the next fetch.
func TestUnansweredQuestionEndsInABackoff(t *testing.T) {
	p := newFollower(t)
	rd := p.Step(0, 0, &FetchResponse{Err: model.ErrOffsetOutOfRange, Diverging: model.UndefinedEpochEnd})
	if _, ok := p.NextFetch(); !rd.AskLeader || ok {
		t.Fatalf("asks %v, and fetches meanwhile %v", rd.AskLeader, ok)
	}
	rd = p.Step(0, 0, &LeaderOffsets{Err: model.ErrNetworkException})
	if _, ok := p.NextFetch(); !rd.Backoff || !ok {
		t.Errorf("backs off %v, fetches again %v", rd.Backoff, ok)
	}
}

// A follower of an epoch that its leader calls over waits for metadata (R4.14).
func TestFencedFollowerWaitsForMetadata(t *testing.T) {
	p := newFollower(t)
	rd := p.Step(0, 0, &FetchResponse{Err: model.ErrFencedLeaderEpoch, Diverging: model.UndefinedEpochEnd})
	if _, ok := p.NextFetch(); ok || rd.FetchFrom == nil || *rd.FetchFrom != model.NoBroker {
		t.Errorf("goes on fetching: %v, %v", ok, rd.FetchFrom)
	}
	p.Step(0, 0, &Assign{Leader: 1, LeaderEpoch: 1, PartitionEpoch: 1, Replicas: []model.BrokerID{1, 2}, ISR: []model.BrokerID{1}})
	if at, ok := p.NextFetch(); !ok || at.LeaderEpoch != 1 {
		t.Errorf("with newer metadata it fetches %v, %+v", ok, at)
	}
}

// What retention removed was committed, so a HW that lags goes up with the log
// start (R1.9).
func TestLogStartRaisesALaggingHW(t *testing.T) {
	p := New(Config{ID: 2, LEO: 9, HW: 2, Epochs: []model.EpochStart{{Epoch: 0}}})
	p.Step(0, 0, &LogStartMoved{To: 5})
	if m := p.Marks(); m.LogStart != 5 || m.HW != 5 {
		t.Errorf("marks %+v", m)
	}
	if e := p.EpochAt(5); e != 0 {
		t.Errorf("the record at the new start is of epoch %d", e)
	}
}

func TestStartClampsTheCheckpointedHW(t *testing.T) {
	for hw, want := range map[model.Offset]model.Offset{-1: 3, 2: 3, 5: 5, 99: 9} {
		p := New(Config{ID: 2, LEO: 9, LogStart: 3, HW: hw})
		if got := p.Marks().HW; got != want {
			t.Errorf("a checkpoint of %d gives HW %d, want %d", hw, got, want)
		}
	}
}

// An idle producer is forgotten after its time; the next sequence starts anew
// (R2.16).
func TestIdleProducersAreForgotten(t *testing.T) {
	p := newLeader(t)
	p.cfg.ProducerExpiry = 24 * time.Hour
	b := producers.Batch{ID: 7, Records: 1, MaxTimestamp: 1}
	p.Step(0, 1, &Produce{Acks: 1, Batch: b})
	b.BaseSequence = 5
	if rd := p.Step(0, 1, &Produce{Acks: 1, Batch: b}); rd.Err != model.ErrOutOfOrderSequenceNumber {
		t.Fatalf("a gap gets %v", rd.Err)
	}
	day := model.Millis(24 * time.Hour / time.Millisecond)
	p.Step(0, day+2, &Tick{})
	if rd := p.Step(0, day+2, &Produce{Acks: 1, Batch: b}); rd.Err != model.None {
		t.Errorf("after a day it gets %v", rd.Err)
	}
}
