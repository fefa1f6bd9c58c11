package tidetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark/tidetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, c *tidetest.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Addrs()...), kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		// A broker that dies under a new connection is not one that wants SASL.
		kgo.AlwaysRetryEOF()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func produce(t *testing.T, cl *kgo.Client, topic string, values ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var rs []*kgo.Record
	for _, v := range values {
		rs = append(rs, &kgo.Record{Topic: topic, Value: []byte(v)})
	}
	if err := cl.ProduceSync(ctx, rs...).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
}

func consume(t *testing.T, c *tidetest.Cluster, topic string, n int) []string {
	t.Helper()
	cl := client(t, c, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out []string
	for len(out) < n {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			t.Fatalf("consumed %d of %d records: %v", len(out), n, err)
		}
		fs.EachRecord(func(r *kgo.Record) { out = append(out, string(r.Value)) })
	}
	return out
}

func TestARecordWrittenToThreeReplicasIsReadBack(t *testing.T) {
	c := tidetest.New(t, 3)
	c.CreateTopic("orders", 1, 3, nil)
	produce(t, client(t, c), "orders", "a", "b", "c")
	if got := consume(t, c, "orders", 3); fmt.Sprint(got) != "[a b c]" {
		t.Fatalf("read %v", got)
	}
	c.WaitHW("orders", 0, 3)
	for _, m := range c.Marks("orders", 0) {
		if m.LEO != 3 {
			t.Errorf("broker %d has LEO %d", m.Broker, m.LEO)
		}
	}
}

func TestNothingAcknowledgedIsLostWhenTheLeaderDies(t *testing.T) {
	c := tidetest.New(t, 3)
	c.CreateTopic("orders", 1, 3, nil)
	cl := client(t, c)
	produce(t, cl, "orders", "a", "b")
	old := c.Leader("orders", 0)
	c.Kill(old)
	start := time.Now()
	c.WaitLeader("orders", 0, old)
	produce(t, cl, "orders", "c")
	t.Logf("next acknowledged record %v after the kill", time.Since(start))
	if got := consume(t, c, "orders", 3); fmt.Sprint(got) != "[a b c]" {
		t.Fatalf("read %v", got)
	}
	c.Restart(old)
	c.WaitISR("orders", 0, 1, 2, 3)
}
