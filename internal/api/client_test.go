package api

import (
	"context"
	"net"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/record"
)

// admin is franz-go's admin client, which dials this broker whatever the
// address. Broker 1 is the only one that answers here, and clients check whom
// they reached (KIP-1242), so the others are fenced.
func (w *world) admin() *kadm.Client {
	w.t.Helper()
	w.change(&metalog.FenceBroker{BrokerID: 2, BrokerEpoch: 102}, &metalog.FenceBroker{BrokerID: 3, BrokerEpoch: 103})
	client, err := kgo.NewClient(kgo.SeedBrokers("seed:9092"), kgo.DisableClientMetrics(),
		kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, w.addr)
		}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// A real client finds its way around with nothing but what we advertise.
func TestAnAdminClientSeesTopicsAndOffsets(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("orders", 2)
	w.append("orders", 1, record.PlainOptions(), 10, 20, 30)
	adm, ctx := w.admin(), t.Context()
	topics, err := adm.ListTopics(ctx)
	if err != nil || !slices.Equal(topics.Names(), []string{"orders"}) || topics["orders"].ID == [16]byte{} {
		t.Errorf("topics %v, error %v", topics.Names(), err)
	}
	brokers, err := adm.BrokerMetadata(ctx)
	if err != nil || !slices.Equal(brokers.Brokers.NodeIDs(), []int32{1}) || brokers.Cluster != clusterID {
		t.Errorf("brokers %+v, error %v", brokers, err)
	}
	ends, err := adm.ListEndOffsets(ctx, "orders")
	if end, ok := ends.Lookup("orders", 1); err != nil || !ok || end.Err != nil || end.Offset != 3 {
		t.Errorf("end %+v, error %v", end, err)
	}
	after, err := adm.ListOffsetsAfterMilli(ctx, 15, "orders")
	if at, ok := after.Lookup("orders", 1); err != nil || !ok || at.Offset != 1 || at.Timestamp != 20 {
		t.Errorf("after 15: %+v, error %v", at, err)
	}
}

func TestAnAdminClientManagesTopics(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("orders", 2, "retention.ms", "1000")
	adm, ctx := w.admin(), t.Context()
	configs, err := adm.DescribeTopicConfigs(ctx, "orders")
	if err != nil || len(configs) != 1 || configs[0].Err != nil {
		t.Fatalf("configs %+v, error %v", configs, err)
	}
	own := slices.IndexFunc(configs[0].Configs, func(c kadm.Config) bool { return c.Key == "retention.ms" })
	if own < 0 || *configs[0].Configs[own].Value != "1000" {
		t.Error("retention.ms is not 1000")
	}
	if dirs, err := adm.DescribeBrokerLogDirs(ctx, 1, nil); err != nil || len(dirs) != 1 {
		t.Errorf("log dirs %+v, error %v", dirs, err)
	}
	deleted, err := adm.DeleteTopics(ctx, "orders")
	if err != nil || deleted["orders"].Err != nil || w.Image().TopicByName("orders") != nil {
		t.Errorf("delete: %+v, error %v", deleted, err)
	}
}
