package api

import (
	"context"
	"log/slog"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// describeConfigs serves key 32, versions 1 to 4, for topics, this broker, the
// defaults of all brokers, the log levels of this broker and groups, from the
// table of configs and what the metadata log changed (KIP-133, 226, 412, 569;
// case B222). Errors per resource: UNKNOWN_TOPIC_OR_PARTITION,
// INVALID_TOPIC_EXCEPTION, INVALID_REQUEST.
func (a *API) describeConfigs(_ context.Context, _ *transport.Request, req *kmsg.DescribeConfigsRequest) kmsg.Response {
	img := a.Images.Image()
	resp := kmsg.NewPtrDescribeConfigsResponse()
	for i := range req.Resources {
		ask := &req.Resources[i]
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = ask.ResourceType, ask.ResourceName
		entries, err, why := a.configsOf(img, int8(ask.ResourceType), ask.ResourceName)
		if out.ErrorCode = err.Code(); err != model.None {
			out.ErrorMessage = text(why)
		}
		for j := range entries {
			if e := &entries[j]; len(ask.ConfigNames) == 0 || slices.Contains(ask.ConfigNames, e.Name) {
				out.Configs = append(out.Configs, describeEntry(e, req))
			}
		}
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

// dynamic is what the metadata log holds for this broker.
func (a *API) dynamic(img *image.Image) config.Dynamic {
	return config.Dynamic{
		Cluster: img.Config(metalog.ResourceBroker, ""),
		Broker:  img.Config(metalog.ResourceBroker, strconv.Itoa(int(a.ID))),
	}
}

func (a *API) configsOf(img *image.Image, kind int8, name string) ([]config.Entry, model.Error, string) {
	switch kind {
	case metalog.ResourceTopic:
		if img.TopicByName(name) == nil {
			err := missingTopic(name)
			return nil, err, err.Error()
		}
		return a.Config.DescribeTopic(a.dynamic(img), img.Config(kind, name)), model.None, ""
	case metalog.ResourceBroker:
		if name == "" {
			return config.DescribeDefaults(img.Config(kind, "")), model.None, ""
		}
		if why := a.wrongBroker(name); why != "" {
			return nil, model.ErrInvalidRequest, why
		}
		return a.Config.DescribeBroker(a.dynamic(img)), model.None, ""
	case brokerLogger:
		if why := a.wrongBroker(name); why != "" {
			return nil, model.ErrInvalidRequest, why
		}
		return a.loggers(), model.None, ""
	case metalog.ResourceGroup:
		if name == "" {
			return nil, model.ErrInvalidRequest, "A group must be named."
		}
		return a.Config.DescribeGroup(a.dynamic(img), img.Config(kind, name)), model.None, ""
	}
	return nil, model.ErrInvalidRequest, "Resources of type " + strconv.Itoa(int(kind)) + " have no configs here."
}

// wrongBroker says why a broker resource is not this broker, "" if it is.
func (a *API) wrongBroker(name string) string {
	id, err := strconv.Atoi(name)
	switch {
	case err != nil:
		return "The name of a broker resource must be the broker's id, not " + strconv.Quote(name) + "."
	case model.BrokerID(id) != a.ID:
		return "This is broker " + strconv.Itoa(int(a.ID)) + ", not " + name + ": ask that one."
	}
	return ""
}

// rootLogger is the one logger of this process, by Kafka's name for it.
const rootLogger = "root"

func (a *API) loggers() []config.Entry {
	if a.Loggers == nil {
		return nil
	}
	level := kafkaLevel(a.Loggers.Level())
	return []config.Entry{{
		Name: rootLogger, Value: &level, Type: config.String, Source: fromLogger,
		Doc: "The level below which this broker logs nothing.",
	}}
}

// fromLogger is the source of a log level, which is set on the process.
const fromLogger config.Source = 6

func kafkaLevel(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "DEBUG"
	case l < slog.LevelWarn:
		return "INFO"
	case l < slog.LevelError:
		return "WARN"
	}
	return "ERROR"
}

func describeEntry(e *config.Entry, req *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	out.Name, out.Value, out.ReadOnly, out.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
	out.Source, out.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	if e.Sensitive {
		out.Value = nil
	}
	if req.IncludeDocumentation && e.Doc != "" {
		out.Documentation = &e.Doc
	}
	if !req.IncludeSynonyms {
		return out
	}
	for i := range e.Synonyms {
		s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
		s.Name, s.Value, s.Source = e.Synonyms[i].Name, e.Synonyms[i].Value, kmsg.ConfigSource(e.Synonyms[i].Source)
		if e.Sensitive {
			s.Value = nil
		}
		out.ConfigSynonyms = append(out.ConfigSynonyms, s)
	}
	return out
}
