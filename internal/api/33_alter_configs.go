package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/api/refusal"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// alterConfigs serves key 33, versions 0 to 2, which replaces all configs of a
// resource: the controller decides. Log levels cannot be replaced so, as in
// Kafka: INVALID_REQUEST for such a resource.
func (a *API) alterConfigs(ctx context.Context, r *transport.Request, req *kmsg.AlterConfigsRequest) kmsg.Response {
	for i := range req.Resources {
		if int8(req.Resources[i].ResourceType) == brokerLogger {
			return refusal.Of(req, model.ErrInvalidRequest,
				"Log levels are changed with IncrementalAlterConfigs, in a request of their own.")
		}
	}
	return a.forward(ctx, r, req)
}
