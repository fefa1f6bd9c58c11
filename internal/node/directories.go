package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
)

// directories tells the controllers where the replicas of this broker lie, when
// the metadata has it otherwise (KIP-858): the disk was replaced, so that the
// directory has another id, or the controller left the place to us. Until the
// metadata names a directory of ours, a replica that is caught up may be kept
// from leading (R6.2). A start with the directory that the metadata knows sends
// nothing.
type directories struct {
	rt     *task.Runtime
	id     model.BrokerID
	own    model.UUID // the one directory of this broker
	epoch  func() model.BrokerEpoch
	send   func(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	limit  time.Duration // of one request
	log    *slog.Logger
	differ *task.Signal // raised when the metadata may name another directory

	img atomic.Pointer[image.Image] // the newest that the replicas follow
}

const (
	// maxAssignments is how many replicas one request may name; Kafka's limit.
	maxAssignments = 2250
	// featureDirectories is the level of metadata.version, 3.7-IV2, from which
	// the controllers keep directories.
	featureDirectories = 17
	// The pause between two rounds doubles from the first to the last, as Kafka's.
	firstAssignPause = 100 * time.Millisecond
	lastAssignPause  = 10 * time.Second
)

// note is called with every change that the replicas follow.
func (d *directories) note(delta *image.Delta) {
	d.img.Store(delta.New)
	if delta.Features || d.misplacedIn(delta) {
		d.differ.Raise()
	}
}

// misplacedIn reports whether a changed partition names another directory.
func (d *directories) misplacedIn(delta *image.Delta) bool {
	for i := range delta.Topics {
		t := delta.Topics[i].New
		if t == nil {
			continue
		}
		for _, n := range delta.Topics[i].Partitions {
			if d.misplaced(t.Partitions[n]) {
				return true
			}
		}
	}
	return false
}

// misplaced reports whether the metadata has our replica of p elsewhere.
func (d *directories) misplaced(p *image.Partition) bool {
	for i, id := range p.Replicas {
		if id == d.id {
			return p.Directories[i] != d.own
		}
	}
	return false
}

// run is the task; it ends with ctx.
func (d *directories) run(ctx context.Context) {
	w := d.rt.NewWaiter()
	for w.Wait(ctx, task.Forever, d.differ) != task.Ended {
		pause := firstAssignPause
		for d.round(ctx) {
			if !d.rt.Sleep(ctx, pause) {
				return
			}
			pause = min(2*pause, lastAssignPause)
		}
	}
}

// round tells of every replica that the metadata has elsewhere, by topic name and
// partition. It reports whether there was one: then a later round has to see
// whether the metadata now shows it.
func (d *directories) round(ctx context.Context) bool {
	img := d.img.Load()
	if img.Feature("metadata.version") < featureDirectories {
		return false
	}
	req, count := d.request(), 0
	found := false
	for t, n := range img.PartitionsOf(d.id) {
		if !d.misplaced(t.Partitions[n]) {
			continue
		}
		found = true
		add(req, t.ID, n)
		if count++; count == maxAssignments {
			if !d.tell(ctx, req, count) {
				return true
			}
			req, count = d.request(), 0
		}
	}
	if count > 0 {
		d.tell(ctx, req, count)
	}
	return found
}

// request is one that names no replica yet.
func (d *directories) request() *kmsg.AssignReplicasToDirsRequest {
	req := kmsg.NewPtrAssignReplicasToDirsRequest()
	req.BrokerID, req.BrokerEpoch = int32(d.id), int64(d.epoch())
	dir := kmsg.NewAssignReplicasToDirsRequestDirectory()
	dir.ID = d.own
	req.Directories = append(req.Directories, dir)
	return req
}

// add names one more replica. Those of a topic come one after the other.
func add(req *kmsg.AssignReplicasToDirsRequest, topic model.UUID, n int32) {
	dir := &req.Directories[0]
	if last := len(dir.Topics) - 1; last < 0 || dir.Topics[last].TopicID != topic {
		t := kmsg.NewAssignReplicasToDirsRequestDirectoryTopic()
		t.TopicID = topic
		dir.Topics = append(dir.Topics, t)
	}
	p := kmsg.NewAssignReplicasToDirsRequestDirectoryTopicPartition()
	p.Partition = n
	t := &dir.Topics[len(dir.Topics)-1]
	t.Partitions = append(t.Partitions, p)
}

// tell sends one request. It reports whether the controllers took it, if not for
// every replica: those that they did not take are seen by the next round, unless
// they are gone by then.
func (d *directories) tell(ctx context.Context, req *kmsg.AssignReplicasToDirsRequest, count int) bool {
	try, cancel := d.rt.WithTimeout(ctx, d.limit)
	defer cancel()
	resp, err := d.send(try, req)
	if err == nil {
		err = refusal(resp.(*kmsg.AssignReplicasToDirsResponse))
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		d.log.Warn("the controllers do not note where replicas lie: asking again", "replicas", count, "error", err)
		return false
	}
	d.log.Info("the controllers were told where replicas lie", "replicas", count, "directory", d.own.String())
	return true
}

// refusal is why a request was refused as a whole; nil if it was not.
func refusal(r *kmsg.AssignReplicasToDirsResponse) error {
	if r.ErrorCode != 0 {
		return fmt.Errorf("assign replicas to directories: %w", model.Error(r.ErrorCode))
	}
	return nil
}
