package api

import (
	"context"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// metadata serves key 3, versions 0 to 13: brokers, topics and their leaders,
// by the newest image and as the listener of the connection sees them. Topics
// come sorted when all are asked for, else in the order of the request, each
// once. Errors per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION,
// UNKNOWN_TOPIC_ID, LEADER_NOT_AVAILABLE. KIP-4, 430, 516; cases B17 to B24.
func (a *API) metadata(ctx context.Context, r *transport.Request, req *kmsg.MetadataRequest) kmsg.Response {
	if err := checkMetadata(req); err != model.None {
		return refuseMetadata(req, err)
	}
	v := newView(a.Images.Image(), r.Conn.Listener(), req.Version)
	controller := a.controllerID(v)
	if req.Topics == nil || req.Version == 0 && len(req.Topics) == 0 {
		key := allTopicsKey{req.Version, v.listener, req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations}
		return a.all.answer(v.img, controller, key, func() *kmsg.MetadataResponse { return a.everyTopic(v, controller, req) })
	}
	resp := a.describeBrokers(v, controller, req)
	a.namedTopics(ctx, v, resp, req)
	return resp
}

// everyTopic answers a request for all topics.
func (a *API) everyTopic(v *view, controller model.BrokerID, req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	resp := a.describeBrokers(v, controller, req)
	resp.Topics = make([]kmsg.MetadataResponseTopic, 0, v.img.TopicCount())
	for t := range v.img.Topics() {
		resp.Topics = append(resp.Topics, v.topic(t, req))
	}
	return resp
}

// checkMetadata refuses what versions 10 and 11 do not allow yet: they carry
// topic ids, but answer by name only.
func checkMetadata(req *kmsg.MetadataRequest) model.Error {
	if req.Version >= 12 {
		return model.None
	}
	for i := range req.Topics {
		if t := &req.Topics[i]; t.Topic == nil || t.TopicID != (model.UUID{}) {
			return model.ErrInvalidRequest
		}
	}
	return model.None
}

func refuseMetadata(req *kmsg.MetadataRequest, err model.Error) kmsg.Response {
	resp := kmsg.NewPtrMetadataResponse()
	resp.ErrorCode = err.Code()
	for i := range req.Topics {
		t := kmsg.NewMetadataResponseTopic()
		t.ErrorCode, t.Topic, t.TopicID = err.Code(), req.Topics[i].Topic, req.Topics[i].TopicID
		if t.Topic == nil {
			t.Topic = text("")
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// describeBrokers begins an answer with all but the topics.
func (a *API) describeBrokers(v *view, controller model.BrokerID, req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	resp.ClusterID, resp.ControllerID = text(a.ClusterID), int32(controller)
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = clusterOperations
	}
	for _, b := range v.img.Brokers() {
		e, ok := endpoint(b, v.listener)
		if !ok {
			continue
		}
		out := kmsg.NewMetadataResponseBroker()
		out.NodeID, out.Host, out.Port, out.Rack = int32(b.ID), e.Host, int32(e.Port), b.Rack
		resp.Brokers = append(resp.Brokers, out)
	}
	return resp
}

// controllerID is whom clients may send what is for the controller: the active
// controller if it is a broker that they can reach, else this broker, which
// forwards.
func (a *API) controllerID(v *view) model.BrokerID {
	if id, _ := a.Controller.Active(); v.alive(id) {
		return id
	}
	return a.ID
}

// namedTopics answers a list of names and ids.
func (a *API) namedTopics(ctx context.Context, v *view, resp *kmsg.MetadataResponse, req *kmsg.MetadataRequest) {
	create := a.Config.AutoCreateTopics && (req.Version < 4 || req.AllowAutoTopicCreation)
	var missing []string
	type key struct {
		name string
		id   model.UUID
	}
	seen := make(map[key]bool, len(req.Topics))
	resp.Topics = make([]kmsg.MetadataResponseTopic, 0, len(req.Topics))
	for i := range req.Topics {
		ask := &req.Topics[i]
		k := key{id: ask.TopicID}
		if k.id.IsZero() && ask.Topic != nil {
			k.name = *ask.Topic
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		t := v.find(ask)
		if t != nil {
			resp.Topics = append(resp.Topics, v.topic(t, req))
			continue
		}
		out := kmsg.NewMetadataResponseTopic()
		out.TopicID, out.ErrorCode = ask.TopicID, model.ErrUnknownTopicID.Code()
		if k.id.IsZero() && ask.Topic != nil {
			err := missingTopic(k.name)
			out.Topic, out.ErrorCode, out.IsInternal = ask.Topic, err.Code(), internalTopic(k.name)
			if create && err == model.ErrUnknownTopicOrPartition {
				missing = append(missing, k.name)
			}
		}
		resp.Topics = append(resp.Topics, out)
	}
	if len(missing) > 0 {
		a.autoCreate(ctx, missing)
	}
}

// view is an image as the clients of one listener see it.
type view struct {
	img      *image.Image
	listener string
	// hideDead leaves replicas out that cannot be reached, as version 0 wants.
	hideDead bool
	reach    map[model.BrokerID]bool
	room     []int32 // for the lists of ids, taken in pieces
}

// roomChunk is how many ids are allocated at a time.
const roomChunk = 1024

func newView(img *image.Image, listener string, version int16) *view {
	v := &view{img: img, listener: listener, hideDead: version == 0, reach: make(map[model.BrokerID]bool)}
	for _, b := range img.Brokers() {
		_, v.reach[b.ID] = endpoint(b, listener)
	}
	return v
}

// alive says whether clients can reach a broker.
func (v *view) alive(id model.BrokerID) bool { return v.reach[id] }

func (v *view) find(ask *kmsg.MetadataRequestTopic) *image.Topic {
	if id := model.UUID(ask.TopicID); !id.IsZero() {
		return v.img.TopicByID(id)
	}
	if ask.Topic == nil {
		return nil
	}
	return v.img.TopicByName(*ask.Topic)
}

func (v *view) topic(t *image.Topic, req *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, internalTopic(t.Name)
	if req.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = topicOperations
	}
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i, p := range t.Partitions {
		v.partition(int32(i), p, &out.Partitions[i])
	}
	return out
}

// partition describes one partition. A leader that clients cannot reach is no
// leader to them (case B22).
func (v *view) partition(id int32, p *image.Partition, out *kmsg.MetadataResponseTopicPartition) {
	out.Default()
	out.Partition, out.LeaderEpoch = id, int32(p.LeaderEpoch)
	out.Replicas, out.ISR = v.ids(p.Replicas), v.ids(p.ISR)
	out.OfflineReplicas = v.offline(p.Replicas)
	out.Leader = int32(p.Leader)
	switch {
	case !v.alive(p.Leader):
		out.Leader, out.ErrorCode = int32(model.NoBroker), model.ErrLeaderNotAvailable.Code()
	case len(out.Replicas) < len(p.Replicas):
		out.ErrorCode = model.ErrReplicaNotAvailable.Code()
	}
}

func (v *view) ids(brokers []model.BrokerID) []int32 {
	out := v.list(len(brokers))
	for _, id := range brokers {
		if !v.hideDead || v.alive(id) {
			out = append(out, int32(id))
		}
	}
	return out
}

func (v *view) offline(replicas []model.BrokerID) []int32 {
	dead := 0
	for _, id := range replicas {
		if !v.alive(id) {
			dead++
		}
	}
	out := v.list(dead)
	for _, id := range replicas {
		if !v.alive(id) {
			out = append(out, int32(id))
		}
	}
	return out
}

// list is an empty list with room for n ids.
func (v *view) list(n int) []int32 {
	if n > len(v.room) {
		v.room = make([]int32, max(n, roomChunk))
	}
	out := v.room[:0:n]
	v.room = v.room[n:]
	return out
}
