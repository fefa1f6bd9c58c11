package node

import (
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/storage"
)

// strays tells logs that the metadata took away while this broker was down from
// logs that nobody can explain. The first are deleted; the others may be
// somebody's mistake and are kept under another name, as Kafka keeps them.
type strays struct {
	seen *image.Image                        // the last image before our registration
	ours map[model.TopicIDPartition]struct{} // what some image gave to this broker
}

func newStrays() strays {
	return strays{seen: image.New(), ours: map[model.TopicIDPartition]struct{}{}}
}

// remember takes an image from before our registration: what this node knew of
// the metadata when it stopped comes first, then what happened since.
func (s *strays) remember(img *image.Image, id model.BrokerID) {
	d := image.Diff(s.seen, img)
	s.seen = img
	for i := range d.Topics {
		t := d.Topics[i].New
		if t == nil {
			continue
		}
		for _, n := range d.Topics[i].Partitions {
			if hosts(t.Partitions[n].Replicas, id) {
				s.ours[model.TopicIDPartition{TopicID: t.ID, Partition: n}] = struct{}{}
			}
		}
	}
}

// setAside takes a log out that nobody hosts. It runs in the log writer.
func (s *strays) setAside(dir *storage.Dir, log *storage.Log) error {
	tp := log.TP()
	if _, ok := s.ours[model.TopicIDPartition{TopicID: log.TopicID(), Partition: tp.Partition}]; ok {
		return dir.Delete(tp)
	}
	return dir.Stray(tp)
}

// sweep sets aside the logs that nobody hosts by the first image, which has
// passed our own registration: what was deleted or moved away while we were down.
func (a *applier) sweep() error {
	if a.swept {
		return nil
	}
	a.swept = true
	for _, log := range a.dir.Logs() {
		if a.replicas.ByName(log.TP()) != nil {
			continue
		}
		if err := a.replicas.Write(func() error { return a.strays.setAside(a.dir, log) }); err != nil {
			return fmt.Errorf("set the log of %s aside: %w", log.TP(), err)
		}
	}
	return nil
}
