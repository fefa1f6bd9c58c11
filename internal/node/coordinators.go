package node

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidemark-log/tidemark/internal/api"
	"github.com/tidemark-log/tidemark/internal/coordinator"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/replicas"
	"github.com/tidemark-log/tidemark/internal/task"
)

// groups is the group coordinator as api sees it.
type groups struct{ c *coordinator.Coordinator }

// Handle posts a group request.
func (g groups) Handle(r api.GroupRequest) {
	g.c.Handle(r.Req, r.ClientID, strings.TrimPrefix(r.Host, "/"), r.Reply)
}

// groupHost is this broker as its coordinator sees it: the partitions of
// __consumer_offsets in the replicas loop.
type groupHost struct {
	l     *replicas.Loop
	rt    *task.Runtime
	image func() *image.Image
}

// find returns the replica of a partition, or nil. The old one of a topic that was
// made anew is not it.
func (h groupHost) find(partition int32) *api.Hosted {
	t := h.image().TopicByName(coordinator.Topic)
	if t == nil {
		return nil
	}
	return h.l.ByID(model.TopicIDPartition{TopicID: t.ID, Partition: partition})
}

// askAgain is the pause between two looks at a leadership that is not settled.
const askAgain = 2 * time.Millisecond

// Bounds waits until this broker serves the partition in the epoch with nothing
// in flight.
func (h groupHost) Bounds(ctx context.Context, n int32, epoch model.Epoch) (start, end model.Offset, err model.Error) {
	for {
		if hosted := h.find(n); hosted != nil { // else the metadata is ahead of the loop
			var settled bool
			if start, end, err, settled = h.l.Settled(hosted, epoch); settled {
				return start, end, err
			}
		}
		if !h.rt.Sleep(ctx, askAgain) {
			return 0, 0, model.ErrNotLeaderOrFollower
		}
	}
}

// Read returns whole batches of the local log.
func (h groupHost) Read(n int32, from, end model.Offset, maxBytes int) ([]byte, error) {
	hosted := h.find(n)
	if hosted == nil {
		return nil, fmt.Errorf("%s-%d is not hosted here", coordinator.Topic, n)
	}
	s, err := hosted.Log.Read(from, maxBytes, end, true)
	if err != nil {
		return nil, err
	}
	defer s.Release()
	if s.Len == 0 {
		return nil, nil
	}
	buf := make([]byte, s.Len)
	if _, err := s.File.ReadAt(buf, s.Pos); err != nil && err != io.EOF {
		return nil, err
	}
	return buf, nil
}

// Append writes one batch of the coordinator (R2.21).
func (h groupHost) Append(n int32, epoch model.Epoch, batch []byte, done func(model.Error)) {
	hosted := h.find(n)
	if hosted == nil {
		done(model.ErrNotLeaderOrFollower)
		return
	}
	h.l.Append(hosted, epoch, batch, done)
}
