package metadata

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// told learns that a topic has one partition with this leader in this epoch.
func told(m *Cluster, id byte, leader, epoch int32) {
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Leader, p.LeaderEpoch = leader, epoch
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = kmsg.StringPtr("a"), model.UUID{id}
	t.Partitions = append(t.Partitions, p)
	resp := kmsg.NewPtrMetadataResponse()
	resp.Topics = append(resp.Topics, t)
	m.Learn(resp)
}

func TestOlderNewsAreTurnedDown(t *testing.T) {
	var m Cluster
	told(&m, 1, 3, 5)
	told(&m, 1, 2, 4)
	if p := m.Partition("a", model.UUID{1}, 0); p == nil || p.Leader != 3 || p.Epoch != 5 {
		t.Errorf("after older news: %+v", p)
	}
	told(&m, 2, 1, 0) // another topic of the name, so another count of epochs
	if p := m.Partition("a", model.UUID{2}, 0); p == nil || p.Leader != 1 || m.Partition("a", model.UUID{1}, 0) != nil {
		t.Errorf("after the topic came anew: %+v", p)
	}
	m.Drop("a")
	if m.Topic("a") != nil {
		t.Error("a topic that was dropped is known")
	}
}
