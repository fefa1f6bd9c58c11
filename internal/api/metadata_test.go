package api

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/view"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

func metadataOf(version int16, names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.Topics = version, []kmsg.MetadataRequestTopic{}
	for _, n := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &n
		req.Topics = append(req.Topics, t)
	}
	return req
}

// codes prints "name=code" of each topic.
func codes(resp *kmsg.MetadataResponse) string {
	var out []string
	for i := range resp.Topics {
		name := "null"
		if resp.Topics[i].Topic != nil {
			name = *resp.Topics[i].Topic
		}
		out = append(out, fmt.Sprintf("%.10s=%d", name, resp.Topics[i].ErrorCode))
	}
	return strings.Join(out, " ")
}

func TestNullAndEmptyTopicListsDiffer(t *testing.T) { // case B17
	w := newWorld(t, nil)
	w.createTopic("b", 1)
	w.createTopic("a", 1)
	for _, c := range []struct {
		version int16
		null    bool
		want    string
	}{
		{0, false, "a=0 b=0"}, {1, true, "a=0 b=0"}, {1, false, ""}, {9, true, "a=0 b=0"}, {9, false, ""}, {12, true, "a=0 b=0"}, {12, false, ""},
	} {
		req := metadataOf(c.version)
		if c.null {
			req.Topics = nil
		}
		resp := do[*kmsg.MetadataResponse](w, req)
		if got := codes(resp); got != c.want {
			t.Errorf("v%d null=%v: topics %q, want %q", c.version, c.null, got, c.want)
		}
		if len(resp.Brokers) != 3 || c.version >= 2 && *resp.ClusterID != clusterID || c.version >= 1 && resp.ControllerID != 2 {
			t.Errorf("v%d: brokers %d, cluster %v, controller %d", c.version, len(resp.Brokers), resp.ClusterID, resp.ControllerID)
		}
	}
}

func TestUnknownAndInvalidNames(t *testing.T) { // case B19
	w := newWorld(t, map[string]string{"auto.create.topics.enable": "false"})
	w.createTopic("ok", 2)
	resp := do[*kmsg.MetadataResponse](w, metadataOf(9, "ok", "missing", "bad name!", "", "..", strings.Repeat("a", 250), "ok"))
	if got, want := codes(resp), "ok=0 missing=3 bad name!=17 =17 ..=17 aaaaaaaaaa=17"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := len(resp.Topics[0].Partitions); n != 2 {
		t.Errorf("%d partitions", n)
	}
	if w.Image().TopicCount() != 1 {
		t.Error("a topic was created")
	}
}

func TestTopicsAreCreatedOnlyOnDemand(t *testing.T) { // case B20
	w := newWorld(t, map[string]string{"num.partitions": "3", "offsets.topic.num.partitions": "7"})
	no := metadataOf(4, "t1")
	do[*kmsg.MetadataResponse](w, no)
	all := metadataOf(9)
	all.Topics, all.AllowAutoTopicCreation = nil, true
	do[*kmsg.MetadataResponse](w, all)
	yes := metadataOf(4, "t2", offsetsTopic, transactionsTopic, "bad name!")
	yes.AllowAutoTopicCreation = true
	resp := do[*kmsg.MetadataResponse](w, yes)
	if got, want := codes(resp), "t2=3 __consumer=3 __transact=3 bad name!=17"; got != want {
		t.Errorf("the first answer is %s, want %s", got, want)
	}
	w.api.started.Wait()
	img := w.Image()
	if img.TopicByName("t1") != nil || img.TopicByName(transactionsTopic) != nil || img.TopicCount() != 2 {
		t.Errorf("%d topics", img.TopicCount())
	}
	if n := len(img.TopicByName("t2").Partitions); n != 3 {
		t.Errorf("t2 has %d partitions", n)
	}
	if n := len(img.TopicByName(offsetsTopic).Partitions); n != 7 {
		t.Errorf("%s has %d partitions", offsetsTopic, n)
	}
	if got := img.Config(metalog.ResourceTopic, offsetsTopic)["cleanup.policy"]; got != "compact" {
		t.Errorf("cleanup.policy %q", got)
	}
	old := do[*kmsg.MetadataResponse](w, metadataOf(3, "t3")) // before v4 every request allows it
	w.api.started.Wait()
	if codes(old) != "t3=3" || w.Image().TopicByName("t3") == nil {
		t.Error("t3 was not created")
	}
}

func TestLookUpsByTopicID(t *testing.T) { // case B24
	w := newWorld(t, nil)
	id := w.createTopic("t", 1)
	if got := do[*kmsg.MetadataResponse](w, metadataOf(10, "t")).Topics[0].TopicID; got != id {
		t.Errorf("v10 says id %v", got)
	}
	byID := func(version int16, id model.UUID) *kmsg.MetadataResponse {
		req := metadataOf(version)
		t := kmsg.NewMetadataRequestTopic()
		t.TopicID = id
		req.Topics = append(req.Topics, t)
		return do[*kmsg.MetadataResponse](w, req)
	}
	for _, c := range []struct {
		version int16
		id      model.UUID
		want    string
	}{
		{12, id, "t=0"}, {12, model.UUID{9}, "null=100"}, {12, model.UUID{}, "null=100"}, {13, model.UUID{9}, "null=100"},
		{10, id, "=42"}, {11, id, "=42"},
	} {
		if got := codes(byID(c.version, c.id)); got != c.want {
			t.Errorf("v%d %v: %s, want %s", c.version, c.id, got, c.want)
		}
	}
}

func TestLeadersThatCannotBeReachedAreNone(t *testing.T) { // case B22
	w := newWorld(t, nil)
	id := w.createTopic("t", 1)
	w.change(
		&metalog.Partition{PartitionID: 1, TopicID: id, Replicas: []model.BrokerID{2, 3}, ISR: []model.BrokerID{2, 3}, Leader: 2, LeaderEpoch: 5, Directories: []model.UUID{{1}, {1}}},
		&metalog.FenceBroker{BrokerID: 2, BrokerEpoch: 102},
	)
	resp := do[*kmsg.MetadataResponse](w, metadataOf(9, "t"))
	var ids []int32
	for _, b := range resp.Brokers {
		ids = append(ids, b.NodeID)
	}
	if !slices.Equal(ids, []int32{1, 3}) {
		t.Errorf("brokers %v", ids)
	}
	p := resp.Topics[0].Partitions[1]
	if p.ErrorCode != 5 || p.Leader != -1 || p.LeaderEpoch != 5 || !slices.Equal(p.Replicas, []int32{2, 3}) || !slices.Equal(p.OfflineReplicas, []int32{2}) {
		t.Errorf("partition %+v", p)
	}
	if resp.ControllerID != 1 { // the active controller, 2, cannot be reached: we forward
		t.Errorf("controller %d", resp.ControllerID)
	}
	if old := do[*kmsg.MetadataResponse](w, metadataOf(0, "t")).Topics[0].Partitions[1]; !slices.Equal(old.Replicas, []int32{3}) {
		t.Errorf("v0 lists replicas %v", old.Replicas)
	}
}

func TestBrokersAreShownAsTheListenerSeesThem(t *testing.T) {
	w := newWorld(t, nil)
	resp := do[*kmsg.MetadataResponse](w, metadataOf(9))
	if b := resp.Brokers[2]; b.NodeID != 3 || b.Host != "host3" || b.Port != 9092 || b.Rack == nil || *b.Rack != "r3" {
		t.Errorf("broker %+v", b)
	}
	if resp.Brokers[0].Rack != nil {
		t.Error("a rack out of nothing")
	}
}

func TestAuthorizedOperationsOnlyWhenAsked(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	req := metadataOf(8, "t")
	if resp := do[*kmsg.MetadataResponse](w, req); resp.AuthorizedOperations != unknownOperations || resp.Topics[0].AuthorizedOperations != unknownOperations {
		t.Errorf("%d and %d, unasked", resp.AuthorizedOperations, resp.Topics[0].AuthorizedOperations)
	}
	req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations = true, true
	if resp := do[*kmsg.MetadataResponse](w, req); resp.AuthorizedOperations != 8096 || resp.Topics[0].AuthorizedOperations != 3576 {
		t.Errorf("%d and %d, not what Apache Kafka says without an authorizer", resp.AuthorizedOperations, resp.Topics[0].AuthorizedOperations)
	}
}

// An answer for all topics is made once for each state of the cluster, and never
// outlives it.
func TestAnswersForAllTopicsFollowTheCluster(t *testing.T) {
	w := newWorld(t, nil)
	id := w.createTopic("t1", 2)
	for _, change := range []func(){
		func() {},
		func() { w.createTopic("t2", 1) },
		func() {
			w.change(&metalog.Partition{PartitionID: 2, TopicID: id, Replicas: []model.BrokerID{2, 3}, ISR: []model.BrokerID{2, 3}, Leader: 2, LeaderEpoch: 5, Directories: []model.UUID{{1}, {1}}})
		},
		func() { w.mu.Lock(); w.active = 3; w.mu.Unlock() },
		func() { w.change(&metalog.FenceBroker{BrokerID: 2, BrokerEpoch: 102}) },
		func() { w.mu.Lock(); w.active = 2; w.mu.Unlock() },
	} {
		change()
		for version := int16(0); version <= 13; version++ {
			for _, ops := range []bool{false, true} {
				req := metadataOf(version)
				if req.Topics = nil; version == 0 {
					req.Topics = []kmsg.MetadataRequestTopic{}
				}
				req.IncludeTopicAuthorizedOperations = ops && version >= 8
				req.IncludeClusterAuthorizedOperations = ops && version >= 8 && version <= 10
				v := view.New(w.Image(), "PLAINTEXT", version)
				want := w.api.everyTopic(v, w.api.controllerID(v), req)
				want.Version = version
				for range 2 {
					got := do[*kmsg.MetadataResponse](w, req)
					if !bytes.Equal(got.AppendTo(nil), want.AppendTo(nil)) {
						t.Fatalf("v%d, operations %v: %s, want %s", version, ops, codes(got), codes(want))
					}
				}
			}
		}
	}
}

// As long as the image is the same, so is the answer, and nobody makes it again: not for
// a client that asks once more. The next image has its own.
func TestAnswersForAllTopicsAreMadeOnceForAnImage(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t1", 1)
	all := metadataOf(9)
	all.Topics = nil
	do[*kmsg.MetadataResponse](w, all)
	mark := kmsg.NewPtrMetadataResponse()
	mark.Version, mark.ClusterID = 9, text("made before")
	w.api.all.mu.Lock()
	for key := range w.api.all.bodies {
		w.api.all.bodies[key] = mark.AppendTo(nil)
	}
	w.api.all.mu.Unlock()
	for range 2 {
		if got := do[*kmsg.MetadataResponse](w, all); *got.ClusterID != *mark.ClusterID {
			t.Error("the answer was made again")
		}
	}
	w.createTopic("t2", 1)
	if got := do[*kmsg.MetadataResponse](w, all); *got.ClusterID != clusterID || codes(got) != "t1=0 t2=0" {
		t.Errorf("of the next image: cluster %q, %s", *got.ClusterID, codes(got))
	}
}

func TestDescribeTopicPartitionsPages(t *testing.T) { // KIP-966
	w := newWorld(t, nil)
	for i := range 3 {
		w.createTopic(name(i), 3)
	}
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 4
	var pages []string
	for {
		resp := do[*kmsg.DescribeTopicPartitionsResponse](w, req)
		var page []string
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				page = append(page, fmt.Sprintf("%s-%d", *t.Topic, p.Partition))
			}
		}
		pages = append(pages, strings.Join(page, " "))
		if resp.NextCursor == nil {
			break
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = resp.NextCursor.Topic, resp.NextCursor.Partition
		req.Cursor = &cursor
	}
	want := []string{"t0-0 t0-1 t0-2 t1-0", "t1-1 t1-2 t2-0 t2-1", "t2-2"}
	if !slices.Equal(pages, want) {
		t.Errorf("pages %q, want %q", pages, want)
	}
}

func TestDescribeTopicPartitionsByName(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("b", 1)
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 100
	for _, n := range []string{"no", "b", "b", "a b"} {
		ask := kmsg.NewDescribeTopicPartitionsRequestTopic()
		ask.Topic = n
		req.Topics = append(req.Topics, ask)
	}
	resp := do[*kmsg.DescribeTopicPartitionsResponse](w, req)
	var got []string
	for _, topic := range resp.Topics {
		got = append(got, fmt.Sprintf("%s=%d", *topic.Topic, topic.ErrorCode))
	}
	if want := []string{"a b=17", "b=0", "no=3"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
	cursor.Topic, cursor.Partition = "b", -1
	req.Cursor = &cursor
	for _, topic := range do[*kmsg.DescribeTopicPartitionsResponse](w, req).Topics {
		if topic.ErrorCode != model.ErrInvalidRequest.Code() {
			t.Errorf("a negative cursor: %d", topic.ErrorCode)
		}
	}
}

func TestDescribeCluster(t *testing.T) { // KIP-700, 919, 1073
	w := newWorld(t, nil)
	w.change(&metalog.FenceBroker{BrokerID: 3, BrokerEpoch: 103})
	req := kmsg.NewPtrDescribeClusterRequest()
	req.Version = 2
	if resp := do[*kmsg.DescribeClusterResponse](w, req); len(resp.Brokers) != 2 || resp.ClusterID != clusterID || resp.ControllerID != 2 ||
		resp.ClusterAuthorizedOperations != unknownOperations {
		t.Errorf("%+v", resp)
	}
	req.IncludeFencedBrokers, req.IncludeClusterAuthorizedOperations = true, true
	if resp := do[*kmsg.DescribeClusterResponse](w, req); len(resp.Brokers) != 3 || !resp.Brokers[2].IsFenced || resp.ClusterAuthorizedOperations != 8096 {
		t.Errorf("%+v", resp)
	}
	for kind, want := range map[int8]model.Error{2: model.ErrMismatchedEndpointType, 9: model.ErrUnsupportedEndpointType} {
		req.EndpointType = kind
		if got := model.Error(do[*kmsg.DescribeClusterResponse](w, req).ErrorCode); got != want {
			t.Errorf("endpoint type %d: %v, want %v", kind, got, want)
		}
	}
}

func TestFindCoordinator(t *testing.T) {
	w := newWorld(t, map[string]string{"offsets.topic.num.partitions": "4"})
	find := func(version int16, kind int8, keys ...string) []kmsg.FindCoordinatorResponseCoordinator {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version, req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = version, kind, keys[0], keys
		resp := do[*kmsg.FindCoordinatorResponse](w, req)
		if version < 4 {
			return []kmsg.FindCoordinatorResponseCoordinator{{ErrorCode: resp.ErrorCode, NodeID: resp.NodeID, Host: resp.Host, Port: resp.Port}}
		}
		return resp.Coordinators
	}
	if got := find(2, 0, "g")[0]; got.ErrorCode != 15 || got.NodeID != -1 {
		t.Errorf("before there is a topic: %+v", got)
	}
	w.api.started.Wait()
	topic := w.Image().TopicByName(offsetsTopic)
	for _, version := range []int16{0, 3, 4, 6} {
		want := topic.Partitions[groupPartition("g", 4)].Leader
		if got := find(version, 0, "g")[0]; got.ErrorCode != 0 || got.NodeID != int32(want) || got.Host != fmt.Sprintf("host%d", want) || got.Port != 9092 {
			t.Errorf("v%d: %+v, want broker %d", version, got, want)
		}
	}
	if got := find(4, 0, "a", "b"); len(got) != 2 || got[1].Key != "b" {
		t.Errorf("two groups: %+v", got)
	}
	for kind, want := range map[int8]model.Error{1: model.ErrUnsupportedVersion, 2: model.ErrUnsupportedVersion, 7: model.ErrInvalidRequest} {
		if got := find(4, kind, "x")[0]; got.ErrorCode != want.Code() {
			t.Errorf("type %d: %d, want %v", kind, got.ErrorCode, want)
		}
	}
}

// The hash is Java's, over UTF-16 units, so that groups stay where Apache Kafka
// put them.
func TestGroupsHashAsInJava(t *testing.T) {
	for group, want := range map[string]int32{"": 0, "a": 97 % 50, "hello": 99162322 % 50, "polygenelubricants": 0, "é": 233 % 50, "😀": 1772899 % 50} {
		if got := groupPartition(group, 50); got != want {
			t.Errorf("%q: %d, want %d", group, got, want)
		}
	}
}
