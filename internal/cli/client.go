package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// reach says where the cluster is and how long to wait for it.
type reach struct {
	bootstrap []string
	timeout   time.Duration
}

func (r *reach) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&r.bootstrap, "bootstrap", "b", []string{"127.0.0.1:9092"}, "HOST:PORT of one or more brokers")
	cmd.Flags().StringSliceVar(&r.bootstrap, "bootstrap-server", r.bootstrap, "Kafka's name of --bootstrap")
	_ = cmd.Flags().MarkHidden("bootstrap-server") // it was added above
	cmd.Flags().DurationVar(&r.timeout, "timeout", 10*time.Second, "how long to wait for an answer")
}

// connect makes a client and checks that a broker answers.
func (r *reach) connect(ctx context.Context, opts ...kgo.Opt) (*kgo.Client, error) {
	if r.timeout <= 0 {
		return nil, usagef("--timeout %v is not valid: give more than 0s", r.timeout)
	}
	for _, address := range r.bootstrap {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, usagef("--bootstrap %s is not HOST:PORT", address)
		}
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(r.bootstrap...), kgo.ClientID("tidemark"),
		kgo.RetryTimeout(r.timeout), kgo.DialTimeout(r.timeout),
	}, opts...)...)
	if err != nil {
		return nil, usageError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := cl.Ping(ctx); err != nil {
		cl.Close()
		return nil, fmt.Errorf("no broker answers at %s (%s): start one, or name another with --bootstrap", strings.Join(r.bootstrap, ","), reason(err))
	}
	return cl, nil
}

// reason words why a broker could not be reached.
func reason(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the time is up"
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return sentence(err)
}

// newsDelay bounds how long after the answer to a change a broker may not know of
// it, and newsWait is how long to wait before it is asked again.
const (
	newsDelay = time.Second
	newsWait  = 50 * time.Millisecond
)

// settled asks for metadata until every topic in it is known or newsDelay is
// over, so that a command right after the creation of a topic finds it.
func settled[M any](ctx context.Context, ask func() (M, kadm.TopicDetails, error)) (M, error) {
	for limit := time.Now().Add(newsDelay); ; {
		m, topics, err := ask()
		unknown := false
		for _, t := range topics {
			unknown = unknown || errors.Is(t.Err, kerr.UnknownTopicOrPartition)
		}
		if err != nil || !unknown || time.Now().After(limit) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return m, ctx.Err()
		case <-time.After(newsWait):
		}
	}
}

// describe asks for topics by name, all of them without names. Each has its own
// error.
func describe(ctx context.Context, adm *kadm.Client, names ...string) (kadm.TopicDetails, error) {
	return settled(ctx, func() (kadm.TopicDetails, kadm.TopicDetails, error) {
		topics, err := adm.ListTopicsWithInternal(ctx, names...)
		return topics, topics, err
	})
}

// notReady is what a broker means that waits for the active controller or for a
// log to be loaded.
const notReady = "the cluster is not ready to answer: see whether most controllers run, and try again"

// fixes words the codes of Kafka's table that a person can do something about.
var fixes = map[int16]string{
	kerr.UnknownTopicOrPartition.Code:    "there is no such topic or partition: see tidemark topic list",
	kerr.TopicAlreadyExists.Code:         "the topic is there already: choose another name, or delete it first",
	kerr.InvalidTopicException.Code:      "the topic's name is not valid here: give 1 to 249 letters, digits, dots, underscores and hyphens, and no name that brokers keep for themselves",
	kerr.InvalidReplicationFactor.Code:   "there are too few brokers for that replication factor: start more, or ask for less",
	kerr.InvalidPartitions.Code:          "the number of partitions is not valid: ask for at least one, and for more than there are",
	kerr.NotEnoughReplicas.Code:          "fewer replicas are in sync than min.insync.replicas: see tidemark replicas, and start the brokers that are missing",
	kerr.MessageTooLarge.Code:            "the record is larger than the topic's max.message.bytes: send less at once, or raise it with tidemark topic alter",
	kerr.PolicyViolation.Code:            "a policy of the cluster forbids it",
	kerr.NotController.Code:              "the cluster has no active controller just now: try again once most controllers run",
	kerr.CoordinatorNotAvailable.Code:    notReady,
	kerr.CoordinatorLoadInProgress.Code:  notReady,
	kerr.RequestTimedOut.Code:            "the cluster did not finish in time: try again with a longer --timeout",
	kerr.OffsetOutOfRange.Code:           "the log does not hold that offset: ask for an offset from start to end",
	kerr.LeaderNotAvailable.Code:         "the partition has no leader just now: start the brokers that hold it",
	kerr.GroupAuthorizationFailed.Code:   "this client may not use the group",
	kerr.TopicAuthorizationFailed.Code:   "this client may not use the topic",
	kerr.ClusterAuthorizationFailed.Code: "this client may not do that to the cluster",
	kerr.TopicDeletionDisabled.Code:      "topics cannot be deleted here: set delete.topic.enable=true on the controllers",
}

// plain words an error of a broker about subject: what to do, what its answer
// said (message, may be empty), else the code's name.
func plain(subject string, err error, message string) error {
	var code *kerr.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer in time: see whether the brokers run, or give a longer --timeout", subject)
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrRecordRetries):
		return fmt.Errorf("%s: the record was not accepted in time: see tidemark replicas for what is missing, or give a longer --timeout", subject)
	case !errors.As(err, &code):
		return fmt.Errorf("%s: %s", subject, sentence(err))
	case fixes[code.Code] != "" && message != "":
		return fmt.Errorf("%s: %s (%s)", subject, fixes[code.Code], strings.TrimSuffix(sentence(errors.New(message)), "."))
	case fixes[code.Code] != "":
		return fmt.Errorf("%s: %s", subject, fixes[code.Code])
	case message != "":
		return fmt.Errorf("%s: %s", subject, message)
	}
	return fmt.Errorf("%s: the broker answered %s (%d)", subject, code.Message, code.Code)
}
