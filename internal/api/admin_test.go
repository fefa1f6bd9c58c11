package api

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/wire"
)

var errNoController = errors.New("no controller answers")

// lose makes the controller unreachable; nil brings it back.
func (w *world) lose(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = err
}

func TestAdminRequestsAreRelayed(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 2
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 1, 1
	req.Topics = append(req.Topics, topic)
	resp := do[*kmsg.CreateTopicsResponse](w, req)
	if resp.Version != 2 || resp.Topics[0].ErrorCode != model.ErrTopicAlreadyExists.Code() {
		t.Errorf("%+v", resp)
	}
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.Version, del.TopicNames = 5, []string{"t", "missing"}
	got := do[*kmsg.DeleteTopicsResponse](w, del)
	for i := range got.Topics {
		if want := map[string]int16{"t": 0, "missing": 3}[*got.Topics[i].Topic]; got.Topics[i].ErrorCode != want {
			t.Errorf("delete %s: %d", *got.Topics[i].Topic, got.Topics[i].ErrorCode)
		}
	}
	if w.Image().TopicByName("t") != nil {
		t.Error("the topic is still there")
	}
}

// Without a controller, every part of every forwarded request gets an error.
func TestForwardedRequestsFailInTheirOwnWords(t *testing.T) {
	w := newWorld(t, nil)
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Topics = append(create.Topics, kmsg.CreateTopicsRequestTopic{Topic: "x"})
	byName := kmsg.NewPtrDeleteTopicsRequest()
	byName.TopicNames = []string{"x"}
	byID := kmsg.NewPtrDeleteTopicsRequest()
	byID.Version = 6
	byID.Topics = append(byID.Topics, kmsg.DeleteTopicsRequestTopic{TopicID: model.UUID{4}})
	parts := kmsg.NewPtrCreatePartitionsRequest()
	parts.Topics = append(parts.Topics, kmsg.CreatePartitionsRequestTopic{Topic: "x"})
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.Version = 2
	elect.Topics = append(elect.Topics, kmsg.ElectLeadersRequestTopic{Topic: "x", Partitions: []int32{0}})
	alter := kmsg.NewPtrAlterConfigsRequest()
	alter.Resources = append(alter.Resources, kmsg.AlterConfigsRequestResource{ResourceType: 2, ResourceName: "x"})
	incr := kmsg.NewPtrIncrementalAlterConfigsRequest()
	incr.Resources = append(incr.Resources, kmsg.IncrementalAlterConfigsRequestResource{ResourceType: 2, ResourceName: "x"})
	requests := []kmsg.Request{create, byName, byID, parts, elect, alter, incr,
		kmsg.NewPtrAlterPartitionAssignmentsRequest(), kmsg.NewPtrListPartitionReassignmentsRequest(),
		kmsg.NewPtrUpdateFeaturesRequest(), kmsg.NewPtrDescribeQuorumRequest(), kmsg.NewPtrUnregisterBrokerRequest(),
	}
	for cause, want := range map[error]model.Error{errNoController: model.ErrNetworkException, context.DeadlineExceeded: model.ErrRequestTimedOut} {
		w.lose(cause)
		for _, req := range requests {
			if r, _ := wire.BrokerVersions.Range(req.Key()); req.GetVersion() < r.Min {
				req.SetVersion(r.Min)
			}
			resp, err := w.client.Do(t.Context(), req)
			if err != nil {
				t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
			}
			if got := firstCode(resp); got != want {
				t.Errorf("%s: %v, want %v", kmsg.NameForKey(req.Key()), got, want)
			}
		}
	}
}

func firstCode(resp kmsg.Response) model.Error {
	var code int16
	switch r := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		code = r.Topics[0].ErrorCode
	case *kmsg.DeleteTopicsResponse:
		code = r.Topics[0].ErrorCode
	case *kmsg.CreatePartitionsResponse:
		code = r.Topics[0].ErrorCode
	case *kmsg.ElectLeadersResponse:
		code = min(r.ErrorCode, r.Topics[0].Partitions[0].ErrorCode)
	case *kmsg.AlterConfigsResponse:
		code = r.Resources[0].ErrorCode
	case *kmsg.IncrementalAlterConfigsResponse:
		code = r.Resources[0].ErrorCode
	case *kmsg.AlterPartitionAssignmentsResponse:
		code = r.ErrorCode
	case *kmsg.ListPartitionReassignmentsResponse:
		code = r.ErrorCode
	case *kmsg.UpdateFeaturesResponse:
		code = r.ErrorCode
	case *kmsg.DescribeQuorumResponse:
		code = r.ErrorCode
	case *kmsg.UnregisterBrokerResponse:
		code = r.ErrorCode
	}
	return model.Error(code)
}

// A controller that is gone for good must not hold a broker's end up.
func TestCloseEndsTheWaits(t *testing.T) {
	w := newWorld(t, nil)
	w.api.Close()
	req := kmsg.NewPtrDescribeQuorumRequest()
	if got := model.Error(do[*kmsg.DescribeQuorumResponse](w, req).ErrorCode); got != model.ErrRequestTimedOut {
		t.Errorf("%v", got)
	}
}

func describe(w *world, ask ...kmsg.DescribeConfigsRequestResource) []kmsg.DescribeConfigsResponseResource {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version, req.IncludeSynonyms, req.IncludeDocumentation = 4, true, true
	req.Resources = ask
	return do[*kmsg.DescribeConfigsResponse](w, req).Resources
}

func resource(kind int8, name string, keys ...string) kmsg.DescribeConfigsRequestResource {
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceType(kind), name, keys
	return r
}

func entry(r kmsg.DescribeConfigsResponseResource, key string) (kmsg.DescribeConfigsResponseResourceConfig, bool) {
	for _, c := range r.Configs {
		if c.Name == key {
			return c, true
		}
	}
	return kmsg.DescribeConfigsResponseResourceConfig{}, false
}

func TestDescribeTopicConfigs(t *testing.T) { // case B222
	w := newWorld(t, nil)
	w.createTopic("t", 1, "max.message.bytes", "1234")
	all := describe(w, resource(2, "t"))[0]
	own, ok := entry(all, "max.message.bytes")
	if !ok || *own.Value != "1234" || own.Source != 1 || own.ConfigType != 3 || len(own.ConfigSynonyms) < 2 || own.ConfigSynonyms[0].Source != 1 {
		t.Errorf("max.message.bytes: %+v", own)
	}
	if own.Documentation == nil {
		t.Error("max.message.bytes has no documentation")
	}
	if fallback, ok := entry(all, "segment.bytes"); !ok || fallback.Source != 5 || fallback.Value == nil {
		t.Errorf("segment.bytes: %+v", fallback)
	}
	if two := describe(w, resource(2, "t", "retention.ms", "cleanup.policy"))[0]; len(two.Configs) != 2 {
		t.Errorf("%d configs of two keys", len(two.Configs))
	}
	if none := describe(w, resource(2, "t", []string{}...))[0]; len(none.Configs) != len(all.Configs) {
		t.Errorf("%d configs of an empty list", len(none.Configs))
	}
	plain := kmsg.NewPtrDescribeConfigsRequest()
	plain.Version, plain.Resources = 1, []kmsg.DescribeConfigsRequestResource{resource(2, "t", "retention.ms")}
	if c := do[*kmsg.DescribeConfigsResponse](w, plain).Resources[0].Configs[0]; len(c.ConfigSynonyms) != 0 || c.Documentation != nil {
		t.Errorf("synonyms or documentation unasked: %+v", c)
	}
}

func TestDescribeConfigsOfOtherResources(t *testing.T) {
	w := newWorld(t, nil)
	w.change(&metalog.Config{ResourceType: metalog.ResourceBroker, ResourceName: "", Name: "log.retention.ms", Value: text("77")})
	for _, c := range []struct {
		kind int8
		name string
		code model.Error
		key  string // that must be there
	}{
		{4, "1", model.None, "log.retention.ms"}, {4, "", model.None, "log.retention.ms"}, {4, "2", model.ErrInvalidRequest, ""}, {4, "x", model.ErrInvalidRequest, ""},
		{8, "1", model.None, "root"}, {8, "2", model.ErrInvalidRequest, ""},
		{2, "missing", model.ErrUnknownTopicOrPartition, ""}, {2, "a b", model.ErrInvalidTopicException, ""},
		{32, "group", model.None, "consumer.session.timeout.ms"}, {32, "", model.ErrInvalidRequest, ""}, {3, "x", model.ErrInvalidRequest, ""},
	} {
		got := describe(w, resource(c.kind, c.name))[0]
		if model.Error(got.ErrorCode) != c.code || got.ResourceName != c.name || (c.code != model.None) != (got.ErrorMessage != nil) {
			t.Errorf("type %d %q: %+v, want %v", c.kind, c.name, got.ErrorCode, c.code)
		}
		if _, ok := entry(got, c.key); c.key != "" && !ok {
			t.Errorf("type %d %q does not list %s", c.kind, c.name, c.key)
		}
	}
	own := describe(w, resource(4, "1", "log.retention.ms"))[0].Configs[0]
	if *own.Value != "77" || own.Source != 3 {
		t.Errorf("a default of the cluster: %+v", own)
	}
}

func TestLogLevelsAreSetHere(t *testing.T) { // KIP-412
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	alter := func(level, broker string, validate bool) []kmsg.IncrementalAlterConfigsResponseResource {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.Version, req.ValidateOnly = 1, validate
		topic := kmsg.NewIncrementalAlterConfigsRequestResource()
		topic.ResourceType, topic.ResourceName = 2, "t"
		topic.Configs = append(topic.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "retention.ms", Value: text("5")})
		logger := kmsg.NewIncrementalAlterConfigsRequestResource()
		logger.ResourceType, logger.ResourceName = 8, broker
		logger.Configs = append(logger.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "root", Value: &level})
		req.Resources = append(req.Resources, logger, topic)
		return do[*kmsg.IncrementalAlterConfigsResponse](w, req).Resources
	}
	got := alter("DEBUG", "1", false)
	if len(got) != 2 || got[0].ResourceType != 8 || got[0].ErrorCode != 0 || got[1].ResourceName != "t" || got[1].ErrorCode != 0 {
		t.Fatalf("%+v", got)
	}
	if w.level.Level() != slog.LevelDebug || w.Image().Config(metalog.ResourceTopic, "t")["retention.ms"] != "5" {
		t.Error("a change is missing")
	}
	if c := describe(w, resource(8, "1"))[0].Configs[0]; *c.Value != "DEBUG" || c.Source != 6 {
		t.Errorf("%+v", c)
	}
	alter("WARN", "1", true)
	if w.level.Level() != slog.LevelDebug {
		t.Error("a dry run changed the level")
	}
	if code := alter("LOUD", "1", false)[0].ErrorCode; code != model.ErrInvalidConfig.Code() {
		t.Errorf("an unknown level: %d", code)
	}
	if code := alter("WARN", "2", false)[0].ErrorCode; code != model.ErrInvalidRequest.Code() {
		t.Errorf("another broker: %d", code)
	}
}

func TestAlterConfigs(t *testing.T) {
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	req := kmsg.NewPtrAlterConfigsRequest()
	topic := kmsg.NewAlterConfigsRequestResource()
	topic.ResourceType, topic.ResourceName = 2, "t"
	topic.Configs = append(topic.Configs, kmsg.AlterConfigsRequestResourceConfig{Name: "retention.ms", Value: text("9")})
	req.Resources = append(req.Resources, topic)
	if got := do[*kmsg.AlterConfigsResponse](w, req).Resources[0].ErrorCode; got != 0 || w.Image().Config(2, "t")["retention.ms"] != "9" {
		t.Errorf("code %d", got)
	}
	logger := kmsg.NewAlterConfigsRequestResource()
	logger.ResourceType, logger.ResourceName = 8, "1"
	req.Resources = append(req.Resources, logger)
	if got := do[*kmsg.AlterConfigsResponse](w, req).Resources[1].ErrorCode; got != model.ErrInvalidRequest.Code() {
		t.Errorf("log levels by AlterConfigs: %d", got)
	}
}

func TestListConfigResources(t *testing.T) { // KIP-1142
	w := newWorld(t, nil)
	w.createTopic("t", 1)
	w.change(&metalog.Config{ResourceType: metalog.ResourceGroup, ResourceName: "g", Name: "consumer.session.timeout.ms", Value: text("1")})
	list := func(version int16, types ...int8) map[int8]int {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.Version, req.ResourceTypes = version, types
		resp := do[*kmsg.ListConfigResourcesResponse](w, req)
		count := map[int8]int{-1: int(resp.ErrorCode)}
		for _, r := range resp.ConfigResources {
			count[r.Type]++
		}
		return count
	}
	if got := list(1); got[2] != 1 || got[4] != 3 || got[8] != 3 || got[32] != 1 || got[-1] != 0 {
		t.Errorf("all: %v", got)
	}
	if got := list(1, 32); got[32] != 1 || got[2] != 0 {
		t.Errorf("groups: %v", got)
	}
	if got := list(1, 2, 9); got[-1] != 35 || got[2] != 0 {
		t.Errorf("an unknown type: %v", got)
	}
	if got := list(0); len(got) != 1 {
		t.Errorf("version 0: %v", got)
	}
}
