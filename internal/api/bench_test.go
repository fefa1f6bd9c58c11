package api

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/view"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// The metadata of a large cluster: 1000 topics of 10 partitions on 3 brokers.
func BenchmarkMetadataOfAllTopics(b *testing.B) {
	var recs []metalog.Record
	for id := model.BrokerID(1); id <= 3; id++ {
		recs = append(recs, &metalog.RegisterBroker{BrokerID: id, BrokerEpoch: model.BrokerEpoch(id),
			Endpoints: []metalog.Endpoint{{Name: "PLAINTEXT", Host: "localhost", Port: 9092}}})
	}
	for i := range 1000 {
		topic := &metalog.Topic{Name: fmt.Sprintf("topic-%d", i), TopicID: model.UUID{1, byte(i), byte(i >> 8)}}
		recs = append(recs, topic)
		for p := range int32(10) {
			recs = append(recs, &metalog.Partition{PartitionID: p, TopicID: topic.TopicID, Leader: 1,
				Replicas: []model.BrokerID{1, 2, 3}, ISR: []model.BrokerID{1, 2, 3}, Directories: make([]model.UUID, 3)})
		}
	}
	img := image.New().Apply(recs, model.Offset(len(recs)), 1)
	b.Run("made", func(b *testing.B) { makeAllTopics(b, img) })
	b.Run("again", func(b *testing.B) {
		var c allTopics
		buf := []byte{}
		for b.Loop() {
			buf = c.answer(img, 1, allTopicsKey{version: 12}, func() *kmsg.MetadataResponse { return allTopicsOf(img) }).AppendTo(buf[:0])
		}
		b.ReportMetric(float64(len(buf)), "B/answer")
	})
}

func allTopicsOf(img *image.Image) *kmsg.MetadataResponse {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	resp := kmsg.NewPtrMetadataResponse()
	resp.Version = 12
	v := view.New(img, "PLAINTEXT", 12)
	for t := range img.Topics() {
		resp.Topics = append(resp.Topics, describeTopic(v, t, req))
	}
	return resp
}

func makeAllTopics(b *testing.B, img *image.Image) {
	var size int
	b.ReportAllocs()
	for b.Loop() {
		size = len(allTopicsOf(img).AppendTo(nil))
	}
	b.ReportMetric(float64(size), "B/answer")
}
