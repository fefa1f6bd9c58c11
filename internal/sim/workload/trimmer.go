package workload

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Trimmer deletes the oldest records of partitions (DeleteRecords), where the
// options allow it. It keeps away where topics come again under their names: the
// request could hit another one than it means.
type Trimmer struct {
	Kept bool // no topic is deleted beside it
}

// Name is that of the workload.
func (t Trimmer) Name() string {
	if t.Kept {
		return "admin-trim-kept"
	}
	return "admin-trim"
}

// Run goes on until ctx ends.
func (Trimmer) Run(ctx context.Context, env *Env) {
	if !env.Options.DeleteRecords || env.Options.DeleteTopics {
		return
	}
	c := newClient(env)
	defer c.close()
	for env.restLong(ctx) {
		s, ok := c.somewhere(ctx)
		if !ok {
			return
		}
		p := s.position()
		end, ok := c.listOffset(ctx, p, latest, 0)
		if !ok || end == 0 {
			continue
		}
		upTo := env.Rand.Int64N(end + 1)
		op := env.trims(p, upTo)
		code := c.trim(ctx, s, upTo)
		env.trimmed(op, code)
		c.said("delete records of", s, code)
	}
}

func (c *client) trim(ctx context.Context, s site, upTo int64) model.Error {
	m := c.meta.Partition(s.topic.Name, s.topic.ID, s.partition)
	if m == nil {
		return model.ErrUnknownTopicOrPartition
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = int32(adminTimeout.Milliseconds())
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = s.topic.Name
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = s.partition, upTo
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	answer, err := c.askBroker(ctx, m.Leader, req, adminTimeout)
	if err != nil {
		return noCode
	}
	return model.Error(answer.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode)
}
