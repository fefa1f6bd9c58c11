package tidetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidemark-log/tidemark/internal/sim/workload"
)

// ErrInDoubt is among the causes of an error of SimClient.Produce when nobody
// knows whether the record is or will be in the log.
var ErrInDoubt = workload.ErrInDoubt

// SimClient is a client inside a simulation. It does one thing at a time and
// serves the workload that it was given to. Contexts come from the workload's own
// or from context.Background; one with a limit is made by WithTimeout.
type SimClient struct {
	c   *workload.Client
	run *SimRun
}

// CreateTopic creates a topic, if there is none of its name, and waits until its
// partitions have leaders. -1 replicas are as many as the topics of the plan have.
// config is Kafka's topic keys; nil is fine.
func (c *SimClient) CreateTopic(ctx context.Context, topic string, partitions, replicas int, config map[string]string) error {
	t := workload.Topic{Name: topic, Partitions: int32(partitions), Replicas: int16(replicas)}
	for _, k := range slices.Sorted(maps.Keys(config)) {
		t.Configs = append(t.Configs, [2]string{k, config[k]})
	}
	return c.c.Create(ctx, t)
}

// Produce writes one record with acks=all and returns its offset. The checks of
// the house tell records apart by their values, so a value must not be empty and
// is good for one record of a partition.
//
// Under faults errors are to be expected: they come after some seconds of trying.
// ErrInDoubt is among their causes if the record may have been written, and is not
// if it was certainly not.
func (c *SimClient) Produce(ctx context.Context, topic string, p int, value string) (int64, error) {
	key := fmt.Sprintf("%s-%d %s", topic, p, value)
	if value == "" || c.run.produced[key] {
		return -1, fmt.Errorf("produce to %s-%d: the value %q is empty or was produced before", topic, p, value)
	}
	c.run.produced[key] = true
	offset, err := c.c.Produce(ctx, topic, int32(p), value)
	if err != nil && !errors.Is(err, ErrInDoubt) {
		delete(c.run.produced, key)
	}
	return offset, err
}

// SimRecord is a record that was read.
type SimRecord struct {
	Offset int64
	Epoch  int32 // of the leader that appended it
	Value  string
}

// Read returns records of a partition in order, the first of them at an offset or
// after it; as many as one answer holds, none if there was nothing to read for up
// to 200 ms. It asks until it is answered. An offset that is out of range is taken
// for the start of the log.
func (c *SimClient) Read(ctx context.Context, topic string, p int, from int64) ([]SimRecord, error) {
	read, err := c.c.Read(ctx, topic, int32(p), from)
	var out []SimRecord
	for _, e := range read {
		out = append(out, SimRecord{e.Offset, e.Epoch, e.Value})
	}
	return out, err
}

// End is the offset at which a partition ends for consumers, as its leader tells.
// It asks until it is answered.
func (c *SimClient) End(ctx context.Context, topic string, p int) (int64, error) {
	return c.c.End(ctx, topic, int32(p))
}

// Sleep waits by the clock of the client's machine; false says that ctx ended
// first.
func (c *SimClient) Sleep(ctx context.Context, d time.Duration) bool {
	return c.c.Env().Runtime.Sleep(ctx, d)
}

// WithTimeout is context.WithTimeout by the simulated clock.
func (c *SimClient) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.c.Env().Runtime.WithTimeout(ctx, d)
}

// Rand is the workload's own source of chance, which the seed decides.
func (c *SimClient) Rand() *rand.Rand { return c.c.Env().Rand }

// Now is how long the simulation has run.
func (c *SimClient) Now() time.Duration { return c.run.outlook.Now() }

// Clean is SimState.Clean.
func (c *SimClient) Clean() bool { return c.run.outlook.Clean() }

// Note writes a line into the trace.
func (c *SimClient) Note(format string, args ...any) { c.c.Note(format, args...) }
