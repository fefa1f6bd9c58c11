package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// administer moves leaders and replicas and makes topics until the context ends.
// What fails for the faults is not done.
func (n *nemesis) administer(ctx context.Context, rng *rand.Rand) error {
	adm, err := n.c.administrator()
	if err != nil {
		return err
	}
	defer adm.Close()
	acts := []struct {
		name string
		do   func(context.Context, *kadm.Client, *rand.Rand) error
	}{
		{"elect", n.elect}, {"move", n.move}, {"reorder", n.reorder}, {"create", n.createExtra}, {"delete", n.deleteExtra},
	}
	for pause(ctx, seconds(1+3*rng.Float64())) {
		a := acts[rng.IntN(len(acts))]
		part, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := a.do(part, adm, rng)
		cancel()
		if err == nil {
			n.count("admin: " + a.name)
		} else {
			n.count("admin: " + a.name + " failed")
		}
	}
	return nil
}

// elect asks for the preferred leaders of everything.
func (n *nemesis) elect(ctx context.Context, adm *kadm.Client, _ *rand.Rand) error {
	_, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, nil)
	return err
}

// victim chooses a partition of a ledger or of the offsets topic.
func (n *nemesis) victim(rng *rand.Rand) (string, int32) {
	ls := ledgers()
	if i := rng.IntN(len(ls) + 1); i < len(ls) {
		return ls[i].topic, rng.Int32N(ls[i].partitions)
	}
	return "__consumer_offsets", rng.Int32N(3)
}

// assign gives a partition new replicas.
func (n *nemesis) assign(ctx context.Context, adm *kadm.Client, topic string, p int32, replicas []int32) error {
	var req kadm.AlterPartitionAssignmentsReq
	req.Assign(topic, p, replicas)
	resp, err := adm.AlterPartitionAssignments(ctx, req)
	if err != nil {
		return err
	}
	return resp.Error()
}

// move gives a partition three replicas of chance, in an order of chance.
func (n *nemesis) move(ctx context.Context, adm *kadm.Client, rng *rand.Rand) error {
	topic, p := n.victim(rng)
	var replicas []int32
	for _, i := range rng.Perm(len(n.c.brokers))[:3] {
		replicas = append(replicas, n.c.brokers[i])
	}
	return n.assign(ctx, adm, topic, p, replicas)
}

// reorder makes another replica the preferred one and has it elected.
func (n *nemesis) reorder(ctx context.Context, adm *kadm.Client, rng *rand.Rand) error {
	topic, p := n.victim(rng)
	topics, err := adm.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	replicas := topics[topic].Partitions[p].Replicas
	rng.Shuffle(len(replicas), func(i, j int) { replicas[i], replicas[j] = replicas[j], replicas[i] })
	if len(replicas) != 3 {
		return fmt.Errorf("partition %s-%d is not known, or is moving: %v", topic, p, replicas)
	}
	if err := n.assign(ctx, adm, topic, p, replicas); err != nil {
		return err
	}
	var s kadm.TopicsSet
	s.Add(topic, p)
	_, err = adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, s)
	return err
}

func (n *nemesis) createExtra(ctx context.Context, adm *kadm.Client, rng *rand.Rand) error {
	_, err := adm.CreateTopic(ctx, 2, 3, nil, fmt.Sprintf("extra%d", rng.IntN(20)))
	return err
}

func (n *nemesis) deleteExtra(ctx context.Context, adm *kadm.Client, rng *rand.Rand) error {
	_, err := adm.DeleteTopic(ctx, fmt.Sprintf("extra%d", rng.IntN(20)))
	return err
}
