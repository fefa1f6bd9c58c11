// Package api answers the requests of clients.
//
// There is one file per API key: it checks a request, asks who decides, and
// puts the answer in Kafka's words.
//
// A handler runs in the goroutine of its connection's reader. Produce, Fetch
// and the group requests post and return; all others may wait for a controller
// or a loop, since nothing else of the connection is handed over meanwhile.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// Options is what the API of one broker needs.
type Options struct {
	ID        model.BrokerID
	ClusterID string
	Config    *config.Config
	// Features is what this broker supports.
	Features []image.FeatureRange
	// Versions is what its listeners serve; BrokerVersions by default.
	Versions *wire.Versions

	Images      Images
	Controller  Controller
	Queries     Queries
	Coordinator Coordinator
	// Data serves Produce and Fetch.
	Data *DataPath
	// LogDir describes the log directory of this broker.
	LogDir func() LogDir
	// Epoch is the broker epoch of this broker's registration.
	Epoch func() model.BrokerEpoch
	// Loggers changes the level of the log; nil has no loggers.
	Loggers Loggers
	Log     *slog.Logger
	// Runtime is what waits; nil: goroutines and the machine's clock.
	Runtime *task.Runtime
}

// API serves one broker's requests. It implements transport.Handler.
type API struct {
	Options
	table  map[int16]func(*transport.Request)
	ids    idBlocks
	topics autoTopics
	all    allTopics

	stop    context.CancelFunc // ends every wait of a handler
	started *task.Group        // of auto-creation
}

// New makes the API. Close ends what it started.
func New(o Options) *API {
	if o.Versions == nil {
		o.Versions = wire.BrokerVersions
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{Options: o, table: make(map[int16]func(*transport.Request)), started: o.Runtime.NewGroup()}
	ctx, stop := o.Runtime.WithCancel(context.Background())
	a.stop = stop
	a.ids.init(o.Runtime)
	a.register(ctx)
	return a
}

// Close ends every wait of a handler with an error answer.
func (a *API) Close() {
	a.stop()
	a.started.Wait()
}

// Handle adds or replaces the handler of a key, before the first request.
func (a *API) Handle(key int16, serve func(*transport.Request)) { a.table[key] = serve }

// Serve answers one request.
func (a *API) Serve(r *transport.Request) {
	serve, ok := a.table[r.Header.Key]
	if !ok {
		r.CloseConn(fmt.Errorf("api key %d has no handler", r.Header.Key))
		return
	}
	serve(r)
}

func (a *API) register(ctx context.Context) {
	if a.Data != nil {
		a.Handle(int16(kmsg.Produce), a.Data.Produce)
		a.Handle(int16(kmsg.Fetch), a.Data.Fetch)
	}
	a.Handle(int16(kmsg.ApiVersions), a.apiVersions)
	serve(ctx, a, kmsg.ListOffsets, a.listOffsets)
	serve(ctx, a, kmsg.Metadata, a.metadata)
	serve(ctx, a, kmsg.FindCoordinator, a.findCoordinator)
	serve(ctx, a, kmsg.DeleteRecords, a.deleteRecords)
	serve(ctx, a, kmsg.InitProducerID, a.initProducerID)
	serve(ctx, a, kmsg.OffsetForLeaderEpoch, a.offsetForLeaderEpoch)
	serve(ctx, a, kmsg.DescribeConfigs, a.describeConfigs)
	serve(ctx, a, kmsg.AlterConfigs, a.alterConfigs)
	serve(ctx, a, kmsg.IncrementalAlterConfigs, a.incrementalAlterConfigs)
	serve(ctx, a, kmsg.DescribeLogDirs, a.describeLogDirs)
	serve(ctx, a, kmsg.DescribeCluster, a.describeCluster)
	serve(ctx, a, kmsg.DescribeProducers, a.describeProducers)
	serve(ctx, a, kmsg.ListConfigResources, a.listConfigResources)
	serve(ctx, a, kmsg.DescribeTopicPartitions, a.describeTopicPartitions)
	for _, key := range forwarded {
		serve(ctx, a, key, a.forward)
	}
	for _, key := range groupKeys {
		a.Handle(int16(key), a.group)
	}
}

// errClose is returned by a handler to have the connection closed.
var errClose = errors.New("the request does not decode to anything that has an answer")

// serve registers a handler that takes a decoded request and returns its
// answer, whose version is set here. It may wait as long as ctx lasts. A nil
// answer closes the connection.
func serve[Q kmsg.Request](ctx context.Context, a *API, key kmsg.Key,
	f func(ctx context.Context, r *transport.Request, req Q) kmsg.Response) {
	a.Handle(int16(key), func(r *transport.Request) {
		req, ok := wire.NewRequest(r.Header.Key, r.Header.Version).(Q)
		if !ok {
			r.CloseConn(errClose)
			return
		}
		if err := req.ReadFrom(r.Body); err != nil {
			r.CloseConn(fmt.Errorf("decode %s version %d: %w", kmsg.NameForKey(r.Header.Key), r.Header.Version, err))
			return
		}
		resp := f(ctx, r, req)
		if resp == nil {
			r.CloseConn(errClose)
			return
		}
		resp.SetVersion(r.Header.Version)
		r.Reply(transport.Message(resp))
	})
}

// within bounds a wait by a timeout that a client asked for, in milliseconds.
func (a *API) within(ctx context.Context, ms int32) (context.Context, context.CancelFunc) {
	return a.Runtime.WithTimeout(ctx, time.Duration(max(ms, 0))*time.Millisecond)
}

// text is a pointer to a message, for nullable fields.
func text(s string) *string { return &s }
