package api

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/partition"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// Images is where the newest metadata image of this broker comes from.
type Images interface {
	Image() *image.Image
}

// Controller reaches the active controller.
type Controller interface {
	// Active is the active controller and its epoch; model.NoBroker when none
	// is known.
	Active() (model.BrokerID, model.Epoch)
	// Forward has the active controller answer req, and looks for another one
	// until ctx ends.
	Forward(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
}

// Queries asks the loop that owns the partitions hosted here. Each call fills
// the answers of all asks in and returns; ctx bounds the wait. An ask that the
// loop did not come to keeps its Err, which callers preset.
type Queries interface {
	// Bounds answers what ListOffsets may see (R9.5, R9.6).
	Bounds(ctx context.Context, asks []BoundQuery)
	// EpochEnds answers OffsetForLeaderEpoch (R4.23).
	EpochEnds(ctx context.Context, asks []EpochQuery)
	// DeleteRecords raises log starts and waits until all live replicas have
	// followed or ctx ends, which is REQUEST_TIMED_OUT (R3.27).
	DeleteRecords(ctx context.Context, asks []DeleteQuery)
}

// BoundQuery asks for the bounds of one partition.
type BoundQuery struct {
	Hosted    *Hosted
	Current   model.Epoch // current leader epoch of the caller; NoEpoch when it sent none
	Isolation partition.Isolation
	// AnyReplica lets a follower answer by its own marks: the debugging replica
	// id -2.
	AnyReplica bool

	// The answer. Err may be OFFSET_NOT_AVAILABLE with all bounds set: latest
	// must not be told, nor that a lookup by time found nothing.
	Err        model.Error
	Bound      model.Offset // nothing at or above it is seen
	Epoch      model.Epoch  // leader epoch of this replica
	LogStart   model.Offset
	StartEpoch model.Epoch // of the record at LogStart; NoEpoch when unknown
}

// EpochQuery asks where an epoch ended.
type EpochQuery struct {
	Hosted  *Hosted
	Current model.Epoch
	Epoch   model.Epoch

	Err model.Error
	End model.EpochEnd // UndefinedEpochEnd with an error
}

// DeleteQuery asks to raise one log start. Offset -1 means the HW.
type DeleteQuery struct {
	Hosted *Hosted
	Offset model.Offset

	Err          model.Error
	LowWatermark model.Offset // UnknownOffset with an error
}

// Coordinator serves the requests of consumer groups whose offsets partition
// this broker leads; it answers NOT_COORDINATOR for others.
type Coordinator interface {
	// Handle serves one of keys 8, 9, 11 to 16, 42 and 47. It does not wait:
	// reply is called once, from any goroutine.
	Handle(r GroupRequest)
}

// GroupRequest is a group request on its way to the coordinator. Byte slices of
// Req alias the frame: they are valid until Reply was called.
type GroupRequest struct {
	Req      kmsg.Request
	ClientID string
	Host     string // address of the client without port, as Kafka shows it: /127.0.0.1
	Listener string
	Reply    func(kmsg.Response)
}

// LogDir is the state of the log directory for DescribeLogDirs.
type LogDir struct {
	Path          string // absolute
	Err           model.Error
	Total, Usable int64 // bytes of its file system; -1 unknown
	Logs          []*storage.Log
}

// Loggers is how the levels of this process's log are seen and changed
// (resource type 8, KIP-412). *slog.LevelVar is one.
type Loggers interface {
	Level() slog.Level
	Set(slog.Level)
}
