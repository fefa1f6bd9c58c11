package api

import (
	"context"
	"log/slog"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// incrementalAlterConfigs serves key 44, versions 0 and 1: log levels are set on
// this process (KIP-412), everything else by the controller. The answers come
// in the order of the request.
func (a *API) incrementalAlterConfigs(ctx context.Context, r *transport.Request, req *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	forward := kmsg.NewPtrIncrementalAlterConfigsRequest()
	forward.Version, forward.ValidateOnly = req.Version, req.ValidateOnly
	for i := range req.Resources {
		if int8(req.Resources[i].ResourceType) != brokerLogger {
			forward.Resources = append(forward.Resources, req.Resources[i])
		}
	}
	if len(forward.Resources) == len(req.Resources) {
		return a.forward(ctx, r, req)
	}
	var relayed []kmsg.IncrementalAlterConfigsResponseResource
	if len(forward.Resources) > 0 {
		if resp, ok := a.forward(ctx, r, forward).(*kmsg.IncrementalAlterConfigsResponse); ok {
			relayed = resp.Resources
		}
	}
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	for i := range req.Resources {
		r := &req.Resources[i]
		if int8(r.ResourceType) == brokerLogger {
			resp.Resources = append(resp.Resources, a.setLoggers(r, req.ValidateOnly))
		} else if len(relayed) > 0 {
			resp.Resources = append(resp.Resources, relayed[0])
			relayed = relayed[1:]
		}
	}
	return resp
}

// setLoggers changes the log level of this process, if all of a resource is
// sound.
func (a *API) setLoggers(r *kmsg.IncrementalAlterConfigsRequestResource, validateOnly bool) kmsg.IncrementalAlterConfigsResponseResource {
	out := kmsg.NewIncrementalAlterConfigsResponseResource()
	out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
	refuse := func(err model.Error, why string) kmsg.IncrementalAlterConfigsResponseResource {
		out.ErrorCode, out.ErrorMessage = err.Code(), &why
		return out
	}
	if why := a.wrongBroker(r.ResourceName); why != "" {
		return refuse(model.ErrInvalidRequest, why)
	}
	var set *slog.Level
	for i := range r.Configs {
		c := &r.Configs[i]
		if c.Name != rootLogger || a.Loggers == nil {
			return refuse(model.ErrInvalidConfig, "Logger "+c.Name+" does not exist; the only one is "+rootLogger+".")
		}
		if c.Op != kmsg.IncrementalAlterConfigOpSet || c.Value == nil {
			return refuse(model.ErrInvalidRequest, "A log level can only be set, not taken away.")
		}
		level, ok := slogLevel(*c.Value)
		if !ok {
			return refuse(model.ErrInvalidConfig, "Log level "+*c.Value+" is none of TRACE, DEBUG, INFO, WARN, ERROR, FATAL.")
		}
		set = &level
	}
	if set != nil && !validateOnly {
		a.Loggers.Set(*set)
	}
	return out
}

func slogLevel(kafka string) (slog.Level, bool) {
	switch strings.ToUpper(kafka) {
	case "TRACE", "DEBUG":
		return slog.LevelDebug, true
	case "INFO":
		return slog.LevelInfo, true
	case "WARN":
		return slog.LevelWarn, true
	case "ERROR", "FATAL":
		return slog.LevelError, true
	}
	return 0, false
}
