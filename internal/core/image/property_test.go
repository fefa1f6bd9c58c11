package image

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// anyRecord draws records over few names, so that they meet each other. Most
// refer to something that may or may not be there.
var anyRecord = rapid.Custom(func(t *rapid.T) metalog.Record {
	small := func(name string) int { return rapid.IntRange(0, 3).Draw(t, name) }
	topic := id(byte(small("topic")))
	broker, epoch := model.BrokerID(small("broker")), model.BrokerEpoch(small("epoch"))
	switch rapid.IntRange(0, 17).Draw(t, "kind") {
	case 0, 1:
		return &metalog.Topic{Name: fmt.Sprint("t", small("name")), TopicID: topic}
	case 2:
		return &metalog.RemoveTopic{TopicID: topic}
	case 3, 4, 5, 6:
		return anyPartition(t, topic, int32(small("partition")))
	case 7, 8, 9, 10:
		return anyChange(t, topic, int32(small("partition")))
	case 11:
		return &metalog.RegisterBroker{BrokerID: broker, BrokerEpoch: epoch, Fenced: true}
	case 12:
		return &metalog.BrokerRegistrationChange{BrokerID: broker, BrokerEpoch: epoch, Fenced: int8(small("fenced") - 1)}
	case 13:
		return &metalog.UnregisterBroker{BrokerID: broker, BrokerEpoch: epoch}
	case 14:
		return &metalog.Config{ResourceType: 2, ResourceName: fmt.Sprint("t", small("name")), Name: fmt.Sprint("k", small("key")), Value: anyValue(t)}
	case 15:
		return []metalog.Record{&metalog.BeginTransaction{}, &metalog.EndTransaction{}, &metalog.AbortTransaction{}, &metalog.NoOp{}}[small("frame")]
	case 16:
		return &metalog.ClearELR{TopicName: []string{"", "t0", "t1", "none"}[small("elr")]}
	default:
		return anyOther(t, small)
	}
})

func anyOther(t *rapid.T, small func(string) int) metalog.Record {
	switch small("other") {
	case 0:
		return &metalog.FeatureLevel{Name: fmt.Sprint("f", small("feature")), FeatureLevel: int16(small("level"))}
	case 1:
		return &metalog.ClientQuota{Entity: []metalog.QuotaEntity{{EntityType: "user", EntityName: anyValue(t)}}, Key: "k", Value: float64(small("rate")), Remove: rapid.Bool().Draw(t, "remove")}
	case 2:
		return &metalog.ProducerIDs{NextProducerID: model.ProducerID(1000 * small("block"))}
	}
	return &metalog.UserScramCredential{Name: fmt.Sprint("u", small("user")), Mechanism: 1}
}

func anyValue(t *rapid.T) *string {
	if rapid.Bool().Draw(t, "null") {
		return nil
	}
	return str(fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "value")))
}

func anyIDs(t *rapid.T, name string) []model.BrokerID {
	list := rapid.SliceOfNDistinct(rapid.Int32Range(1, 5), 0, 3, rapid.ID[int32]).Draw(t, name)
	out := make([]model.BrokerID, len(list))
	for i, v := range list {
		out[i] = model.BrokerID(v)
	}
	return out
}

func anyPartition(t *rapid.T, topic model.UUID, partition int32) metalog.Record {
	return &metalog.Partition{
		PartitionID: partition, TopicID: topic, Replicas: anyIDs(t, "replicas"), ISR: anyIDs(t, "isr"), ELR: anyIDs(t, "elr"),
		Adding: anyIDs(t, "adding"), Leader: model.BrokerID(rapid.IntRange(-1, 5).Draw(t, "leader")), LeaderEpoch: 3,
	}
}

func anyChange(t *rapid.T, topic model.UUID, partition int32) metalog.Record {
	c := metalog.NewPartitionChange(topic, partition)
	for _, list := range []*[]model.BrokerID{&c.ISR, &c.Replicas, &c.Adding, &c.Removing, &c.ELR, &c.LastKnownELR} {
		if rapid.Bool().Draw(t, "told") {
			*list = anyIDs(t, "list")
		}
	}
	c.Leader = model.BrokerID(rapid.IntRange(-2, 5).Draw(t, "leader"))
	c.RecoveryState = metalog.RecoveryState(rapid.IntRange(-1, 1).Draw(t, "recovery"))
	return c
}

// started is an image in which most of what anyRecord refers to is there.
func started() *Image {
	var recs []metalog.Record
	for n := range byte(4) {
		recs = append(recs, &metalog.RegisterBroker{BrokerID: model.BrokerID(n), BrokerEpoch: 1}, &metalog.Topic{Name: fmt.Sprint("t", n), TopicID: id(n)})
		for p := range int32(2) {
			recs = append(recs, &metalog.Partition{PartitionID: p, TopicID: id(n), Replicas: ids(1, 2, 3), ISR: ids(1, 2, 3), Leader: 1})
		}
	}
	return apply(New(), recs...)
}

func anyRecords(t *rapid.T) []metalog.Record {
	return rapid.SliceOfN(anyRecord, 0, 60).Draw(t, "records")
}

func TestRecordsOneByOneGiveTheSameAsInBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := anyRecords(t)
		single, batched := started(), started()
		for i, rec := range recs {
			single = single.Apply([]metalog.Record{rec}, 100+model.Offset(i+1), 1)
		}
		for at := 0; at < len(recs); {
			next := min(len(recs), at+rapid.IntRange(1, 20).Draw(t, "batch"))
			batched = batched.Apply(recs[at:next], 100+model.Offset(next), 1)
			at = next
		}
		if diff := cmp.Diff(state(single), state(batched)); diff != "" || single.Ignored() != batched.Ignored() {
			t.Fatalf("ignored %d and %d, (-single +batched):\n%s", single.Ignored(), batched.Ignored(), diff)
		}
	})
}

func TestAnImageNeverChangesAfterwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		images, states := []*Image{started()}, []string{state(started())}
		for range rapid.IntRange(1, 8).Draw(t, "applies") {
			from := rapid.IntRange(0, len(images)-1).Draw(t, "from") // forks too
			next := apply(images[from], anyRecords(t)...)
			images, states = append(images, next), append(states, state(next))
		}
		for i, img := range images {
			if diff := cmp.Diff(states[i], state(img)); diff != "" {
				t.Fatalf("image %d changed (-before +after):\n%s", i, diff)
			}
		}
	})
}

func TestAnImageSurvivesItsSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		img := apply(started(), anyRecords(t)...)
		if img.InTransaction() {
			img = apply(img, &metalog.EndTransaction{})
		}
		var out bytes.Buffer
		w := metalog.NewSnapshotWriter(&out, img.Epoch(), 0, 0, 33)
		for rec := range img.Records() {
			w.Add(rec)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		loaded := New()
		if err := metalog.ReadSnapshot(out.Bytes(), func(b metalog.Batch) error {
			loaded = loaded.Apply(b.Records, img.End(), img.Epoch())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(state(img), state(loaded)); diff != "" || loaded.Ignored() != 0 {
			t.Fatalf("ignored %d, (-image +loaded):\n%s", loaded.Ignored(), diff)
		}
	})
}

// found is what a scan of all partitions finds of the derived state.
type found struct {
	leaderless, moving []model.TopicIDPartition
	replicas, leads    map[model.BrokerID]int
	total              int
}

func (f *found) add(key model.TopicIDPartition, p *Partition) {
	f.total++
	for _, b := range p.Replicas {
		f.replicas[b]++
	}
	if p.Leader == model.NoBroker {
		f.leaderless = append(f.leaderless, key)
	} else {
		f.leads[p.Leader]++
	}
	if len(p.Adding)+len(p.Removing) > 0 {
		f.moving = append(f.moving, key)
	}
}

func scan(t *rapid.T, img *Image) found {
	f := found{replicas: map[model.BrokerID]int{}, leads: map[model.BrokerID]int{}}
	for topic := range img.Topics() {
		if img.TopicByID(topic.ID) != topic || img.TopicByName(topic.Name) != topic {
			t.Fatalf("topic %s is not found by its id or its name", topic.Name)
		}
		for n, p := range topic.Partitions {
			if p == absent {
				continue
			}
			f.add(model.TopicIDPartition{TopicID: topic.ID, Partition: int32(n)}, p)
			if len(p.Directories) != len(p.Replicas) {
				t.Fatalf("%d directories for %d replicas", len(p.Directories), len(p.Replicas))
			}
		}
	}
	slices.SortFunc(f.leaderless, comparePartition)
	slices.SortFunc(f.moving, comparePartition)
	return f
}

func TestCountsAndSetsAreWhatAScanFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		img := apply(apply(started(), anyRecords(t)...), anyRecords(t)...)
		want := scan(t, img)
		if got := slices.Collect(img.Leaderless()); !slices.Equal(got, want.leaderless) || img.LeaderlessCount() != len(got) {
			t.Fatalf("leaderless %v, want %v", got, want.leaderless)
		}
		if got := slices.Collect(img.Reassigning()); !slices.Equal(got, want.moving) || img.PartitionCount() != want.total {
			t.Fatalf("reassigning %v, want %v; %d partitions, want %d", got, want.moving, img.PartitionCount(), want.total)
		}
		for b := model.BrokerID(0); b < 7; b++ {
			led, held := 0, 0
			for range img.LedBy(b) {
				led++
			}
			for range img.PartitionsOf(b) {
				held++
			}
			if img.LeaderCount(b) != want.leads[b] || led != want.leads[b] || img.ReplicaCount(b) != want.replicas[b] || held != want.replicas[b] {
				t.Fatalf("broker %d leads %d (%d found) of %d (%d found), want %d of %d",
					b, img.LeaderCount(b), led, img.ReplicaCount(b), held, want.leads[b], want.replicas[b])
			}
		}
	})
}

func TestADeltaNamesExactlyWhatDiffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := apply(started(), anyRecords(t)...)
		now := apply(apply(old, anyRecords(t)...), anyRecords(t)...)
		d := Diff(old, now)
		for _, td := range d.Topics {
			checkTopicDelta(t, td)
		}
		named := map[model.UUID]bool{}
		for _, td := range d.Topics {
			if td.Old != nil {
				named[td.Old.ID] = true
			} else {
				named[td.New.ID] = true
			}
		}
		for n := range byte(4) {
			before, after := old.TopicByID(id(n)), now.TopicByID(id(n))
			if before != after && !named[id(n)] && (before == nil || after == nil || !slices.Equal(before.Partitions, after.Partitions)) {
				t.Fatalf("topic %d differs and is not named", n)
			}
			if (old.Broker(model.BrokerID(n)) != now.Broker(model.BrokerID(n))) != slices.ContainsFunc(d.Brokers, func(b BrokerDelta) bool {
				return b.Old == old.Broker(model.BrokerID(n)) && b.New == now.Broker(model.BrokerID(n))
			}) {
				t.Fatalf("broker %d: %+v", n, d.Brokers)
			}
			name := fmt.Sprint("t", n)
			differs := !cmp.Equal(old.Config(2, name), now.Config(2, name))
			if differs != slices.ContainsFunc(d.Configs, func(c ConfigDelta) bool { return c.Name == name && cmp.Equal(c.New, now.Config(2, name)) }) {
				t.Fatalf("configs of %s: %+v", name, d.Configs)
			}
		}
		if d.Features != !slices.Equal(old.Features(), now.Features()) {
			t.Fatalf("features: %v", d.Features)
		}
		if self := Diff(now, now); len(self.Topics)+len(self.Brokers)+len(self.Configs) > 0 || self.Features {
			t.Fatalf("an image differs from itself: %+v", self)
		}
	})
}

// checkTopicDelta checks that the partitions named are those that differ.
func checkTopicDelta(t *rapid.T, d TopicDelta) {
	at := func(topic *Topic, n int32) *Partition {
		if topic == nil || int(n) >= len(topic.Partitions) {
			return nil
		}
		return topic.Partitions[n]
	}
	for n := range int32(5) {
		differs := at(d.Old, n) != at(d.New, n)
		if differs && !slices.Contains(d.Partitions, n) {
			t.Fatalf("partition %d differs and is not named in %v", n, d.Partitions)
		}
		if !differs && slices.Contains(d.Partitions, n) && d.Old != nil && d.New != nil && at(d.Old, n) != absent && at(d.Old, n) != nil {
			t.Fatalf("partition %d is named and does not differ", n)
		}
	}
	if d.Old == nil && d.New == nil || d.Old != nil && d.New != nil && len(d.Partitions) == 0 {
		t.Fatalf("an empty delta: %+v", d)
	}
}
