package controlplane

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/tidemark-log/tidemark/internal/controlplane/projection"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/quorum"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// dial opens a connection to a controller's listener.
func dial(t *testing.T, c *Controller) *transport.Client {
	t.Helper()
	client, err := transport.Dial(ctx(t), c.Addr().String(), transport.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// ask sends a request and copies the answer out of its frame.
func ask[R kmsg.Response](t *testing.T, client *transport.Client, req kmsg.Request) R {
	t.Helper()
	resp, frame, err := exchange(ctx(t), client, req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(frame.Release)
	return resp.(R)
}

// fetchOf is a Fetch of the metadata log in the newest version.
func fetchOf(offset model.Offset, last, current model.Epoch, wait time.Duration) *kmsg.FetchRequest {
	f := &follower{o: ObserverOptions{NodeID: 500, ClusterID: testCluster}, end: offset, epoch: last, hw: offset}
	f.lead.epoch = current
	req := f.fetchRequest(fetchMax)
	req.MaxWaitMillis = int32(wait.Milliseconds())
	return req
}

func partitionOf(t *testing.T, resp *kmsg.FetchResponse) *kmsg.FetchResponseTopicPartition {
	t.Helper()
	p, err := fetchPartition(resp)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheLeaderServesCommittedRecordsAndNamesItself(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	client := dial(t, c.nodes[0])
	img := until(t, c.nodes[0], "its controller", reaches(7))
	resp := ask[*kmsg.FetchResponse](t, client, fetchOf(0, 0, 1, 0))
	p := partitionOf(t, resp)
	end := model.Offset(0)
	if _, err := metalog.DecodeBatches(p.RecordBatches, func(b metalog.Batch) error { end = b.End; return nil }); err != nil {
		t.Fatal(err)
	}
	if p.ErrorCode != 0 || p.HighWatermark != int64(end) || end < img.End() {
		t.Errorf("error %d, records up to %d, HW %d", p.ErrorCode, end, p.HighWatermark)
	}
	if p.CurrentLeader.LeaderID != 1 || p.CurrentLeader.LeaderEpoch != 1 {
		t.Errorf("the leader is %+v", p.CurrentLeader)
	}
	if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 1 || resp.Brokers[0].Port != int32(c.voters[0].Port) {
		t.Errorf("the endpoints are %+v", resp.Brokers)
	}
}

func TestReadersOfAnotherEpochOrTopicAreRefused(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	c.stop(0)
	c.start(0) // epoch 2
	waitReady(t, c.nodes[0])
	client := dial(t, c.nodes[0])
	end := c.nodes[0].Image().End()
	for name, r := range map[string]struct {
		offset        model.Offset
		last, current model.Epoch
		code          model.Error
	}{
		"an old epoch":             {end, 1, 1, model.ErrFencedLeaderEpoch},
		"a future epoch":           {end, 1, 3, model.ErrUnknownLeaderEpoch},
		"a negative offset":        {-5, 1, 2, model.ErrInvalidRequest},
		"records beyond the epoch": {end, 3, 2, model.ErrInvalidRequest},
	} {
		p := partitionOf(t, ask[*kmsg.FetchResponse](t, client, fetchOf(r.offset, r.last, r.current, 0)))
		if p.ErrorCode != int16(r.code) || p.CurrentLeader.LeaderEpoch != 2 {
			t.Errorf("%s: %v with leader %+v", name, model.Error(p.ErrorCode), p.CurrentLeader)
		}
	}
	other := "AAAAAAAAAAAAAAAAAAAAAA"
	for name, r := range map[string]struct {
		change func(*kmsg.FetchRequest)
		code   model.Error
	}{
		"another cluster":   {func(r *kmsg.FetchRequest) { r.ClusterID = &other }, model.ErrInconsistentClusterID},
		"another topic":     {func(r *kmsg.FetchRequest) { r.Topics[0].TopicID = [16]byte{1} }, model.ErrInvalidRequest},
		"another partition": {func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].Partition = 1 }, model.ErrInvalidRequest},
		"two topics":        {func(r *kmsg.FetchRequest) { r.Topics = append(r.Topics, r.Topics[0]) }, model.ErrInvalidRequest},
		"none":              {func(r *kmsg.FetchRequest) { r.Topics = nil }, model.ErrInvalidRequest},
	} {
		req := fetchOf(end, 2, 2, 0)
		r.change(req)
		if resp := ask[*kmsg.FetchResponse](t, client, req); resp.ErrorCode != int16(r.code) {
			t.Errorf("%s: %v", name, model.Error(resp.ErrorCode))
		}
	}
	if p := partitionOf(t, ask[*kmsg.FetchResponse](t, client, fetchOf(end+5, 1, 2, 0))); p.DivergingEpoch.Epoch != 1 || p.DivergingEpoch.EndOffset < 1 {
		t.Errorf("a log that went on in epoch 1: %+v", p.DivergingEpoch)
	}
}

func TestALongPollEndsWithTheCommitOrItsTime(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	registerBroker(t, c.nodes[0], 1, 9)
	client := dial(t, c.nodes[0])
	end := until(t, c.nodes[0], "its controller", reaches(9)).End()
	p := partitionOf(t, ask[*kmsg.FetchResponse](t, client, fetchOf(end, 1, 1, time.Millisecond)))
	if p.ErrorCode != 0 || len(p.RecordBatches) != 0 || p.HighWatermark != int64(end) {
		t.Fatalf("a poll without news: error %d, %d bytes, HW %d", p.ErrorCode, len(p.RecordBatches), p.HighWatermark)
	}
	type answer struct {
		resp kmsg.Response
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		resp, err := client.Do(context.Background(), fetchOf(end, 1, 1, maxFetchWait))
		got <- answer{resp, err}
	}()
	mustCreate(t, c.nodes[0], "news")
	select {
	case a := <-got:
		if a.err != nil {
			t.Fatal(a.err)
		}
		if p := partitionOf(t, a.resp.(*kmsg.FetchResponse)); p.HighWatermark <= int64(end) || len(p.RecordBatches) == 0 {
			t.Errorf("HW %d, %d bytes", p.HighWatermark, len(p.RecordBatches))
		}
	case <-time.After(patience):
		t.Fatal("the commit did not end the poll")
	}
}

func TestAReaderThatLacksTheHighWatermarkIsToldAtOnce(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	client := dial(t, c.nodes[0])
	end := until(t, c.nodes[0], "its controller", reaches(7)).End()
	req := fetchOf(end, 1, 1, maxFetchWait)
	req.Topics[0].Partitions[0].HighWatermark = int64(end) - 1
	if p := partitionOf(t, ask[*kmsg.FetchResponse](t, client, req)); p.HighWatermark != int64(end) {
		t.Errorf("HW %d", p.HighWatermark)
	}
	old := fetchOf(end, 1, 1, maxFetchWait)
	old.ReplicaState.ID = 501
	old.SetVersion(17) // it cannot say what it knows: the first answer does not wait
	if p := partitionOf(t, ask[*kmsg.FetchResponse](t, client, old)); p.HighWatermark != int64(end) {
		t.Errorf("HW %d", p.HighWatermark)
	}
}

func TestAFollowerNamesTheLeaderAndDecidesNothing(t *testing.T) {
	c := newCluster(t, 3, nil)
	lead := c.leader()
	follower := c.nodes[(lead+1)%3]
	until(t, follower, "the leader's records", reaches(1))
	client := dial(t, follower)
	resp := ask[*kmsg.FetchResponse](t, client, fetchOf(0, 0, 1, 0))
	p := partitionOf(t, resp)
	if p.ErrorCode != int16(model.ErrNotLeaderOrFollower) || p.CurrentLeader.LeaderID != int32(c.voters[lead].ID) ||
		len(resp.Brokers) != 1 || resp.Brokers[0].Port != int32(c.voters[lead].Port) {
		t.Errorf("Fetch: %v, leader %+v at %+v", model.Error(p.ErrorCode), p.CurrentLeader, resp.Brokers)
	}
	for _, r := range wire.ControllerVersions.Advertised() {
		req := wire.NewRequest(r.Key, r.Max)
		fillOne(req)
		switch req.(type) {
		case *kmsg.FetchRequest, *kmsg.FetchSnapshotRequest, *kmsg.ApiVersionsRequest, *kmsg.DescribeClusterRequest:
			continue
		}
		if resp := ask[kmsg.Response](t, client, req); !notController(resp) {
			t.Errorf("%s was answered with %+v", kmsg.Key(r.Key).Name(), resp)
		}
	}
}

// fillOne gives requests without an error of their own one item to carry it.
func fillOne(req kmsg.Request) {
	switch r := req.(type) {
	case *kmsg.CreateTopicsRequest:
		r.Topics = append(r.Topics, kmsg.CreateTopicsRequestTopic{Topic: "x"})
	case *kmsg.DeleteTopicsRequest:
		r.Topics = append(r.Topics, kmsg.DeleteTopicsRequestTopic{Topic: kmsg.StringPtr("x")})
	case *kmsg.CreatePartitionsRequest:
		r.Topics = append(r.Topics, kmsg.CreatePartitionsRequestTopic{Topic: "x"})
	case *kmsg.AlterConfigsRequest:
		r.Resources = append(r.Resources, kmsg.AlterConfigsRequestResource{ResourceName: "x"})
	case *kmsg.IncrementalAlterConfigsRequest:
		r.Resources = append(r.Resources, kmsg.IncrementalAlterConfigsRequestResource{ResourceName: "x"})
	case *kmsg.DescribeQuorumRequest:
		r.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: metadataTopic, Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{}}}}
	}
}

func TestTheQuorumIsDescribed(t *testing.T) {
	c := newCluster(t, 3, nil)
	lead := c.leader()
	o, _ := observe(t, c, "", nil)
	defer closeObserver(t, o)
	img := until(t, c.nodes[lead], "three controllers", func(img *image.Image) bool { return len(img.Controllers()) == 3 })
	until(t, o, "the same", reaches(img.End()))
	req := kmsg.NewPtrDescribeQuorumRequest()
	req.SetVersion(2)
	fillOne(req)
	resp, err := o.Forward(ctx(t), req)
	if err != nil {
		t.Fatal(err)
	}
	r := resp.(*kmsg.DescribeQuorumResponse)
	p := r.Topics[0].Partitions[0]
	if p.ErrorCode != 0 || p.LeaderID != int32(c.voters[lead].ID) || p.HighWatermark < int64(img.End()) {
		t.Errorf("the leader is %d with HW %d, error %d", p.LeaderID, p.HighWatermark, p.ErrorCode)
	}
	if len(p.CurrentVoters) != 3 || len(r.Nodes) != 3 || r.Nodes[0].Listeners[0].Port != c.voters[0].Port {
		t.Errorf("voters %+v, nodes %+v", p.CurrentVoters, r.Nodes)
	}
	if len(p.Observers) != 1 || p.Observers[0].ReplicaID != 101 || p.Observers[0].LastFetchTimestamp <= 0 {
		t.Errorf("observers %+v", p.Observers)
	}
}

func TestTheControllersAreDescribedAndBrokersAreNot(t *testing.T) {
	c := newCluster(t, 3, nil)
	lead := c.leader()
	client := dial(t, c.nodes[lead])
	req := kmsg.NewPtrDescribeClusterRequest()
	req.SetVersion(2)
	req.EndpointType = endpointController
	resp := ask[*kmsg.DescribeClusterResponse](t, client, req)
	if resp.ErrorCode != 0 || resp.ClusterID != testCluster || resp.ControllerID != int32(c.voters[lead].ID) || len(resp.Brokers) != 3 {
		t.Errorf("%+v", resp)
	}
	req.EndpointType = 1
	if resp := ask[*kmsg.DescribeClusterResponse](t, client, req); resp.ErrorCode != int16(model.ErrMismatchedEndpointType) {
		t.Errorf("brokers were asked for: %v", model.Error(resp.ErrorCode))
	}
}

func TestApiVersionsListWhatIsServedAndTheFeatures(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	client := dial(t, c.nodes[0])
	req := kmsg.NewPtrApiVersionsRequest()
	req.SetVersion(4)
	req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1"
	resp := ask[*kmsg.ApiVersionsResponse](t, client, req)
	served := map[int16]kmsg.ApiVersionsResponseApiKey{}
	for _, k := range resp.ApiKeys {
		served[k.ApiKey] = k
	}
	if k := served[int16(kmsg.Fetch)]; k.MinVersion != 4 || k.MaxVersion != 18 {
		t.Errorf("Fetch %+v", k)
	}
	if _, ok := served[keyEnvelope]; !ok {
		t.Error("Envelope is not listed: Apache brokers could not forward")
	}
	if _, ok := served[keyRaft]; ok {
		t.Error("a private key is listed")
	}
	final := map[string]int16{}
	for _, f := range resp.FinalizedFeatures {
		final[f.Name] = f.MaxVersionLevel
	}
	for name, level := range Features() {
		if final[name] != level {
			t.Errorf("%s is %d", name, final[name])
		}
	}
	req.SetVersion(3)
	for _, f := range ask[*kmsg.ApiVersionsResponse](t, client, req).SupportedFeatures {
		if f.MinVersion == 0 {
			t.Errorf("%s with the minimum 0 is told to a client that cannot read it", f.Name)
		}
	}
}

func TestAnEnvelopeCarriesAnAdminRequest(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	registerBroker(t, c.nodes[0], 1, 9)
	client := dial(t, c.nodes[0])
	inner := func(key, version int16, req kmsg.Request) []byte {
		h := wire.Header{Key: key, Version: version, CorrelationID: 77}
		return req.AppendTo(wire.AppendRequestHeader(nil, h, wire.Flexible(key, version)))
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.SetVersion(7)
	create.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "enveloped", NumPartitions: 1, ReplicationFactor: 1}}
	env := kmsg.NewPtrEnvelopeRequest()
	env.RequestData, env.ClientHostAddress = inner(create.Key(), 7, create), []byte{127, 0, 0, 1}
	resp := ask[*kmsg.EnvelopeResponse](t, client, env)
	if resp.ErrorCode != 0 {
		t.Fatal(model.Error(resp.ErrorCode))
	}
	id, body, err := wire.ParseResponse(resp.ResponseData, true)
	out := create.ResponseKind().(*kmsg.CreateTopicsResponse)
	if err == nil {
		err = out.ReadFrom(body)
	}
	if err != nil || id != 77 || out.Topics[0].ErrorCode != 0 {
		t.Errorf("correlation id %d, %+v, %v", id, out, err)
	}
	until(t, c.nodes[0], "the topic", hasTopic("enveloped"))
	hb := kmsg.NewPtrBrokerHeartbeatRequest()
	env.RequestData = inner(hb.Key(), 0, hb)
	if resp := ask[*kmsg.EnvelopeResponse](t, client, env); resp.ErrorCode != int16(model.ErrUnsupportedVersion) {
		t.Errorf("a heartbeat in an envelope: %v", model.Error(resp.ErrorCode))
	}
	env.RequestData = []byte{1, 2}
	if resp := ask[*kmsg.EnvelopeResponse](t, client, env); resp.ErrorCode != int16(model.ErrInvalidRequest) {
		t.Errorf("two bytes in an envelope: %v", model.Error(resp.ErrorCode))
	}
}

func TestRaftMessagesOfStrangersAreRefused(t *testing.T) {
	c := newCluster(t, 1, nil)
	waitReady(t, c.nodes[0])
	msg := func(from, to model.BrokerID, term uint64) *pb.Message {
		return &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(quorum.RaftID(from)), To: new(quorum.RaftID(to)), Term: new(term)}
	}
	send := func(r *raftRequest) model.Error {
		return model.Error(ask[*raftResponse](t, dial(t, c.nodes[0]), r).code)
	}
	if code := send(&raftRequest{key: keyRaft, clusterID: "another", from: 2, messages: []*pb.Message{msg(2, 1, 1)}}); code != model.ErrInconsistentClusterID {
		t.Errorf("another cluster: %v", code)
	}
	if code := send(&raftRequest{key: keyRaft, clusterID: testCluster, from: 2, messages: []*pb.Message{msg(3, 1, 1)}}); code != model.ErrInvalidRequest {
		t.Errorf("a message of a third node: %v", code)
	}
	if code := send(&raftRequest{key: keyRaft, clusterID: testCluster, from: 2, messages: []*pb.Message{msg(2, 9, 1)}}); code != model.ErrInvalidRequest {
		t.Errorf("a message to another node: %v", code)
	}
	snap := msg(2, 1, 1)
	snap.Type = pb.MsgSnap.Enum()
	if code := send(&raftRequest{key: keyInstallSnapshot, clusterID: testCluster, from: 2, messages: []*pb.Message{snap}}); code != model.ErrInvalidRequest {
		t.Errorf("a snapshot that names nothing: %v", code)
	}
	waitReady(t, c.nodes[0])
	registerBroker(t, c.nodes[0], 1, 9)
	mustCreate(t, c.nodes[0], "still-leading")
}

func TestACheckpointIsServedInPiecesAndNotBeyond(t *testing.T) {
	c := newCluster(t, 1, func(o *Options) { o.SnapshotBytes = 500 })
	waitReady(t, c.nodes[0])
	registerBroker(t, c.nodes[0], 1, 9)
	client := dial(t, c.nodes[0])
	var id projection.ID
	for i := 0; id.End == 0; i++ {
		mustCreate(t, c.nodes[0], "topic-"+string(rune('a'+i%26))+string(rune('a'+i/26)))
		p := partitionOf(t, ask[*kmsg.FetchResponse](t, client, fetchOf(0, 0, 1, 0)))
		id = projection.ID{End: model.Offset(max(p.SnapshotID.EndOffset, 0)), Epoch: model.Epoch(max(p.SnapshotID.Epoch, 0))}
	}
	piece := func(id projection.ID, at int64) *kmsg.FetchSnapshotResponseTopicPartition {
		req := kmsg.NewPtrFetchSnapshotRequest()
		req.SetVersion(1)
		req.MaxBytes = 100
		p := kmsg.FetchSnapshotRequestTopicPartition{CurrentLeaderEpoch: 1, Position: at}
		p.SnapshotID.EndOffset, p.SnapshotID.Epoch = int64(id.End), int32(id.Epoch)
		req.Topics = []kmsg.FetchSnapshotRequestTopic{{Topic: metadataTopic, Partitions: []kmsg.FetchSnapshotRequestTopicPartition{p}}}
		return &ask[*kmsg.FetchSnapshotResponse](t, client, req).Topics[0].Partitions[0]
	}
	first := piece(id, 0)
	if first.ErrorCode != 0 || len(first.Bytes) != 100 || first.Size <= 100 || first.CurrentLeader.LeaderID != 1 {
		t.Errorf("error %d, %d bytes of %d", first.ErrorCode, len(first.Bytes), first.Size)
	}
	if p := piece(id, first.Size); p.ErrorCode != int16(model.ErrPositionOutOfRange) {
		t.Errorf("beyond its end: %v", model.Error(p.ErrorCode))
	}
	for _, id := range []projection.ID{{End: 1, Epoch: 1}, {}, {End: -1, Epoch: -1}} {
		if p := piece(id, 0); p.ErrorCode != int16(model.ErrSnapshotNotFound) {
			t.Errorf("checkpoint %v: %v", id, model.Error(p.ErrorCode))
		}
	}
}

func TestHeartbeatsGoFirst(t *testing.T) {
	l := &loop{}
	for _, req := range []kmsg.Request{kmsg.NewPtrCreateTopicsRequest(), kmsg.NewPtrDeleteTopicsRequest()} {
		l.queue = append(l.queue, call{req: req})
	}
	l.urgent = append(l.urgent, call{req: kmsg.NewPtrBrokerHeartbeatRequest()})
	var order []int16
	for {
		c, ok := l.pop()
		if !ok {
			break
		}
		order = append(order, c.req.Key())
	}
	if len(order) != 3 || order[0] != 63 || order[1] != 19 || order[2] != 20 {
		t.Errorf("the order is %v", order)
	}
}
