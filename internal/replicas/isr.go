package replicas

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/task"
)

// alterRetry is Kafka's pause before an AlterPartition that got no answer is
// sent again (R0.1).
const alterRetry = 50 * time.Millisecond

// alterLimit is how long an answer may take: Kafka's controller.socket.timeout.ms.
const alterLimit = 30 * time.Second

// isrSender carries ISR proposals to the controller: one request in flight per
// broker, with everything that was proposed meanwhile in the next (R5.6).
type isrSender struct {
	id      model.BrokerID
	rt      *task.Runtime
	forward func(context.Context, kmsg.Request) (kmsg.Response, error)
	epoch   func() model.BrokerEpoch
	tell    func(isrAnswers) bool
	inbox   *task.Queue[proposal]
	turn    []proposal // collected by the replicas loop in one turn
	done    *task.Signal
}

// proposal is one partition's wish.
type proposal struct {
	r        *replica
	id       model.TopicIDPartition
	proposal uint64
	epoch    model.Epoch
	version  model.PartitionEpoch
	members  []partition.ISRMember
}

// isrAnswers is the event that brings the controller's answers to the loop.
type isrAnswers []isrAnswer

type isrAnswer struct {
	r  *replica
	in partition.ISRAnswer
}

// turn hands the answers to the cores. A change that was accepted waits until
// the metadata brings it too: the controller made it under the configs of its
// own, and a minimum that was raised before must count here before it does.
func (as isrAnswers) turn(l *Loop) {
	for i := range as {
		a := &as[i]
		if a.in.Err == model.None && a.in.PartitionEpoch > a.r.epoch {
			a.r.answer = &a.in
			continue
		}
		l.step(a.r, &a.in)
	}
}

// propose is called in the replicas loop.
func (s *isrSender) propose(r *replica, a *partition.AlterISR) {
	s.turn = append(s.turn, proposal{r: r, id: r.hosted.ID, proposal: a.Proposal, epoch: a.LeaderEpoch,
		version: a.PartitionEpoch, members: append([]partition.ISRMember(nil), a.ISR...)})
}

// flush hands the turn's proposals to the sender.
func (s *isrSender) flush() {
	if len(s.turn) > 0 {
		s.inbox.Post(s.turn...)
		s.turn = nil
	}
}

// run is the sender's task; it ends with ctx.
func (s *isrSender) run(ctx context.Context) {
	defer s.done.Close()
	waiter := s.rt.NewWaiter()
	for {
		batch := s.inbox.Take(nil)
		if len(batch) == 0 {
			if waiter.Wait(ctx, task.Forever, s.inbox.Wake) == task.Ended {
				return
			}
			continue
		}
		answers := s.send(ctx, lastOfEach(batch))
		if ctx.Err() != nil || !s.tell(answers) {
			return
		}
	}
}

// lastOfEach keeps the last proposal of each partition: an earlier one that was not
// sent yet was given up by its core, and a controller refuses a request that names
// a partition twice.
func lastOfEach(batch []proposal) []proposal {
	last := map[model.TopicIDPartition]int{}
	for i, p := range batch {
		last[p.id] = i
	}
	out := batch[:0]
	for i, p := range batch {
		if last[p.id] == i {
			out = append(out, p)
		}
	}
	return out
}

// sentAgain says that the answer decides nothing: the core proposes the same
// again at once.
func (a isrAnswer) sentAgain() bool {
	switch a.in.Err {
	case model.ErrNetworkException, model.ErrNotController, model.ErrRequestTimedOut, model.ErrUnknownServerError:
		return true
	}
	return false
}

// send asks the controller once. Without an answer every proposal gets
// NETWORK_EXCEPTION. A pause goes ahead of what will be sent again.
func (s *isrSender) send(ctx context.Context, batch []proposal) isrAnswers {
	out := make(isrAnswers, len(batch))
	for i, p := range batch {
		out[i] = isrAnswer{r: p.r, in: partition.ISRAnswer{Proposal: p.proposal, Err: model.ErrNetworkException}}
	}
	try, cancel := s.rt.WithTimeout(ctx, alterLimit)
	resp, err := s.forward(try, s.request(batch))
	cancel()
	if alter, ok := resp.(*kmsg.AlterPartitionResponse); err == nil && ok && alter.ErrorCode == 0 {
		s.match(alter, batch, out)
		if !slices.ContainsFunc(out, isrAnswer.sentAgain) {
			return out
		}
	}
	s.rt.Sleep(ctx, alterRetry)
	return out
}

func (s *isrSender) request(batch []proposal) *kmsg.AlterPartitionRequest {
	req := kmsg.NewPtrAlterPartitionRequest()
	req.Version = 3
	req.BrokerID, req.BrokerEpoch = int32(s.id), int64(s.epoch())
	topics := map[model.UUID]int{}
	for _, p := range batch {
		i, ok := topics[p.id.TopicID]
		if !ok {
			i = len(req.Topics)
			topics[p.id.TopicID] = i
			t := kmsg.NewAlterPartitionRequestTopic()
			t.TopicID = p.id.TopicID
			req.Topics = append(req.Topics, t)
		}
		part := kmsg.NewAlterPartitionRequestTopicPartition()
		part.Partition, part.LeaderEpoch, part.PartitionEpoch = p.id.Partition, int32(p.epoch), int32(p.version)
		for _, m := range p.members {
			e := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
			e.BrokerID, e.BrokerEpoch = int32(m.ID), int64(m.Epoch)
			part.NewEpochISR = append(part.NewEpochISR, e)
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
	}
	return req
}

// match fills the controller's answers in.
func (s *isrSender) match(resp *kmsg.AlterPartitionResponse, batch []proposal, out isrAnswers) {
	got := map[model.TopicIDPartition]*kmsg.AlterPartitionResponseTopicPartition{}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			got[model.TopicIDPartition{TopicID: t.TopidID, Partition: t.Partitions[j].Partition}] = &t.Partitions[j]
		}
	}
	for i, p := range batch {
		a, ok := got[p.id]
		if !ok {
			continue
		}
		in := &out[i].in
		in.Err = model.Error(a.ErrorCode)
		in.Leader, in.LeaderEpoch = model.BrokerID(a.LeaderID), model.Epoch(a.LeaderEpoch)
		in.PartitionEpoch, in.Recovering = model.PartitionEpoch(a.PartitionEpoch), a.LeaderRecoveryState == 1
		for _, id := range a.ISR {
			in.ISR = append(in.ISR, model.BrokerID(id))
		}
	}
}
