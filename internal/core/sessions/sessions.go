// Package sessions keeps the incremental fetch sessions of one broker: what
// each client fetches, what it was last told (KIP-227, R3.23-R3.26).
package sessions

import (
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Epochs of a fetch request with a meaning of their own.
const (
	InitialEpoch int32 = 0  // full fetch, make a session
	FinalEpoch   int32 = -1 // full fetch without a session
)

// Key names a partition in a session: by topic name, or by topic id when the
// session uses ids (Fetch v13 and up). The other one is zero.
type Key struct {
	Topic     string
	TopicID   model.UUID
	Partition int32
}

// Wish is what a fetch request says about one partition.
type Wish struct {
	Offset      model.Offset
	LastEpoch   model.Epoch
	LeaderEpoch model.Epoch
	LogStart    model.Offset
	MaxBytes    int32
}

// Partition is one partition of a turn. Data belongs to the caller and lives as
// long as the partition stays in the session.
type Partition struct {
	Key  Key
	Wish Wish
	Data any

	sentHW       model.Offset
	sentLogStart model.Offset
}

// Request is the session part of a fetch request.
type Request struct {
	ID, Epoch  int32
	UsesIDs    bool // Fetch v13 and up
	Privileged bool // from a follower
	Wishes     []Partition
	Forget     []Key
}

// Result is what the answer says about one partition.
type Result struct {
	Err       model.Error
	Records   bool // some are sent
	Diverging bool
	Preferred bool // a preferred read replica is named
	HW        model.Offset
	LogStart  model.Offset
}

// Config bounds a Cache. NextID gives candidates for session ids; any value
// will do, taken ids are skipped.
type Config struct {
	Slots      int
	EvictAfter time.Duration
	NextID     func() int32
}

// Cache holds the sessions of a broker. It has one owner at a time.
type Cache struct{ cfg Config }

// New returns an empty cache.
func New(cfg Config) *Cache { return &Cache{cfg: cfg} }

// Turn is one request and its answer.
type Turn struct{}

// Begin opens a turn: it finds the session, applies the request to it. An error
// is the top-level error of the answer, with session id 0 and no partitions:
// FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
// FETCH_SESSION_TOPIC_ID_ERROR (R3.24). req.Wishes is kept.
func (c *Cache) Begin(now model.Time, req Request) (*Turn, model.Error) { return &Turn{}, model.None }

// Partitions returns all partitions to fetch, in the order to fetch them. The
// slice is valid until the turn ends.
func (t *Turn) Partitions() []*Partition { return nil }

// Changed returns the partitions that this request added or changed.
func (t *Turn) Changed() []*Partition { return nil }

// Answer ends the turn. results are parallel to Partitions. include(i) is
// called for each partition that goes into the answer, in order. It returns the
// session id of the answer, or INVALID_FETCH_SESSION_EPOCH when a newer request
// overtook this one; the answer is empty then.
func (c *Cache) Answer(now model.Time, t *Turn, results []Result, include func(i int)) (int32, model.Error) {
	return 0, model.None
}

// Len is the number of sessions.
func (c *Cache) Len() int { return 0 }
