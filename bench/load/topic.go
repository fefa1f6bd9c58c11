package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// again is the pause before a cluster that is not ready is asked once more.
const again = 50 * time.Millisecond

// Create creates the topic of the load on a cluster that may have just started,
// and returns when every partition has a leader and all its replicas in the ISR.
// Of the options it needs the brokers.
func Create(ctx context.Context, o Options) error {
	o.defaults()
	configs := map[string]*string{}
	if o.FlushMessages > 0 {
		every := strconv.Itoa(o.FlushMessages)
		configs["flush.messages"] = &every
	}
	err := admin(ctx, o.Brokers, func(adm *kadm.Client) error {
		r, err := adm.CreateTopic(ctx, int32(o.Partitions), int16(o.ReplicationFactor), configs, o.Topic)
		if err == nil {
			err = r.Err
		}
		if errors.Is(err, kerr.TopicAlreadyExists) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	all := o.Partitions * o.ReplicationFactor
	return AwaitInSync(ctx, o.Brokers, o.Topic, all, all)
}

// AwaitInSync waits until all ISRs of the topic together have so many replicas, and
// each partition has a leader. It gives up after a minute, or when the context
// says.
func AwaitInSync(ctx context.Context, brokers []string, topic string, least, most int) error {
	return admin(ctx, brokers, func(adm *kadm.Client) error {
		list, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		n := 0
		for _, p := range list[topic].Partitions {
			if p.Err != nil {
				return p.Err
			}
			n += len(p.ISR)
		}
		if err := list[topic].Err; err != nil {
			return err
		}
		if n < least || n > most {
			return fmt.Errorf("%d replicas are in sync, not %d to %d", n, least, most)
		}
		return nil
	})
}

// offsets returns where readers start: at the end if there are producers.
func offsets(ctx context.Context, o Options) (map[int32]kgo.Offset, error) {
	out := map[int32]kgo.Offset{}
	err := admin(ctx, o.Brokers, func(adm *kadm.Client) error {
		list, err := adm.ListEndOffsets(ctx, o.Topic)
		if o.Producers == 0 {
			list, err = adm.ListStartOffsets(ctx, o.Topic)
		}
		if err == nil {
			err = list.Error()
		}
		if err != nil {
			return err // perhaps of a broker that has yet to hear of the topic
		}
		list.Each(func(l kadm.ListedOffset) { out[l.Partition] = kgo.NewOffset().At(l.Offset) })
		return nil
	})
	return out, err
}

// admin asks until it works or the context ends, after a minute if it has no end.
func admin(ctx context.Context, brokers []string, ask func(*kadm.Client) error) error {
	return until(ctx, brokers, func(cl *kgo.Client) error { return ask(kadm.NewClient(cl)) })
}

// until is admin for what needs the client itself.
func until(ctx context.Context, brokers []string, ask func(*kgo.Client) error) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.MetadataMinAge(again), kgo.RetryTimeout(20*time.Second))
	if err != nil {
		return err
	}
	defer cl.Close()
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(time.Minute)
	}
	for ; ; time.Sleep(again) {
		err := ask(cl)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}
