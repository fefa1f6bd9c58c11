package workload

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/record"
	"github.com/tidemark-log/tidemark/internal/sim/workload/metadata"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
)

// Own is a workload that a user brings as a function. An error that it returns
// fails the run, but for one that says only that its context ended.
type Own struct {
	Title string
	Do    func(ctx context.Context, c *Client) error
}

// Name is that of the workload.
func (o Own) Name() string { return o.Title }

// Run calls the function.
func (o Own) Run(ctx context.Context, env *Env) {
	c := &Client{c: newClient(env)}
	defer c.c.close()
	err := o.Do(ctx, c)
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return
	}
	if env.Failed == nil {
		panic(err)
	}
	env.Failed(err)
}

// Client is the client of an Own workload: plain calls, each of which waits for
// its answer and tells the history. It serves one task.
type Client struct {
	c     *client
	reads []*reader // one for each partition that was read
}

// ErrInDoubt says that a record may have been written, now or later, or not.
var ErrInDoubt = errors.New("the record may be written or not")

// Env is the client's world.
func (c *Client) Env() *Env { return c.c.env }

// Note tells the trace.
func (c *Client) Note(format string, args ...any) { c.c.env.note(format, args...) }

// Create creates a topic, unless there is one of its name, and waits until it has
// leaders.
func (c *Client) Create(ctx context.Context, t Topic) error {
	for n := 1; ; n++ {
		e := c.c.tryCreate(ctx, t)
		switch e {
		case model.None, model.ErrTopicAlreadyExists:
			if c.c.whole(ctx, t.Name) == nil {
				return fmt.Errorf("create topic %s: %w", t.Name, ctx.Err())
			}
			return nil
		case model.ErrInvalidTopicException, model.ErrInvalidPartitions, model.ErrInvalidConfig, model.ErrPolicyViolation:
			return fmt.Errorf("create topic %s: %v", t.Name, e)
		}
		if !c.c.pause(ctx, n) {
			return fmt.Errorf("create topic %s: %w, the last answer was %v", t.Name, ctx.Err(), e)
		}
	}
}

// Produce writes one record to a partition with acks=all and returns its offset.
// It tries for some seconds; ErrInDoubt is among the causes of an error when the
// outcome is open.
func (c *Client) Produce(ctx context.Context, topic string, partition int32, value string) (int64, error) {
	t, err := c.topic(ctx, topic, partition)
	if err != nil {
		return -1, fmt.Errorf("produce to %s-%d: %w", topic, partition, err)
	}
	p := c.c.pack(t, partition, record.PlainOptions(), 1, func() string { return value })
	c.c.deliver(ctx, delivery{acks: -1, tries: 10}, []*parcel{p})
	switch {
	case p.result == outcome.Done && p.base >= 0:
		return p.base, nil
	case p.result == outcome.Done || p.result == outcome.Unknown:
		err = ErrInDoubt
	default:
		err = fmt.Errorf("the record was not written: %v", p.code)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, ctx.Err())
	}
	return -1, fmt.Errorf("produce to %s-%d: %w", topic, partition, err)
}

// Entry is one record that was read.
type Entry struct {
	Offset int64
	Epoch  int32 // of the leader that appended it
	Value  string
}

// Read asks until there is an answer for the records from an offset on, and
// returns what it holds: nothing where nothing was written for a while. An offset
// that is out of range, such as -1, is taken for the start of the log.
func (c *Client) Read(ctx context.Context, topic string, partition int32, from int64) ([]Entry, error) {
	t, err := c.topic(ctx, topic, partition)
	if err != nil {
		return nil, fmt.Errorf("read %s-%d: %w", topic, partition, err)
	}
	r := c.reader(t, partition, from)
	var out []Entry
	answered := false
	r.got = func(read []entry) {
		answered = true
		for _, e := range read {
			out = append(out, Entry{e.offset, e.epoch, e.value})
		}
	}
	for !answered {
		if t := c.c.meta.Topic(topic); t != nil && t.ID != r.positions[0].id {
			return nil, fmt.Errorf("read %s-%d: the topic was deleted, another one has its name", topic, partition)
		}
		if !r.read(ctx) && !answered {
			return nil, fmt.Errorf("read %s-%d: %w", topic, partition, ctx.Err())
		}
	}
	return out, nil
}

// reader returns the reader of a partition, where it is to read.
func (c *Client) reader(t *metadata.Topic, partition int32, from int64) *reader {
	var r *reader
	for _, x := range c.reads {
		if p := x.positions[0]; p.topic == t.Name && p.partition == partition {
			r = x
		}
	}
	if r == nil {
		r = &reader{c: c.c, positions: []*position{newPosition(t, partition)}}
		c.reads = append(c.reads, r)
	}
	if p := r.positions[0]; p.id == t.ID && p.offset == from {
		return r
	}
	p := newPosition(t, partition)
	r.positions[0] = p
	if from >= 0 {
		p.offset = from
		c.c.env.chose(p)
	}
	return r
}

// End is the offset at which a partition's log ends for consumers, as its leader
// tells.
func (c *Client) End(ctx context.Context, topic string, partition int32) (int64, error) {
	t, err := c.topic(ctx, topic, partition)
	for n := 1; err == nil; n++ {
		if at, ok := c.c.listOffset(ctx, newPosition(t, partition), latest, 0); ok {
			return at, nil
		}
		if !c.c.pause(ctx, n) {
			err = ctx.Err()
		} else {
			t, err = c.topic(ctx, topic, partition)
		}
	}
	return -1, fmt.Errorf("the end of %s-%d: %w", topic, partition, err)
}

// topic waits until there is one of this name.
func (c *Client) topic(ctx context.Context, name string, partition int32) (*metadata.Topic, error) {
	t := c.c.topic(ctx, name)
	if t != nil && int(partition) >= len(t.Partitions) {
		c.c.refresh(ctx, name)
		t = c.c.topic(ctx, name)
	}
	switch {
	case t == nil:
		return nil, ctx.Err()
	case partition < 0 || int(partition) >= len(t.Partitions):
		return nil, fmt.Errorf("the topic has %d partitions", len(t.Partitions))
	}
	return t, nil
}
