package tidemark_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tidemark-log/tidemark"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg tidemark.Config) (*tidemark.Broker, *kgo.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	b, err := tidemark.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	return b, cl
}

func closeAll(t *testing.T, b *tidemark.Broker, cl *kgo.Client) {
	t.Helper()
	cl.Close()
	if err := b.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestAnEmbeddedBrokerKeepsItsRecordsOverARestart(t *testing.T) {
	cfg := tidemark.Config{Dir: t.TempDir(), Properties: map[string]string{"num.partitions": "1"}}
	b, cl := open(t, cfg)
	if err := cl.ProduceSync(context.Background(), kgo.StringRecord("a")).FirstErr(); err == nil {
		t.Fatal("a record without a topic was taken")
	}
	if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: "orders", Value: []byte("a")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	closeAll(t, b, cl)

	b, cl = open(t, cfg)
	defer closeAll(t, b, cl)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	got := ""
	for got == "" && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got += string(r.Value) })
	}
	if got != "a" {
		t.Fatalf("read %q after the restart", got)
	}
}

func TestAnEmbeddedBrokerRefusesPropertiesThatMeanNothing(t *testing.T) {
	_, err := tidemark.Open(context.Background(), tidemark.Config{Properties: map[string]string{"num.partition": "1"}})
	if err == nil {
		t.Fatal("an unknown key was taken")
	}
	t.Log(err)
}

func ExampleOpen() {
	ctx := context.Background()
	b, err := tidemark.Open(ctx, tidemark.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close(ctx)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		fmt.Println(err)
		return
	}
	r, err := cl.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("hello")}).First()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("written at offset", r.Offset)
	// Output: written at offset 0
}
