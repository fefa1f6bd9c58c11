package api

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// brokerLogger is the resource type of the log levels of a broker (KIP-412).
const brokerLogger int8 = 8

// listedResources are the types that ListConfigResources knows, in the order of
// its answer.
var listedResources = []int8{
	metalog.ResourceTopic, metalog.ResourceBroker, brokerLogger, metalog.ResourceClientMetrics, metalog.ResourceGroup,
}

// listConfigResources serves key 74, versions 0 and 1: the names of what has or
// can have configs (KIP-1142). Version 0 asks for client metrics only. Errors:
// UNSUPPORTED_VERSION for a type that it does not know.
func (a *API) listConfigResources(_ context.Context, _ *transport.Request, req *kmsg.ListConfigResourcesRequest) kmsg.Response {
	resp := kmsg.NewPtrListConfigResourcesResponse()
	types := req.ResourceTypes
	switch {
	case req.Version == 0:
		types = []int8{metalog.ResourceClientMetrics}
	case len(types) == 0:
		types = listedResources
	}
	img := a.Images.Image()
	for _, kind := range listedResources {
		if slices.Contains(types, kind) {
			for _, name := range resourceNames(img, kind) {
				out := kmsg.NewListConfigResourcesResponseConfigResource()
				out.Name, out.Type = name, kind
				resp.ConfigResources = append(resp.ConfigResources, out)
			}
		}
	}
	for _, kind := range types {
		if !slices.Contains(listedResources, kind) {
			resp.ErrorCode, resp.ConfigResources = model.ErrUnsupportedVersion.Code(), nil
		}
	}
	return resp
}

func resourceNames(img *image.Image, kind int8) []string {
	var names []string
	switch kind {
	case metalog.ResourceTopic:
		for t := range img.Topics() {
			names = append(names, t.Name)
		}
	case metalog.ResourceBroker, brokerLogger:
		for _, b := range img.Brokers() {
			names = append(names, strconv.Itoa(int(b.ID)))
		}
	default:
		for name := range img.ConfigNames(kind) {
			names = append(names, name)
		}
	}
	return names
}
