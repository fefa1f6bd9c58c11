package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// client produces numbered records and reads them back.
type client struct {
	bootstrap string
	c         *kgo.Client
	admin     *kadm.Client
}

func newClient(bootstrap string, opts ...kgo.Opt) (*client, error) {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.MetadataMinAge(20 * time.Millisecond)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &client{bootstrap, c, kadm.NewClient(c)}, nil
}

func (k *client) close() { k.c.Close() }

func (k *client) create(ctx context.Context, topic string, partitions int32, rf int16) error {
	resp, err := k.admin.CreateTopic(ctx, partitions, rf, nil, topic)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return resp.Err
}

// produce writes the records from, from+1, … and waits until all are acknowledged.
func (k *client) produce(ctx context.Context, topic string, from, n int) error {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(from + i))}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := k.c.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("produce to %s: %w", topic, err)
	}
	return nil
}

// waitISR waits until every partition has so many replicas in sync. It asks past
// the client's cache.
func (k *client) waitISR(ctx context.Context, topic string, size int, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		sizes, err := k.isrSizes(ctx, topic)
		if err == nil && len(sizes) > 0 && slices.Min(sizes) == size && slices.Max(sizes) == size {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("the ISRs of %s have not %d members after %v, but %v: %v", topic, size, limit, sizes, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (k *client) isrSizes(ctx context.Context, topic string) ([]int, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, k.c)
	if err != nil || len(resp.Topics) != 1 {
		return nil, err
	}
	var out []int
	for _, p := range resp.Topics[0].Partitions {
		out = append(out, len(p.ISR))
	}
	return out, nil
}

// expect reads the topic with a new consumer: the records 0 to n, each once.
func (k *client) expect(ctx context.Context, topic string, n int) error {
	r, err := newClient(k.bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer r.close()
	seen := map[string]int{}
	if err := r.read(ctx, n, seen, func(*kgo.Record) {}); err != nil {
		return err
	}
	for i := range n {
		if times := seen[strconv.Itoa(i)]; times != 1 {
			return fmt.Errorf("record %d of %s was read %d times", i, topic, times)
		}
	}
	return nil
}

func (k *client) read(ctx context.Context, n int, seen map[string]int, each func(*kgo.Record)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for got := 0; got < n; {
		fs := k.c.PollRecords(ctx, n-got)
		if ctx.Err() != nil {
			return fmt.Errorf("read %d of %d records within a minute: %v", got, n, fs.Err())
		}
		fs.EachRecord(func(r *kgo.Record) {
			seen[string(r.Value)]++
			got++
			each(r)
		})
	}
	return nil
}

// readGroup joins the group "readers", reads n records and commits them.
func readGroup(ctx context.Context, bootstrap, topic string, n int, seen map[string]int) error {
	k, err := newClient(bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumerGroup("readers"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer k.close()
	var read []*kgo.Record
	if err := k.read(ctx, n, seen, func(r *kgo.Record) { read = append(read, r) }); err != nil {
		return err
	}
	return k.c.CommitRecords(ctx, read...)
}

// assign asks for other replicas of a partition.
func assign(ctx context.Context, bootstrap, topic, partition, replicas string) error {
	k, err := newClient(bootstrap)
	if err != nil {
		return err
	}
	defer k.close()
	p, err := strconv.Atoi(partition)
	if err != nil {
		return err
	}
	var ids []int32
	for word := range strings.SplitSeq(replicas, ",") {
		id, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		ids = append(ids, int32(id))
	}
	var req kadm.AlterPartitionAssignmentsReq
	req.Assign(topic, int32(p), ids)
	resp, err := k.admin.AlterPartitionAssignments(ctx, req)
	if err != nil {
		return fmt.Errorf("assign replicas %s to %s-%s: %w", replicas, topic, partition, err)
	}
	return resp.Error()
}
