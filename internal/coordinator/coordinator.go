// Package coordinator runs the group coordinator of one broker: it hosts a shard
// for each partition of __consumer_offsets that the broker leads.
package coordinator

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/group"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/task"
)

// Topic holds the offsets and the membership of all groups.
const Topic = "__consumer_offsets"

// Host is what the coordinator needs of the broker it runs in. Partitions are
// those of Topic.
type Host interface {
	// Bounds waits until this broker serves the partition as its leader in the
	// epoch, with all its appends of before written, and returns log start and
	// log end offset. Error: NOT_LEADER_OR_FOLLOWER when that will not come,
	// or ctx ended.
	Bounds(ctx context.Context, partition int32, epoch model.Epoch) (start, end model.Offset, err model.Error)
	// Read returns whole batches of the local log from offset on and below end,
	// one at least, about maxBytes at most.
	Read(partition int32, from, end model.Offset, maxBytes int) ([]byte, error)
	// Append writes one batch to the partition if this broker leads it in the
	// epoch: with acks=1, so that min.insync.replicas does not refuse it. done
	// is called once, from any goroutine: with None when the high watermark
	// passed the batch in the same leadership, however long that takes (R2.21).
	// Batches are appended in the order of the calls; batch is not used after
	// done.
	Append(partition int32, epoch model.Epoch, batch []byte, done func(model.Error))
}

// Clock is where the coordinator reads the time.
type Clock interface {
	Now() model.Time
	Wall() model.Millis
}

// Options of a coordinator. Group needs no Topics, which the image tells, and no
// NewID unless ids must be the same in each run.
type Options struct {
	ID       model.BrokerID
	Group    group.Config
	MaxBatch int // max.message.bytes of Topic
	Host     Host
	Clock    Clock
	Log      *slog.Logger
	Runtime  *task.Runtime // nil: goroutines and the machine's clock
}

// loaders bounds how many partitions are read at the same time.
const loaders = 2

// Coordinator is the loop that owns the group shards led here. Others post to
// it: Handle and Apply may be called from any goroutine.
type Coordinator struct {
	id       model.BrokerID
	cfg      group.Config
	maxBatch int
	host     Host
	clock    Clock
	log      *slog.Logger
	rt       *task.Runtime
	inbox    *task.Queue[event]

	// img is what Apply saw last. The loop reads it, and loaders do.
	img atomic.Pointer[image.Image]

	shards  map[int32]*shard
	dirty   []*shard // with writes of this turn
	builder *record.Builder

	now  model.Time
	wall model.Millis

	loading int      // partitions that are being read
	waiting []*shard // for others to be read
	running *task.Group
}

// New returns a coordinator that leads nothing yet. Run spins it.
func New(o Options) *Coordinator {
	c := &Coordinator{
		id: o.ID, cfg: o.Group, maxBatch: o.MaxBatch, host: o.Host, clock: o.Clock, log: o.Log, rt: o.Runtime,
		inbox:  task.NewQueue[event](o.Runtime),
		shards: map[int32]*shard{}, builder: record.NewBuilder(record.PlainOptions()), running: o.Runtime.NewGroup(),
	}
	c.img.Store(image.New())
	c.cfg.Topics = topics{&c.img}
	if c.cfg.NewID == nil {
		c.cfg.NewID = newID
	}
	return c
}

// newID makes a random UUID in its usual form.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Run starts the loop; Close ends it.
func (c *Coordinator) Run() {
	c.running.Go("groups", c.loop)
}

// Close answers what waits, ends the loop and waits for it.
func (c *Coordinator) Close() {
	c.inbox.Close()
	c.running.Wait()
}

// Handle serves one of the group requests: keys 8, 9, 11 to 16, 42 and 47. It
// does not wait; reply is called once, from any goroutine, and must not block.
// Byte slices of req are used until then. host is the client's address without
// port. Errors as a whole: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
func (c *Coordinator) Handle(req kmsg.Request, clientID, host string, reply func(kmsg.Response)) {
	ev := &request{req: req, clientID: clientID, host: "/" + host, reply: reply}
	if !c.inbox.Post(ev) {
		reply(group.Refuse(req, model.ErrCoordinatorNotAvailable))
	}
}

// Apply takes a newer image: it loads the partitions that this broker leads
// from now on, lets go of those it does not, and drops offsets of deleted
// topics.
func (c *Coordinator) Apply(d *image.Delta) {
	c.img.Store(d.New)
	ev := &moved{}
	for i := range d.Topics {
		t := &d.Topics[i]
		switch {
		case t.New == nil && t.Old.Name != Topic:
			if ev.deleted == nil {
				ev.deleted = map[string]bool{}
			}
			ev.deleted[t.Old.Name] = true
		case t.New == nil:
			for _, n := range t.Partitions {
				ev.led = append(ev.led, leadership{partition: n})
			}
		case t.New.Name == Topic:
			for _, n := range t.Partitions {
				p := t.New.Partitions[n]
				ev.led = append(ev.led, leadership{partition: n, here: p.Leader == c.id, epoch: p.LeaderEpoch})
			}
		}
	}
	if len(ev.led) > 0 || ev.deleted != nil {
		c.inbox.Post(ev)
	}
}

// topics lets shards read the newest image.
type topics struct{ img *atomic.Pointer[image.Image] }

func (t topics) Partitions(topic string) int32 {
	if found := t.img.Load().TopicByName(topic); found != nil {
		return int32(len(found.Partitions))
	}
	return 0
}

func (t topics) Name(id model.UUID) (string, bool) {
	if found := t.img.Load().TopicByID(id); found != nil {
		return found.Name, true
	}
	return "", false
}

func (t topics) ID(topic string) (model.UUID, bool) {
	if found := t.img.Load().TopicByName(topic); found != nil {
		return found.ID, true
	}
	return model.UUID{}, false
}

// idle is how long the loop sleeps when no timer runs.
const idle = time.Hour
