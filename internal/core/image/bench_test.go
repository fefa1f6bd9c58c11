package image

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// million is an image of 20,000 topics with 50 partitions each, three replicas on
// 300 brokers, loaded in batches of 8,000 records like a snapshot.
func million() *Image { return grow(20_000, 50, 300) }

func topicID(n int) model.UUID {
	return model.UUID{0: byte(n * 7), 1: byte(n >> 8), 2: byte(n), 3: byte(n >> 16), 4: 1}
}

func grow(topics, partitions, brokers int) *Image {
	img := New()
	var batch []metalog.Record
	flush := func() {
		img = apply(img, batch...)
		batch = nil
	}
	for t := range topics {
		batch = append(batch, &metalog.Topic{Name: fmt.Sprintf("topic-%06d", t), TopicID: topicID(t)})
		for p := range partitions {
			first := (t*7 + p) % brokers
			replicas, dirs := make([]model.BrokerID, 3), make([]model.UUID, 3)
			for i := range replicas {
				replicas[i] = model.BrokerID((first + i*(1+t%11)) % brokers)
				dirs[i] = model.UUID{1, byte(replicas[i]), byte(replicas[i] >> 8)}
			}
			batch = append(batch, &metalog.Partition{
				PartitionID: int32(p), TopicID: topicID(t), Replicas: replicas, ISR: append([]model.BrokerID{}, replicas...),
				Leader: replicas[0], Directories: dirs,
			})
		}
		if len(batch) > 8000 {
			flush()
		}
	}
	flush()
	return img
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// change shrinks and moves the nth partition of million.
func change(n int) metalog.Record {
	c := metalog.NewPartitionChange(topicID(n/50), int32(n%50))
	c.ISR, c.Leader = []model.BrokerID{1, 2}, 2
	return c
}

// BenchmarkMillionPartitions measures what an image of a million partitions
// costs in memory, and a change, a diff and a scan of it in time.
func BenchmarkMillionPartitions(b *testing.B) {
	before := heap()
	img := million()
	perPartition := float64(heap()-before) / float64(img.PartitionCount())
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(perPartition, "B/partition")
		b.ReportMetric(0, "ns/op")
	})
	b.Run("apply-1", func(b *testing.B) { benchApply(b, img, 1) })
	b.Run("apply-10000", func(b *testing.B) { benchApply(b, img, 10_000) })
	b.Run("diff-1", func(b *testing.B) {
		next := apply(img, change(500_000))
		for b.Loop() {
			if len(Diff(img, next).Topics) != 1 {
				b.Fatal("not one topic")
			}
		}
	})
	b.Run("partitions-of", func(b *testing.B) { benchPartitionsOf(b, img) })
	b.Run("topic-by-id", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			if img.TopicByID(topicID(n%20_000)) == nil {
				b.Fatal("absent")
			}
		}
	})
	b.Run("snapshot", func(b *testing.B) { benchSnapshot(b, img) })
}

func benchApply(b *testing.B, img *Image, n int) {
	recs := make([]metalog.Record, n)
	for i := range recs {
		recs[i] = change(i * 100)
	}
	b.ReportAllocs()
	for b.Loop() {
		apply(img, recs...)
	}
}

func benchPartitionsOf(b *testing.B, img *Image) {
	for b.Loop() {
		n := 0
		for range img.PartitionsOf(17) {
			n++
		}
		if n != img.ReplicaCount(17) {
			b.Fatal(n)
		}
	}
}

func benchSnapshot(b *testing.B, img *Image) {
	for b.Loop() {
		var out bytes.Buffer
		w := metalog.NewSnapshotWriter(&out, 1, 0, 0, metalog.Level)
		for rec := range img.Records() {
			w.Add(rec)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(out.Len()), "bytes")
	}
}

// BenchmarkLoadSnapshot reads the bytes of 100,000 partitions into an image.
func BenchmarkLoadSnapshot(b *testing.B) {
	var out bytes.Buffer
	w := metalog.NewSnapshotWriter(&out, 1, 0, 0, metalog.Level)
	for rec := range grow(2000, 50, 12).Records() {
		w.Add(rec)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Len()))
	for b.Loop() {
		img := New()
		if err := metalog.ReadSnapshot(out.Bytes(), func(batch metalog.Batch) error {
			img = img.Apply(batch.Records, batch.End, batch.Epoch)
			return nil
		}); err != nil || img.PartitionCount() != 100_000 {
			b.Fatal(err, img.PartitionCount())
		}
	}
}
