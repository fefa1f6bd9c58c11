package image

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// state is everything that an image shows, as text.
func state(i *Image) string {
	var b strings.Builder
	fmt.Fprintf(&b, "end %d epoch %d read %d tx %v kraft %d voters %v\n", i.End(), i.Epoch(), i.Read(), i.InTransaction(), i.KRaftVersion(), i.Voters())
	b.WriteString(content(i))
	for topic := range i.Topics() {
		for n, p := range topic.Partitions {
			if p != absent {
				fmt.Fprintf(&b, "%s-%d %+v\n", topic.Name, n, *p)
			}
		}
	}
	for id, l := range i.loads.all() {
		fmt.Fprintf(&b, "load %d %+v\n", id, l)
	}
	fmt.Fprintln(&b, "leaderless", slices.Collect(i.Leaderless()), "moving", slices.Collect(i.Reassigning()), i.PartitionCount(), i.TopicCount())
	if i.shadow != nil {
		fmt.Fprintln(&b, "shadow", state(i.shadow))
	}
	return b.String()
}

// content prints the records of the image.
func content(i *Image) string {
	var b strings.Builder
	for rec := range i.Records() {
		b.WriteString(dump(rec) + "\n")
	}
	return b.String()
}

func dump(rec metalog.Record) string {
	text, err := metalog.Dump(metalog.Append(nil, rec, 33))
	if err != nil {
		panic(err)
	}
	return text
}

// tidy dumps a record with its features sorted: Apache writes them in the order
// of a hash map.
func tidy(rec metalog.Record) string {
	byName := func(a, b metalog.FeatureRange) int { return strings.Compare(a.Name, b.Name) }
	switch rec := rec.(type) {
	case *metalog.RegisterBroker:
		slices.SortFunc(rec.Features, byName)
	case *metalog.RegisterController:
		slices.SortFunc(rec.Features, byName)
	}
	return dump(rec)
}

func apply(i *Image, recs ...metalog.Record) *Image {
	return i.Apply(recs, i.Read()+model.Offset(len(recs)), 1)
}

func id(n byte) model.UUID { return model.UUID{n} }

func ids(list ...model.BrokerID) []model.BrokerID { return list }

func str(s string) *string { return &s }

// cluster is an image with three brokers and the topic orders of two partitions.
func cluster() *Image {
	recs := []metalog.Record{&metalog.FeatureLevel{Name: "metadata.version", FeatureLevel: 25}}
	for n := model.BrokerID(1); n <= 3; n++ {
		recs = append(recs, &metalog.RegisterBroker{BrokerID: n, BrokerEpoch: model.BrokerEpoch(n), LogDirs: []model.UUID{id(byte(n))}})
	}
	recs = append(recs, &metalog.Topic{Name: "orders", TopicID: id(9)})
	for n := range int32(2) {
		recs = append(recs, &metalog.Partition{
			PartitionID: n, TopicID: id(9), Replicas: ids(1, 2, 3), ISR: ids(1, 2, 3), Leader: 1,
			Directories: []model.UUID{id(1), id(2), id(3)},
		})
	}
	return apply(New(), recs...)
}

// golden reads a file that Apache Kafka 4.4 wrote.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "metalog", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// replay applies every batch that ends at or below the offset.
func replay(t *testing.T, log []byte, upTo model.Offset) *Image {
	t.Helper()
	img := New()
	n, err := metalog.DecodeBatches(log, func(b metalog.Batch) error {
		switch {
		case b.End > upTo:
		case b.Control != nil:
			img = img.ApplyControl(b.Control, b.End, b.Epoch)
		default:
			img = img.Apply(b.Records, b.End, b.Epoch)
		}
		return nil
	})
	if err != nil || n != len(log) {
		t.Fatal(n, err)
	}
	return img
}

// Apache's log, applied up to the end of Apache's snapshot, gives the records of
// that snapshot: every merge of a change is as in Apache's own image.
func TestTheLogAddsUpToTheSnapshotThatApacheMadeOfIt(t *testing.T) {
	img := replay(t, golden(t, "00000000000000000000.log"), 299)
	if img.End() != 299 || img.Epoch() != 1 || img.Ignored() != 0 {
		t.Errorf("end %d, epoch %d, ignored %d", img.End(), img.Epoch(), img.Ignored())
	}
	loaded, want := New(), []string{}
	err := metalog.ReadSnapshot(golden(t, "00000000000000000299-0000000001.checkpoint"), func(b metalog.Batch) error {
		for _, rec := range b.Records {
			want = append(want, tidy(rec))
		}
		loaded = loaded.Apply(b.Records, 299, 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for rec := range img.Records() {
		got = append(got, tidy(rec))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-Apache +Tidemark):\n%s", diff)
	}
	if diff := cmp.Diff(state(img), state(loaded)); diff != "" {
		t.Errorf("(-log +snapshot):\n%s", diff)
	}
}

func TestTheWholeLogOfApacheIsUnderstood(t *testing.T) {
	img := replay(t, golden(t, "00000000000000000000.log"), 1<<40)
	if img.Ignored() != 0 || img.TopicCount() != 2 || img.PartitionCount() != 51 {
		t.Errorf("ignored %d, %d topics, %d partitions", img.Ignored(), img.TopicCount(), img.PartitionCount())
	}
	if img.LeaderlessCount() != 51 { // all three brokers had shut down
		t.Errorf("%d partitions without a leader, want 51", img.LeaderlessCount())
	}
	for _, b := range img.Brokers() {
		if !b.Fenced || !b.InControlledShutdown || img.LeaderCount(b.ID) != 0 || img.ReplicaCount(b.ID) != 51 {
			t.Errorf("broker %+v leads %d of %d", b, img.LeaderCount(b.ID), img.ReplicaCount(b.ID))
		}
	}
}

func TestAChangeBumpsTheEpochsThatItMust(t *testing.T) {
	img := cluster()
	change := metalog.NewPartitionChange(id(9), 0)
	change.ISR = ids(1, 2)
	shrunk := apply(img, change).Partition(id(9), 0)
	if shrunk.PartitionEpoch != 1 || shrunk.LeaderEpoch != 0 || !slices.Equal(shrunk.ISR, ids(1, 2)) || len(shrunk.Replicas) != 3 {
		t.Errorf("after a shrink: %+v", shrunk)
	}
	same := metalog.NewPartitionChange(id(9), 0)
	same.Leader, same.RecoveryState = 1, metalog.Recovering
	elected := apply(img, same).Partition(id(9), 0)
	if elected.PartitionEpoch != 1 || elected.LeaderEpoch != 1 || !elected.Recovering {
		t.Errorf("after naming the same leader: %+v", elected)
	}
	healed := metalog.NewPartitionChange(id(9), 0)
	healed.RecoveryState = metalog.Recovered
	if p := apply(img, same, healed).Partition(id(9), 0); p.Recovering || p.PartitionEpoch != 2 || p.LeaderEpoch != 1 {
		t.Errorf("after recovery: %+v", p)
	}
}

func TestDirectoriesFollowTheReplicas(t *testing.T) {
	img := cluster()
	moved := metalog.NewPartitionChange(id(9), 0)
	moved.Replicas = ids(3, 4, 1)
	p := apply(img, moved).Partition(id(9), 0)
	if want := []model.UUID{id(3), metalog.DirMigrating, id(1)}; !slices.Equal(p.Directories, want) {
		t.Errorf("directories %v, want %v", p.Directories, want)
	}
	moved.Directories = []model.UUID{id(30), id(40), id(10)}
	if p := apply(img, moved).Partition(id(9), 0); !slices.Equal(p.Directories, moved.Directories) {
		t.Errorf("directories %v", p.Directories)
	}
	old := &metalog.Partition{PartitionID: 2, TopicID: id(9), Replicas: ids(1, 2), Leader: 1} // version 0
	if p := apply(img, old).Partition(id(9), 2); len(p.Directories) != 2 {
		t.Errorf("directories %v, want one for each replica", p.Directories)
	}
}

func TestClearingTheELRTouchesOnlyPartitionsThatHaveOne(t *testing.T) {
	img := cluster()
	change := metalog.NewPartitionChange(id(9), 1)
	change.ISR, change.ELR, change.LastKnownELR = ids(1), ids(2), ids(3)
	img = apply(img, change)
	for _, name := range []string{"orders", ""} {
		got := apply(img, &metalog.ClearELR{TopicName: name})
		p := got.Partition(id(9), 1)
		if p.ELR != nil || p.LastKnownELR != nil || p.PartitionEpoch != 2 {
			t.Errorf("topic %q: %+v", name, p)
		}
		if got.Partition(id(9), 0) != img.Partition(id(9), 0) {
			t.Errorf("topic %q: a partition without ELR was copied", name)
		}
	}
	if got := apply(img, &metalog.ClearELR{TopicName: "none"}); got.Ignored() != 1 {
		t.Errorf("an unknown topic: ignored %d", got.Ignored())
	}
}

func TestNothingOfATransactionShowsBeforeItsEnd(t *testing.T) {
	img := cluster()
	before := content(img)
	topic := &metalog.Topic{Name: "new", TopicID: id(7)}
	part := &metalog.Partition{TopicID: id(7), Replicas: ids(1), ISR: ids(1), Leader: 1}
	open := apply(img, &metalog.Config{ResourceType: 2, ResourceName: "orders", Name: "k", Value: str("v")}, &metalog.BeginTransaction{}, topic)
	if !open.InTransaction() || open.TopicByName("new") != nil || open.End() != img.End()+1 || open.Read() != img.End()+3 {
		t.Errorf("inside: end %d, read %d, topic %v", open.End(), open.Read(), open.TopicByName("new"))
	}
	if open.Config(2, "orders")["k"] != "v" {
		t.Error("the record before the transaction does not show")
	}
	still := open.ApplyControl([]metalog.Control{&metalog.LeaderChange{}}, open.Read()+1, 2)
	if still.End() != open.End() || still.Epoch() != 1 || still.Read() != open.Read()+1 {
		t.Errorf("a leader change inside moved the end to %d", still.End())
	}
	still = apply(still, part)
	ended := still.Apply([]metalog.Record{&metalog.EndTransaction{}, &metalog.NoOp{}}, still.Read()+2, 2)
	if ended.InTransaction() || ended.TopicByName("new") == nil || ended.End() != ended.Read() || ended.Epoch() != 2 || ended.PartitionCount() != 3 {
		t.Errorf("after the end: %s", state(ended))
	}
	aborted := apply(still, &metalog.AbortTransaction{})
	if aborted.InTransaction() || aborted.TopicByName("new") != nil || aborted.End() != aborted.Read() || aborted.LeaderCount(1) != 2 {
		t.Errorf("after the abort: %s", state(aborted))
	}
	if ended.Ignored()+aborted.Ignored() != 0 || content(img) != before {
		t.Error("ignored records, or the first image changed")
	}
}

func TestATransactionInsideOneBatchShowsAtOnce(t *testing.T) {
	topic := &metalog.Topic{Name: "new", TopicID: id(7)}
	img := apply(cluster(), &metalog.BeginTransaction{}, topic, &metalog.EndTransaction{},
		&metalog.BeginTransaction{}, &metalog.RemoveTopic{TopicID: id(9)}, &metalog.AbortTransaction{})
	if img.TopicByName("new") == nil || img.TopicByName("orders") == nil || img.InTransaction() || img.End() != img.Read() {
		t.Error(state(img))
	}
	odd := apply(img, &metalog.EndTransaction{}, &metalog.AbortTransaction{}, &metalog.BeginTransaction{}, &metalog.BeginTransaction{})
	if odd.Ignored() != 2 || apply(odd, &metalog.EndTransaction{}).Ignored() != 3 {
		t.Errorf("ignored %d and after the end %d, want 2 and 3", odd.Ignored(), apply(odd, &metalog.EndTransaction{}).Ignored())
	}
}

func TestATransactionThatOpensABatchLeavesTheEpochBeforeIt(t *testing.T) {
	img := cluster()
	open := img.Apply([]metalog.Record{&metalog.BeginTransaction{}, &metalog.NoOp{}}, img.End()+2, 9)
	if open.End() != img.End() || open.Epoch() != 1 || open.Read() != img.End()+2 {
		t.Errorf("end %d epoch %d read %d", open.End(), open.Epoch(), open.Read())
	}
	aborted := open.Apply([]metalog.Record{&metalog.AbortTransaction{}}, open.Read()+1, 10)
	if aborted.End() != img.End()+3 || aborted.Epoch() != 10 {
		t.Errorf("after the abort: end %d epoch %d", aborted.End(), aborted.Epoch())
	}
}

func TestListsAreSharedOnlyWhenEqual(t *testing.T) {
	b := newBuilder(New())
	one := b.share(ids(1, 2))
	if two := b.share(ids(1, 2)); &one[0] != &two[0] {
		t.Error("equal lists are two")
	}
	for h := range b.lists {
		b.lists[h] = ids(7, 8) // as if another list had the same hash
	}
	if got := b.share(ids(1, 2)); !slices.Equal(got, ids(1, 2)) {
		t.Errorf("a collision gave %v", got)
	}
	dirs := b.shareDirs([]model.UUID{id(1)})
	if again := b.shareDirs([]model.UUID{id(1)}); &dirs[0] != &again[0] {
		t.Error("equal directories are two")
	}
	for h := range b.dirs {
		b.dirs[h] = []model.UUID{id(2)}
	}
	if got := b.shareDirs([]model.UUID{id(1)}); got[0] != id(1) {
		t.Errorf("a collision gave %v", got)
	}
}

func TestRemovingATopicTakesItsConfigsAndCounts(t *testing.T) {
	img := apply(cluster(),
		&metalog.Config{ResourceType: 2, ResourceName: "orders", Name: "k", Value: str("v")},
		&metalog.Config{ResourceType: 4, ResourceName: "", Name: "k", Value: str("v")})
	gone := apply(img, &metalog.RemoveTopic{TopicID: id(9)})
	if gone.TopicByName("orders") != nil || gone.TopicByID(id(9)) != nil || gone.Config(2, "orders") != nil || gone.PartitionCount() != 0 {
		t.Error(state(gone))
	}
	if gone.Config(4, "")["k"] != "v" || gone.LeaderCount(1) != 0 || gone.ReplicaCount(2) != 0 {
		t.Error(state(gone))
	}
	again := apply(gone, &metalog.Topic{Name: "orders", TopicID: id(8)})
	if again.TopicByName("orders").ID != id(8) {
		t.Error("the name was not free")
	}
}

func TestConfigsAreSetAndDeletedKeyByKey(t *testing.T) {
	set := func(k string, v *string) metalog.Record {
		return &metalog.Config{ResourceType: 2, ResourceName: "orders", Name: k, Value: v}
	}
	one := apply(cluster(), set("a", str("1")), set("b", str("2")), set("a", str("3")))
	if got := one.Config(2, "orders"); !maps.Equal(got, map[string]string{"a": "3", "b": "2"}) {
		t.Errorf("%v", got)
	}
	two := apply(one, set("a", nil), set("none", nil))
	if got := two.Config(2, "orders"); !maps.Equal(got, map[string]string{"b": "2"}) || len(one.Config(2, "orders")) != 2 {
		t.Errorf("%v, before %v", got, one.Config(2, "orders"))
	}
	three := apply(two, set("b", nil))
	if got := slices.Collect(three.ConfigNames(2)); len(got) != 0 {
		t.Errorf("configs of %v are left", got)
	}
	named := apply(one, &metalog.Config{ResourceType: 2, ResourceName: "a", Name: "k", Value: str("")}, &metalog.Config{ResourceType: 4, ResourceName: "1", Name: "k", Value: str("")})
	if got := slices.Collect(named.ConfigNames(2)); !slices.Equal(got, []string{"a", "orders"}) {
		t.Errorf("configs of %v", got)
	}
}

func TestBrokersChangeOnlyInTheirEpoch(t *testing.T) {
	img := cluster()
	for _, rec := range []metalog.Record{
		&metalog.BrokerRegistrationChange{BrokerID: 2, BrokerEpoch: 1, Fenced: 1},
		&metalog.FenceBroker{BrokerID: 7, BrokerEpoch: 7}, &metalog.UnregisterBroker{BrokerID: 2, BrokerEpoch: 3},
		&metalog.UnfenceBroker{BrokerID: 2, BrokerEpoch: 9}, &metalog.UnregisterController{ControllerID: 4},
	} {
		if got := apply(img, rec); got.Ignored() != 1 || content(got) != content(img) {
			t.Errorf("%+v took effect", rec)
		}
	}
	out := apply(img, &metalog.BrokerRegistrationChange{BrokerID: 2, BrokerEpoch: 2, Fenced: 1, InControlledShutdown: 1, LogDirs: []model.UUID{id(5)}})
	b := out.Broker(2)
	if !b.Fenced || !b.InControlledShutdown || b.Directories[0] != id(5) || img.Broker(2).Fenced {
		t.Errorf("%+v", b)
	}
	back := apply(out, &metalog.RegisterBroker{BrokerID: 2, BrokerEpoch: 40, Fenced: true}, &metalog.UnfenceBroker{BrokerID: 2, BrokerEpoch: 40})
	if b := back.Broker(2); b.Epoch != 40 || b.Fenced || b.InControlledShutdown {
		t.Errorf("%+v", b)
	}
	gone := apply(back, &metalog.UnregisterBroker{BrokerID: 2, BrokerEpoch: 40})
	if gone.Broker(2) != nil || len(gone.Brokers()) != 2 || gone.Broker(3) == nil || len(back.Brokers()) != 3 {
		t.Errorf("%v", gone.Brokers())
	}
}

func TestEverythingElseIsKeptForTheSnapshot(t *testing.T) {
	quota := func(key string, v float64, remove bool) metalog.Record {
		return &metalog.ClientQuota{Entity: []metalog.QuotaEntity{{EntityType: "user", EntityName: str("u")}, {EntityType: "client-id"}}, Key: key, Value: v, Remove: remove}
	}
	swapped := &metalog.ClientQuota{Entity: []metalog.QuotaEntity{{EntityType: "client-id"}, {EntityType: "user", EntityName: str("u")}}, Key: "a", Value: 7}
	full := apply(cluster(), quota("a", 1, false), quota("b", 2, false), swapped,
		&metalog.AccessControlEntry{ID: id(1), ResourceName: "r"}, &metalog.UserScramCredential{Name: "u", Mechanism: 1, Iterations: 4096},
		&metalog.UserScramCredential{Name: "u", Mechanism: 2, Iterations: 4096}, &metalog.DelegationToken{TokenID: "t"},
		&metalog.ProducerIDs{NextProducerID: 1000}, &metalog.RegisterController{ControllerID: 9}, &metalog.FeatureLevel{Name: "group.version", FeatureLevel: 1},
		&metalog.ZkMigrationState{State: 3}, &metalog.NoOp{})
	text := content(full)
	for _, want := range []string{`"key":"a","value":7.0`, `"key":"b","value":2.0`, `"resourceName":"r"`, `"mechanism":1`, `"mechanism":2`, `"tokenId":"t"`, `"nextProducerId":1000`, `"controllerId":9`, `"name":"group.version"`} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%s is there %d times in\n%s", want, strings.Count(text, want), text)
		}
	}
	if !strings.HasPrefix(text, `{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version"`) {
		t.Errorf("metadata.version is not the first record: %s", text[:80])
	}
	bare := apply(full, quota("a", 0, true), quota("b", 0, true), &metalog.RemoveAccessControlEntry{ID: id(1)},
		&metalog.RemoveUserScramCredential{Name: "u", Mechanism: 1}, &metalog.RemoveUserScramCredential{Name: "u", Mechanism: 2},
		&metalog.RemoveDelegationToken{TokenID: "t"}, &metalog.UnregisterController{ControllerID: 9}, &metalog.FeatureLevel{Name: "group.version"})
	if got, want := content(bare), content(apply(cluster(), &metalog.ProducerIDs{NextProducerID: 1000})); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if full.Feature("group.version") != 1 || bare.Feature("group.version") != 0 || full.Controller(9) == nil || full.NextProducerID() != 1000 {
		t.Error("an accessor is wrong")
	}
}

func TestVotersComeFromTheControlRecords(t *testing.T) {
	voters := []metalog.Voter{{ID: 1, DirectoryID: id(1)}}
	img := cluster().ApplyControl([]metalog.Control{&metalog.KRaftVersion{Level: 1}, &metalog.KRaftVoters{Voters: voters}}, 20, 3)
	if img.KRaftVersion() != 1 || len(img.Voters()) != 1 || img.End() != 20 || img.Epoch() != 3 || len(img.Control()) != 2 {
		t.Error(state(img))
	}
	if cluster().Control() != nil {
		t.Error("static voters need no control records")
	}
	open := apply(img, &metalog.BeginTransaction{})
	grown := open.ApplyControl([]metalog.Control{&metalog.KRaftVoters{Voters: append(voters, metalog.Voter{ID: 2})}}, open.Read()+1, 3)
	if len(grown.Voters()) != 2 || len(apply(grown, &metalog.EndTransaction{}).Voters()) != 2 {
		t.Error("a change inside a transaction is lost")
	}
}

func TestNoRecordCanBreakTheImage(t *testing.T) {
	img := cluster()
	for _, rec := range []metalog.Record{
		&metalog.Partition{PartitionID: 1<<31 - 1, TopicID: id(9)}, &metalog.Partition{PartitionID: -1, TopicID: id(9)},
		&metalog.Partition{TopicID: id(1)}, metalog.NewPartitionChange(id(9), 7), metalog.NewPartitionChange(id(9), -1),
		metalog.NewPartitionChange(id(1), 0), &metalog.RemoveTopic{TopicID: id(1)},
	} {
		got := apply(img, rec)
		if got.Ignored() != 1 || content(got) != content(img) {
			t.Errorf("%+v took effect", rec)
		}
	}
	hole := apply(img, &metalog.Partition{PartitionID: 5, TopicID: id(9), Replicas: ids(1), Leader: 1})
	if apply(hole, metalog.NewPartitionChange(id(9), 3)).Ignored() != 1 || hole.PartitionCount() != 3 || hole.Partition(id(9), 3) != nil || hole.LeaderlessCount() != 0 || slices.Contains(hole.TopicByID(id(9)).Partitions, nil) {
		t.Error("a partition that is still to come was changed, counted or nil")
	}
	if got := apply(hole, &metalog.RemoveTopic{TopicID: id(9)}); got.PartitionCount() != 0 || got.LeaderCount(1) != 0 {
		t.Error(state(got))
	}
	twice := apply(img, &metalog.Topic{Name: "orders", TopicID: id(8)}, &metalog.Topic{Name: "other", TopicID: id(8)})
	if twice.Ignored() != 2 || twice.TopicCount() != 1 || twice.TopicByID(id(8)).Name != "other" || twice.PartitionCount() != 0 {
		t.Error(state(twice))
	}
}

func TestPartitionIsFoundByBrokerAndBounds(t *testing.T) {
	img := cluster()
	change := metalog.NewPartitionChange(id(9), 1)
	change.Leader, change.Replicas, change.Adding = 2, ids(2, 3, 4), ids(4)
	img = apply(img, change)
	collect := func(seq func(func(*Topic, int32) bool)) (out []int32) {
		for _, p := range seq {
			out = append(out, p)
		}
		return out
	}
	if got := collect(img.PartitionsOf(1)); !slices.Equal(got, []int32{0}) {
		t.Errorf("of 1: %v", got)
	}
	if got := collect(img.PartitionsOf(3)); !slices.Equal(got, []int32{0, 1}) {
		t.Errorf("of 3: %v", got)
	}
	if got := collect(img.LedBy(2)); !slices.Equal(got, []int32{1}) {
		t.Errorf("led by 2: %v", got)
	}
	if got := collect(img.LedBy(7)); got != nil || img.Partition(id(9), 2) != nil || img.Partition(id(9), -1) != nil || img.Partition(id(1), 0) != nil {
		t.Errorf("led by 7: %v", got)
	}
	if got := slices.Collect(img.Reassigning()); len(got) != 1 || got[0].Partition != 1 {
		t.Errorf("reassigning %v", got)
	}
	if got := slices.Collect(img.TopicsFrom("p")); got != nil {
		t.Errorf("topics from p: %v", got)
	}
}

func TestSnapshotBytesGiveTheSameImage(t *testing.T) {
	img := replay(t, golden(t, "00000000000000000000.log"), 1<<40)
	var out bytes.Buffer
	w := metalog.NewSnapshotWriter(&out, img.Epoch(), 0, 0, 33, img.Control()...)
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
	if state(loaded) != state(img) {
		t.Error("the image differs after a snapshot")
	}
}
