package load

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Leaders returns the partitions of the topic by the broker that leads them, and
// the node that leads the controllers.
func Leaders(ctx context.Context, brokers []string, topic string) (led map[int][]int32, controller int, err error) {
	cl, err := Eager(brokers)
	if err != nil {
		return nil, 0, err
	}
	defer cl.Close()
	list, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err == nil {
		err = list[topic].Err
	}
	if err != nil {
		return nil, 0, err
	}
	led = map[int][]int32{}
	for _, p := range list[topic].Partitions.Sorted() {
		if p.Err != nil {
			return nil, 0, p.Err
		}
		led[int(p.Leader)] = append(led[int(p.Leader)], p.Partition)
	}
	controller, err = activeController(ctx, cl)
	return led, controller, err
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
