// Package api answers the requests of clients, one file per API key: it
// checks them, asks who decides, and puts the answer in Kafka's words.
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
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
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
}

// API serves one broker's requests. It implements transport.Handler.
type API struct {
	Options
	table  map[int16]func(*transport.Request)
	ids    idBlocks
	topics autoTopics

	stop    context.CancelFunc
	ctx     context.Context // ends with Close; bounds every wait
	started sync.WaitGroup  // goroutines of auto-creation
}

// New makes the API. Close ends what it started.
func New(o Options) *API {
	if o.Versions == nil {
		o.Versions = wire.BrokerVersions
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{Options: o, table: make(map[int16]func(*transport.Request))}
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.ids.init()
	a.register()
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

func (a *API) register() {
	if a.Data != nil {
		a.Handle(int16(kmsg.Produce), a.Data.Produce)
		a.Handle(int16(kmsg.Fetch), a.Data.Fetch)
	}
	a.Handle(int16(kmsg.ApiVersions), a.apiVersions)
	serve(a, kmsg.ListOffsets, a.listOffsets)
	serve(a, kmsg.Metadata, a.metadata)
	serve(a, kmsg.FindCoordinator, a.findCoordinator)
	serve(a, kmsg.DeleteRecords, a.deleteRecords)
	serve(a, kmsg.InitProducerID, a.initProducerID)
	serve(a, kmsg.OffsetForLeaderEpoch, a.offsetForLeaderEpoch)
	serve(a, kmsg.DescribeConfigs, a.describeConfigs)
	serve(a, kmsg.AlterConfigs, a.alterConfigs)
	serve(a, kmsg.IncrementalAlterConfigs, a.incrementalAlterConfigs)
	serve(a, kmsg.DescribeLogDirs, a.describeLogDirs)
	serve(a, kmsg.DescribeCluster, a.describeCluster)
	serve(a, kmsg.DescribeProducers, a.describeProducers)
	serve(a, kmsg.ListConfigResources, a.listConfigResources)
	serve(a, kmsg.DescribeTopicPartitions, a.describeTopicPartitions)
	for _, key := range forwarded {
		serve(a, key, a.forward)
	}
	for _, key := range groupKeys {
		a.Handle(int16(key), a.group)
	}
}

// call is a request whose handler may wait.
type call struct {
	*transport.Request
	ctx context.Context
}

// errClose is returned by a handler to have the connection closed.
var errClose = errors.New("the request does not decode to anything that has an answer")

// serve registers a handler that takes a decoded request and returns its
// answer, whose version is set here. A nil answer closes the connection.
func serve[Q kmsg.Request](a *API, key kmsg.Key, f func(call, Q) kmsg.Response) {
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
		resp := f(call{Request: r, ctx: a.ctx}, req)
		if resp == nil {
			r.CloseConn(errClose)
			return
		}
		resp.SetVersion(r.Header.Version)
		r.Reply(transport.Message(resp))
	})
}

// within bounds a wait by a timeout that a client asked for, in milliseconds.
func (c call) within(ms int32) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, time.Duration(max(ms, 0))*time.Millisecond)
}

// text is a pointer to a message, for nullable fields.
func text(s string) *string { return &s }
