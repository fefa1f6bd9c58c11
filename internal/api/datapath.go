package api

import (
	"sync"
	"time"

	"github.com/tidemark-log/tidemark/internal/config"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/core/sessions"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// DataPath serves Produce and Fetch, the two requests that carry records. Its
// fields are set before the first request and not changed.
type DataPath struct {
	Self     model.BrokerID
	Replicas Replicas
	Image    func() *image.Image
	// Topic is the effective configuration of a topic of the newest image. The
	// caller does not change it.
	Topic func(topic string) *config.Topic
	// Node is where a broker listens, on the listener of that name.
	Node func(id model.BrokerID, listener string) (wire.Node, bool)
	Now  func() model.Time
	Wall func() model.Millis
	// RackAware: the rack-aware replica selector is configured (KIP-392).
	RackAware bool
	// Meter counts records and bytes; nil counts nothing.
	Meter Meter
	// FetchMaxBytes is fetch.max.bytes of the broker, a bound of every answer.
	FetchMaxBytes int32

	// mu guards sessions, a cache that is held across no call out.
	mu       sync.Mutex
	sessions *sessions.Cache
	calls    sync.Pool
}

// Meter counts what producers, consumers and followers move. Its methods are
// called from many goroutines and must not block.
type Meter interface {
	Produced(records, bytes int)
	Refused(bytes int)
	Consumed(bytes int)
	SentToFollower(bytes int)
}

// evictAfter is how long a fetch session is safe from others (R0.1).
const evictAfter = 120 * time.Second

// Init makes the session cache. nextID gives candidates for session ids.
func (d *DataPath) Init(slots int, nextID func() int32) {
	d.sessions = sessions.New(sessions.Config{Slots: slots, EvictAfter: evictAfter, NextID: nextID,
		Ended: func(data any) { d.Replicas.Leave(data.(*Standing)) }})
}

// Sessions is the number of fetch sessions.
func (d *DataPath) Sessions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions.Len()
}

// internalTopic reports whether only the broker itself writes to the topic.
func internalTopic(name string) bool {
	return name == "__consumer_offsets" || name == "__transaction_state" || name == "__share_group_state"
}

// count tells the meter of bytes that are sent to a consumer or a follower.
func (d *DataPath) count(to model.BrokerID, bytes int) {
	switch {
	case d.Meter == nil:
	case to >= 0:
		d.Meter.SentToFollower(bytes)
	default:
		d.Meter.Consumed(bytes)
	}
}

// placeByName finds the replica that a request names by topic name, or says why
// not. The image says whose name it is: of a topic that was made anew, the old
// replica may be hosted for a moment still. A partition that exists but is not
// hosted here is led elsewhere.
func (d *DataPath) placeByName(img *image.Image, topic string, partition int32) (*Hosted, model.Error) {
	t := img.TopicByName(topic)
	if t == nil {
		return nil, model.ErrUnknownTopicOrPartition
	}
	return d.placeByID(img, t.ID, partition)
}

func (d *DataPath) placeByID(img *image.Image, topic model.UUID, partition int32) (*Hosted, model.Error) {
	if h := d.Replicas.ByID(model.TopicIDPartition{TopicID: topic, Partition: partition}); h != nil {
		return h, model.None
	}
	t := img.TopicByID(topic)
	switch {
	case t == nil:
		return nil, model.ErrUnknownTopicID
	case partition < 0 || int(partition) >= len(t.Partitions):
		return nil, model.ErrUnknownTopicOrPartition
	}
	return nil, model.ErrNotLeaderOrFollower
}

// leaderOf is what the image says about a partition's leader.
func leaderOf(t *image.Topic, partition int32) (model.BrokerID, model.Epoch) {
	if t == nil || partition < 0 || int(partition) >= len(t.Partitions) {
		return model.NoBroker, model.NoEpoch
	}
	p := t.Partitions[partition]
	return p.Leader, p.LeaderEpoch
}
