package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// eagerness is the longest that an eager client waits by itself before it tries
// again.
const eagerness = 10 * time.Millisecond

// Eager returns a client that never waits long by itself, so that what is measured
// with it is the cluster. It gives up nothing until its context ends.
func Eager(brokers []string, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(slices.Concat([]kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.MetadataMinAge(eagerness), kgo.UnknownTopicRetries(-1), kgo.ProducerLinger(0),
		kgo.RetryBackoffFn(func(int) time.Duration { return eagerness }),
	}, more)...)
}

// First creates a topic of one partition on a cluster that may be about to start,
// and returns when its first record is acknowledged by all replicas.
func First(ctx context.Context, brokers []string, replicas int) error {
	const topic = "first"
	cl, err := Eager(brokers)
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		_, err := kadm.NewClient(cl).CreateTopic(ctx, 1, int16(replicas), nil, topic)
		if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
		time.Sleep(eagerness)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("hello")}).FirstErr(); err != nil {
		return fmt.Errorf("produce to topic %s: %w", topic, err)
	}
	return nil
}
