package isr

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/task"
)

// controllerStub is what a Sender asks: it counts the requests and answers each
// partition with an error, or nothing.
type controllerStub struct {
	asked []*kmsg.AlterPartitionRequest
	top   error
	err   model.Error
}

func (s *controllerStub) forward(_ context.Context, r kmsg.Request) (kmsg.Response, error) {
	req := r.(*kmsg.AlterPartitionRequest)
	s.asked = append(s.asked, req)
	if s.top != nil {
		return nil, s.top
	}
	resp := kmsg.NewPtrAlterPartitionResponse()
	for _, t := range req.Topics {
		out := kmsg.NewAlterPartitionResponseTopic()
		out.TopidID = t.TopicID
		for _, p := range t.Partitions {
			part := kmsg.NewAlterPartitionResponseTopicPartition()
			part.Partition, part.ErrorCode, part.LeaderID, part.LeaderEpoch = p.Partition, s.err.Code(), 1, p.LeaderEpoch
			part.PartitionEpoch = p.PartitionEpoch + 1
			for _, m := range p.NewEpochISR {
				part.ISR = append(part.ISR, m.BrokerID)
			}
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// sending starts a Sender that asks s and sends what is posted to the queue; got
// brings its answers.
func sending(t *testing.T, s *controllerStub) (posted *task.Queue[Proposal], got chan []Answer) {
	got = make(chan []Answer, 10)
	sender := &Sender{ID: 1, Forward: s.forward, Epoch: func() model.BrokerEpoch { return 10 },
		Tell: func(as []Answer) bool { got <- as; return true }, Proposals: task.NewQueue[Proposal](nil)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); sender.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return sender.Proposals, got
}

// of proposes for a partition.
func of(id model.TopicIDPartition, a partition.AlterISR) Proposal {
	return Proposal{Hosted: &api.Hosted{ID: id}, AlterISR: a}
}

func TestProposalsOfOneTurnGoInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &controllerStub{}
		posted, got := sending(t, s)
		var turn []Proposal
		for i, id := range []model.TopicIDPartition{{TopicID: model.UUID{1}}, {TopicID: model.UUID{2}}, {TopicID: model.UUID{1}, Partition: 1}} {
			turn = append(turn, of(id, partition.AlterISR{Proposal: uint64(i), LeaderEpoch: 4, PartitionEpoch: model.PartitionEpoch(i),
				ISR: []partition.ISRMember{{ID: 1, Epoch: 10}, {ID: 2, Epoch: 20}}}))
		}
		posted.Post(turn...)
		answers := <-got
		if len(s.asked) != 1 || len(s.asked[0].Topics) != 2 || len(s.asked[0].Topics[0].Partitions) != 2 {
			t.Fatalf("requests: %+v", s.asked)
		}
		if req := s.asked[0]; req.BrokerID != 1 || req.BrokerEpoch != 10 || req.Topics[1].Partitions[0].NewEpochISR[1].BrokerEpoch != 20 {
			t.Errorf("request %+v", req)
		}
		for i, a := range answers {
			if a.Proposal != uint64(i) || a.Err != model.None || a.PartitionEpoch != model.PartitionEpoch(i+1) || len(a.ISR) != 2 {
				t.Errorf("answer %d: %+v", i, a)
			}
		}
	})
}

func TestARequestNamesAPartitionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &controllerStub{}
		posted, got := sending(t, s)
		var turn []Proposal
		id := model.TopicIDPartition{TopicID: model.UUID{1}}
		for i := range 3 {
			turn = append(turn, of(id, partition.AlterISR{Proposal: uint64(i), PartitionEpoch: model.PartitionEpoch(i)}))
		}
		posted.Post(turn...)
		if answers := <-got; len(s.asked) != 1 || len(s.asked[0].Topics[0].Partitions) != 1 || len(answers) != 1 || answers[0].Proposal != 2 {
			t.Fatalf("the newest proposal alone counts: %+v, %+v", s.asked, answers)
		}
	})
}

func TestAControllerThatDecidesNothingIsNotPressed(t *testing.T) {
	stubs := map[string]*controllerStub{
		"no answer":      {top: errors.New("nobody is there")},
		"not controller": {err: model.ErrNotController},
	}
	for name, s := range stubs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				posted, got := sending(t, s)
				began := time.Now()
				for range 3 {
					posted.Post(of(model.TopicIDPartition{TopicID: model.UUID{1}}, partition.AlterISR{}))
					if err := (<-got)[0].Err; err != model.ErrNetworkException && err != model.ErrNotController {
						t.Errorf("the core is told %v", err)
					}
				}
				if took := time.Since(began); took < 3*alterRetry {
					t.Errorf("three requests in %v", took)
				}
			})
		})
	}
}
