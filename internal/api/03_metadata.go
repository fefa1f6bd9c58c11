package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/view"
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
	v := view.New(a.Images.Image(), r.Conn.Listener(), req.Version)
	controller := a.controllerID(v)
	if req.Topics == nil || req.Version == 0 && len(req.Topics) == 0 {
		key := allTopicsKey{req.Version, v.Listener, req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations}
		return a.all.answer(v.Image, controller, key, func() *kmsg.MetadataResponse { return a.everyTopic(v, controller, req) })
	}
	resp := a.describeBrokers(v, controller, req)
	a.namedTopics(ctx, v, resp, req)
	return resp
}

// everyTopic answers a request for all topics.
func (a *API) everyTopic(v *view.View, controller model.BrokerID, req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	resp := a.describeBrokers(v, controller, req)
	resp.Topics = make([]kmsg.MetadataResponseTopic, 0, v.Image.TopicCount())
	for t := range v.Image.Topics() {
		resp.Topics = append(resp.Topics, describeTopic(v, t, req))
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
func (a *API) describeBrokers(v *view.View, controller model.BrokerID, req *kmsg.MetadataRequest) *kmsg.MetadataResponse {
	resp := kmsg.NewPtrMetadataResponse()
	resp.ClusterID, resp.ControllerID = text(a.ClusterID), int32(controller)
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = clusterOperations
	}
	for _, b := range v.Image.Brokers() {
		e, ok := view.Endpoint(b, v.Listener)
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
func (a *API) controllerID(v *view.View) model.BrokerID {
	if id, _ := a.Controller.Active(); v.Alive(id) {
		return id
	}
	return a.ID
}

// namedTopics answers a list of names and ids.
func (a *API) namedTopics(ctx context.Context, v *view.View, resp *kmsg.MetadataResponse, req *kmsg.MetadataRequest) {
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
		t := findTopic(v.Image, ask)
		if t != nil {
			resp.Topics = append(resp.Topics, describeTopic(v, t, req))
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

// findTopic finds the topic of an ask by its id or else by its name; nil if there is none.
func findTopic(img *image.Image, ask *kmsg.MetadataRequestTopic) *image.Topic {
	if id := model.UUID(ask.TopicID); !id.IsZero() {
		return img.TopicByID(id)
	}
	if ask.Topic == nil {
		return nil
	}
	return img.TopicByName(*ask.Topic)
}

func describeTopic(v *view.View, t *image.Topic, req *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, internalTopic(t.Name)
	if req.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = topicOperations
	}
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i, p := range t.Partitions {
		v.Partition(int32(i), p, &out.Partitions[i])
	}
	return out
}
