package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/metalog"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
)

// ours and old are the directories of broker 1: that of today and that of before.
var ours, old = model.UUID{0xaa}, model.UUID{0xbb}

// registrar is the controllers, and the metadata that follows from what they are
// told.
type registrar struct {
	*directories
	t       *testing.T
	began   time.Time
	img     *image.Image
	refuse  model.Error // answers everything
	deaf    bool        // takes what it is told and does not write it down
	told    []string    // when, and what
	batches []int
}

// startDirectories runs the task of broker 1 beside a registrar.
func startDirectories(t *testing.T, rs ...metalog.Record) *registrar {
	r := &registrar{t: t, began: time.Now(), img: image.New()}
	r.directories = &directories{id: 1, own: ours, epoch: func() model.BrokerEpoch { return 7 }, limit: time.Second,
		send: r.answer, log: slog.New(slog.DiscardHandler), differ: (*task.Runtime)(nil).NewSignal()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	r.become(append([]metalog.Record{&metalog.FeatureLevel{Name: "metadata.version", FeatureLevel: 25}}, rs...)...)
	return r
}

// become applies records to the metadata.
func (r *registrar) become(rs ...metalog.Record) {
	was := r.img
	r.img = was.Apply(rs, was.End()+model.Offset(len(rs)), 1)
	r.note(image.Diff(was, r.img))
}

func (r *registrar) answer(_ context.Context, req kmsg.Request) (kmsg.Response, error) {
	a := req.(*kmsg.AssignReplicasToDirsRequest)
	resp := req.ResponseKind().(*kmsg.AssignReplicasToDirsResponse)
	if a.BrokerID != 1 || a.BrokerEpoch != 7 || len(a.Directories) != 1 || a.Directories[0].ID != ours {
		r.t.Errorf("the request is %+v", a)
	}
	var names []string
	var rs []metalog.Record
	for _, topic := range a.Directories[0].Topics {
		for _, p := range topic.Partitions {
			names = append(names, fmt.Sprintf("%d-%d", topic.TopicID[0], p.Partition))
			if part := r.img.Partition(topic.TopicID, p.Partition); part != nil {
				dirs := slices.Clone(part.Directories)
				dirs[slices.Index(part.Replicas, 1)] = ours
				c := metalog.NewPartitionChange(topic.TopicID, p.Partition)
				c.Directories = dirs
				rs = append(rs, c)
			}
		}
	}
	r.told = append(r.told, fmt.Sprintf("%v %s", time.Since(r.began), strings.Join(names, " ")))
	r.batches = append(r.batches, len(names))
	resp.ErrorCode = r.refuse.Code()
	if r.refuse == model.None && !r.deaf {
		r.become(rs...)
	}
	return resp, nil
}

// after lets time pass and compares what was told since the last time.
func (r *registrar) after(d time.Duration, want ...string) {
	r.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if !slices.Equal(r.told, want) {
		r.t.Errorf("told:\n%s\nnot:\n%s", strings.Join(r.told, "\n"), strings.Join(want, "\n"))
	}
	r.told = nil
}

// lying is the records of a topic whose replicas on broker 1 lie in dirs, one
// partition each; broker 2 has them too.
func lying(id byte, dirs ...model.UUID) []metalog.Record {
	rs := []metalog.Record{&metalog.Topic{Name: fmt.Sprint("topic-", id), TopicID: model.UUID{id}}}
	for n, dir := range dirs {
		rs = append(rs, &metalog.Partition{TopicID: model.UUID{id}, PartitionID: int32(n), Replicas: []model.BrokerID{2, 1}, ISR: []model.BrokerID{2},
			Leader: 2, Directories: []model.UUID{{0xcc}, dir}})
	}
	return rs
}

func TestABrokerWhoseDirectoryIsKnownSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startDirectories(t, lying(1, ours, ours)...)
		r.become(&metalog.Topic{Name: "elsewhere", TopicID: model.UUID{9}}, &metalog.Partition{TopicID: model.UUID{9}, Replicas: []model.BrokerID{2, 3},
			ISR: []model.BrokerID{2}, Leader: 2, Directories: []model.UUID{{0xcc}, {0xdd}}})
		r.after(time.Hour)
	})
}

func TestABrokerSaysWhereItsReplicasLieUntilTheMetadataShowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startDirectories(t, slices.Concat(lying(2, old, ours, metalog.DirUnassigned), lying(1, metalog.DirMigrating, metalog.DirLost))...)
		r.after(time.Hour, "0s 1-0 1-1 2-0 2-2")
		r.become(lying(3, old)...)
		r.after(time.Hour, "1h0m0s 3-0")

		r.deaf = true
		r.become(lying(4, old)...)
		r.after(time.Second, "2h0m0s 4-0", "2h0m0.1s 4-0", "2h0m0.3s 4-0", "2h0m0.7s 4-0")
		r.deaf = false
		r.after(time.Hour, "2h0m1.5s 4-0")
	})
}

func TestARefusedDirectoryIsToldAgainUntilThePartitionIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startDirectories(t)
		r.refuse = model.ErrStaleBrokerEpoch
		r.become(lying(1, old)...)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(r.told); n < 360 || n > 370 {
			t.Errorf("told %d times in an hour: every 10 s is enough", n)
		}
		r.told = nil
		r.become(&metalog.RemoveTopic{TopicID: model.UUID{1}})
		r.after(time.Hour)

		r.refuse = model.None
		r.become(lying(2, old)...)
		r.after(time.Hour, "2h0m0s 2-0")
	})
}

func TestDirectoriesAreToldInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startDirectories(t, lying(1, slices.Repeat([]model.UUID{old}, 2*maxAssignments+1)...)...)
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []int{maxAssignments, maxAssignments, 1}; !slices.Equal(r.batches, want) {
			t.Errorf("batches of %v, not %v", r.batches, want)
		}
	})
}

func TestControllersThatKeepNoDirectoriesAreToldNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startDirectories(t, append(lying(1, metalog.DirMigrating), &metalog.FeatureLevel{Name: "metadata.version", FeatureLevel: featureDirectories - 1})...)
		r.after(time.Hour)
		r.become(&metalog.FeatureLevel{Name: "metadata.version", FeatureLevel: featureDirectories})
		r.after(time.Hour, "1h0m0s 1-0")
	})
}
