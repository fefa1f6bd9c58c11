package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Leaders returns the partitions of the topic by the broker that leads them, and
// the node that leads the controllers. Brokers hear of new leaders one after the
// other: it asks them all until they agree.
func Leaders(ctx context.Context, brokers []string, topic string) (led map[int][]int32, controller int, err error) {
	err = until(ctx, brokers, func(cl *kgo.Client) error {
		list, err := kadm.NewClient(cl).ListBrokers(ctx)
		if err != nil {
			return err
		}
		led = nil
		for _, id := range list.NodeIDs() {
			told, err := ledBy(ctx, cl.Broker(int(id)), topic)
			if err != nil {
				return fmt.Errorf("ask broker %d who leads: %w", id, err)
			}
			if led != nil && !maps.EqualFunc(led, told, slices.Equal) {
				return fmt.Errorf("brokers do not agree who leads: %v and %v", led, told)
			}
			led = told
		}
		controller, err = activeController(ctx, cl)
		return err
	})
	return led, controller, err
}

// ledBy is who leads, as one broker knows it.
func ledBy(ctx context.Context, broker *kgo.Broker, topic string) (map[int][]int32, error) {
	req, t := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	answer, err := broker.RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.MetadataResponse)
	if len(resp.Topics) != 1 {
		return nil, fmt.Errorf("%d topics were told, not one", len(resp.Topics))
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		return nil, err
	}
	parts := resp.Topics[0].Partitions
	slices.SortFunc(parts, func(a, b kmsg.MetadataResponseTopicPartition) int { return int(a.Partition - b.Partition) })
	led := map[int][]int32{}
	for _, p := range parts {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			return nil, err
		}
		led[int(p.Leader)] = append(led[int(p.Leader)], p.Partition)
	}
	return led, nil
}

func activeController(ctx context.Context, cl *kgo.Client) (int, error) {
	req := kmsg.NewDescribeQuorumRequest()
	t, p := kmsg.NewDescribeQuorumRequestTopic(), kmsg.NewDescribeQuorumRequestTopicPartition()
	t.Topic, t.Partitions = "__cluster_metadata", append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the active controller: %w", err)
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || resp.Topics[0].Partitions[0].LeaderID < 0 {
		return 0, errors.New("ask for the active controller: none is known")
	}
	return int(resp.Topics[0].Partitions[0].LeaderID), nil
}

// Prefer makes the first replica of every partition of the topic its leader, when
// it is in sync. It asks until that is so.
func Prefer(ctx context.Context, brokers []string, topic string) error {
	return admin(ctx, brokers, func(adm *kadm.Client) error {
		results, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, nil)
		if err != nil {
			return err
		}
		for _, r := range results[topic] {
			if r.Err != nil && !errors.Is(r.Err, kerr.ElectionNotNeeded) {
				return r.Err
			}
		}
		list, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		for _, p := range list[topic].Partitions {
			if len(p.Replicas) == 0 || p.Leader != p.Replicas[0] {
				return fmt.Errorf("partition %d of topic %s is led by %d, not by the first of %v", p.Partition, topic, p.Leader, p.Replicas)
			}
		}
		return nil
	})
}
