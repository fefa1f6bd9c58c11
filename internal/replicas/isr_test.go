package replicas

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/task"
)

// proposed takes the proposals that the sender would send next.
func (c *crank) proposed() []proposal { return c.isr.inbox.Take(nil) }

// answered answers the one open proposal: with an error, or with the ISR that it
// asks for in the next partition epoch.
func (c *crank) answered(err model.Error) {
	c.t.Helper()
	ps := c.proposed()
	if len(ps) != 1 {
		c.t.Fatalf("%d proposals", len(ps))
	}
	p := ps[0]
	in := partition.ISRAnswer{Proposal: p.proposal, Err: err, Leader: 1, LeaderEpoch: p.epoch, PartitionEpoch: p.version + 1}
	for _, m := range p.members {
		in.ISR = append(in.ISR, m.ID)
	}
	c.turn(isrAnswers{{r: p.r, in: in}})
}

func TestAnAcceptedISRCountsOnceTheMetadataHasIt(t *testing.T) {
	c := newCrank(t)
	r := c.led(0, 1, 2)
	c.ask(fetchOf(2, 0, 1, 0, r), fetchOf(3, 0, 1, 0, r))
	c.answered(model.None)
	if v := r.p.View(); len(v.ISR) != 2 || !v.PendingISR {
		t.Fatalf("before the metadata: ISR %v, pending %v", v.ISR, v.PendingISR)
	}
	c.assignedAt(r, 2, 1, 2, 3)
	if v := r.p.View(); len(v.ISR) != 3 || v.PendingISR || r.answer != nil {
		t.Errorf("after it: ISR %v, pending %v", v.ISR, v.PendingISR)
	}
}

func TestMetadataThatIsAheadMakesAnAnswerVoid(t *testing.T) {
	c := newCrank(t)
	r := c.led(0, 1, 2)
	c.ask(fetchOf(2, 0, 1, 0, r), fetchOf(3, 0, 1, 0, r))
	ps := c.proposed()
	c.assignedAt(r, 3, 1)
	c.turn(isrAnswers{{r: r, in: partition.ISRAnswer{Proposal: ps[0].proposal, Leader: 1, LeaderEpoch: 1, PartitionEpoch: 2,
		ISR: []model.BrokerID{1, 2, 3}}}})
	if v := r.p.View(); len(v.ISR) != 1 || r.answer != nil {
		t.Errorf("ISR %v", v.ISR)
	}
}

// controllerStub is what an isrSender asks: it counts the requests and answers each
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

// sending starts an isrSender that asks s; got brings its answers.
func sending(t *testing.T, s *controllerStub) (sender *isrSender, got chan isrAnswers) {
	var rt *task.Runtime
	got = make(chan isrAnswers, 10)
	sender = &isrSender{id: 1, forward: s.forward, epoch: func() model.BrokerEpoch { return 10 },
		tell: func(as isrAnswers) bool { got <- as; return true }, inbox: task.NewQueue[proposal](rt), done: rt.NewSignal()}
	ctx, cancel := context.WithCancel(context.Background())
	go sender.run(ctx)
	t.Cleanup(func() { cancel(); <-sender.done.C() })
	return sender, got
}

func TestProposalsOfOneTurnGoInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &controllerStub{}
		sender, got := sending(t, s)
		for i, id := range []model.TopicIDPartition{{TopicID: model.UUID{1}}, {TopicID: model.UUID{2}}, {TopicID: model.UUID{1}, Partition: 1}} {
			sender.turn = append(sender.turn, proposal{id: id, proposal: uint64(i), epoch: 4, version: model.PartitionEpoch(i),
				members: []partition.ISRMember{{ID: 1, Epoch: 10}, {ID: 2, Epoch: 20}}})
		}
		sender.flush()
		answers := <-got
		if len(s.asked) != 1 || len(s.asked[0].Topics) != 2 || len(s.asked[0].Topics[0].Partitions) != 2 {
			t.Fatalf("requests: %+v", s.asked)
		}
		if req := s.asked[0]; req.BrokerID != 1 || req.BrokerEpoch != 10 || req.Topics[1].Partitions[0].NewEpochISR[1].BrokerEpoch != 20 {
			t.Errorf("request %+v", req)
		}
		for i, a := range answers {
			if a.in.Proposal != uint64(i) || a.in.Err != model.None || a.in.PartitionEpoch != model.PartitionEpoch(i+1) || len(a.in.ISR) != 2 {
				t.Errorf("answer %d: %+v", i, a.in)
			}
		}
	})
}

func TestARequestNamesAPartitionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &controllerStub{}
		sender, got := sending(t, s)
		id := model.TopicIDPartition{TopicID: model.UUID{1}}
		for i := range 3 {
			sender.turn = append(sender.turn, proposal{id: id, proposal: uint64(i), version: model.PartitionEpoch(i)})
		}
		sender.flush()
		if answers := <-got; len(s.asked) != 1 || len(s.asked[0].Topics[0].Partitions) != 1 || len(answers) != 1 || answers[0].in.Proposal != 2 {
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
				sender, got := sending(t, s)
				began := time.Now()
				for range 3 {
					sender.turn = []proposal{{id: model.TopicIDPartition{TopicID: model.UUID{1}}}}
					sender.flush()
					if err := (<-got)[0].in.Err; err != model.ErrNetworkException && err != model.ErrNotController {
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
