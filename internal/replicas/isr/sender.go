// Package isr carries proposals for other ISRs to the active controller.
package isr

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/task"
)

// alterRetry is Kafka's pause before an AlterPartition that got no answer is
// sent again (R0.1).
const alterRetry = 50 * time.Millisecond

// alterLimit is how long an answer may take: Kafka's controller.socket.timeout.ms.
const alterLimit = 30 * time.Second

// Proposal is one partition's wish, with an ISR of its own.
type Proposal struct {
	Hosted *api.Hosted
	partition.AlterISR
}

// Answer is what the partition's core is told.
type Answer struct {
	Hosted *api.Hosted
	partition.ISRAnswer
}

// Sender carries ISR proposals to the controller: one request in flight per
// broker, with everything that was proposed meanwhile in the next (R5.6).
type Sender struct {
	ID      model.BrokerID
	Epoch   func() model.BrokerEpoch // of this broker's registration
	Forward func(context.Context, kmsg.Request) (kmsg.Response, error)
	Runtime *task.Runtime
	// Proposals is where they wait to be sent.
	Proposals *task.Queue[Proposal]
	// Tell takes the answers to one request; false ends the sender.
	Tell func([]Answer) bool
}

// Run is the sender's task; it ends with ctx.
func (s *Sender) Run(ctx context.Context) {
	waiter := s.Runtime.NewWaiter()
	for {
		batch := s.Proposals.Take(nil)
		if len(batch) == 0 {
			if waiter.Wait(ctx, task.Forever, s.Proposals.Wake) == task.Ended {
				return
			}
			continue
		}
		answers := s.send(ctx, lastOfEach(batch))
		if ctx.Err() != nil || !s.Tell(answers) {
			return
		}
	}
}

// lastOfEach keeps the last proposal of each partition: an earlier one that was not
// sent yet was given up by its core, and a controller refuses a request that names
// a partition twice.
func lastOfEach(batch []Proposal) []Proposal {
	last := map[model.TopicIDPartition]int{}
	for i, p := range batch {
		last[p.Hosted.ID] = i
	}
	out := batch[:0]
	for i, p := range batch {
		if last[p.Hosted.ID] == i {
			out = append(out, p)
		}
	}
	return out
}

// sentAgain says that the answer decides nothing: the core proposes the same
// again at once.
func (a Answer) sentAgain() bool {
	switch a.Err {
	case model.ErrNetworkException, model.ErrNotController, model.ErrRequestTimedOut, model.ErrUnknownServerError:
		return true
	}
	return false
}

// send asks the controller once. Without an answer every proposal gets
// NETWORK_EXCEPTION. A pause goes ahead of what will be sent again.
func (s *Sender) send(ctx context.Context, batch []Proposal) []Answer {
	out := make([]Answer, len(batch))
	for i, p := range batch {
		out[i] = Answer{Hosted: p.Hosted, ISRAnswer: partition.ISRAnswer{Proposal: p.Proposal, Err: model.ErrNetworkException}}
	}
	try, cancel := s.Runtime.WithTimeout(ctx, alterLimit)
	resp, err := s.Forward(try, s.request(batch))
	cancel()
	if alter, ok := resp.(*kmsg.AlterPartitionResponse); err == nil && ok && alter.ErrorCode == 0 {
		s.match(alter, batch, out)
		if !slices.ContainsFunc(out, Answer.sentAgain) {
			return out
		}
	}
	s.Runtime.Sleep(ctx, alterRetry)
	return out
}

func (s *Sender) request(batch []Proposal) *kmsg.AlterPartitionRequest {
	req := kmsg.NewPtrAlterPartitionRequest()
	req.Version = 3
	req.BrokerID, req.BrokerEpoch = int32(s.ID), int64(s.Epoch())
	topics := map[model.UUID]int{}
	for _, p := range batch {
		i, ok := topics[p.Hosted.ID.TopicID]
		if !ok {
			i = len(req.Topics)
			topics[p.Hosted.ID.TopicID] = i
			t := kmsg.NewAlterPartitionRequestTopic()
			t.TopicID = p.Hosted.ID.TopicID
			req.Topics = append(req.Topics, t)
		}
		part := kmsg.NewAlterPartitionRequestTopicPartition()
		part.Partition, part.LeaderEpoch, part.PartitionEpoch = p.Hosted.ID.Partition, int32(p.LeaderEpoch), int32(p.PartitionEpoch)
		for _, m := range p.ISR {
			e := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
			e.BrokerID, e.BrokerEpoch = int32(m.ID), int64(m.Epoch)
			part.NewEpochISR = append(part.NewEpochISR, e)
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
	}
	return req
}

// match fills the controller's answers in.
func (s *Sender) match(resp *kmsg.AlterPartitionResponse, batch []Proposal, out []Answer) {
	got := map[model.TopicIDPartition]*kmsg.AlterPartitionResponseTopicPartition{}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			got[model.TopicIDPartition{TopicID: t.TopidID, Partition: t.Partitions[j].Partition}] = &t.Partitions[j]
		}
	}
	for i, p := range batch {
		a, ok := got[p.Hosted.ID]
		if !ok {
			continue
		}
		in := &out[i].ISRAnswer
		in.Err = model.Error(a.ErrorCode)
		in.Leader, in.LeaderEpoch = model.BrokerID(a.LeaderID), model.Epoch(a.LeaderEpoch)
		in.PartitionEpoch, in.Recovering = model.PartitionEpoch(a.PartitionEpoch), a.LeaderRecoveryState == 1
		for _, id := range a.ISR {
			in.ISR = append(in.ISR, model.BrokerID(id))
		}
	}
}
