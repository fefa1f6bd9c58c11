package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
	"github.com/tidemark-log/tidemark/compat/chaos/lab"
)

// round is one run: a cluster, its clients, the faults and the end.
type round struct {
	*settings
	h       *history.History
	c       *cluster
	n       *nemesis
	group   *history.Group
	tails   []*reader
	tallies []history.Tally
	healed  time.Duration // from the last fault to full ISRs
	equal   int           // replicas that were compared
}

// rng is the chance of one part of the run.
func (r *round) rng(part uint64) *rand.Rand { return rand.New(rand.NewPCG(r.seed, part)) }

// run makes everything and leaves the verdict in the history. An error means
// that the run itself went wrong.
func (r *round) run(ctx context.Context) error {
	rng := r.rng(0)
	nodes := 4
	if r.layout == "apart" {
		nodes = 6
	}
	c, err := newCluster(r.settings, r.h, rng.IntN(nodes), slowLinks(rng, nodes))
	if err != nil {
		return err
	}
	r.c, r.n = c, newNemesis(c)
	defer c.stop()
	for _, n := range c.nodes {
		if err := n.launch(); err != nil {
			return err
		}
	}
	if err := r.topics(ctx); err != nil {
		return err
	}
	c.say("the cluster is up; node %d has the small disk; through toxiproxy: %v", c.small.id, c.net.Proxied())
	stopWriters, err := c.startWriters(ctx)
	if err != nil {
		return err
	}
	clients := r.startClients(ctx)
	defer clients.stop()
	if err := r.hurt(ctx); err != nil {
		return err
	}
	c.say("no more faults")
	return r.finish(ctx, stopWriters, clients)
}

// slowLinks chooses two links between nodes and one of the clients.
func slowLinks(rng *rand.Rand, nodes int) []lab.Link {
	a := rng.Perm(nodes)
	b := rng.Perm(nodes)
	out := []lab.Link{{From: a[0] + 1, To: a[1] + 1}, {From: lab.Clients, To: nodes - rng.IntN(3)}}
	if second := (lab.Link{From: b[0] + 1, To: b[1] + 1}); second != out[0] {
		out = append(out, second)
	}
	return out
}

// topics waits for the cluster and makes the ledgers.
func (r *round) topics(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	adm, err := r.c.administrator()
	if err != nil {
		return err
	}
	defer adm.Close()
	for _, l := range ledgers() {
		for p := range l.partitions {
			r.h.Partition(l.topic, p, l.acks)
		}
		for {
			resp, err := adm.CreateTopic(ctx, l.partitions, 3, map[string]*string{"min.insync.replicas": kadm.StringPtr("2")}, l.topic)
			if err == nil && resp.Err == nil {
				break
			}
			if !pause(ctx, 100*time.Millisecond) {
				return fmt.Errorf("create topic %s: %w", l.topic, errors.Join(err, resp.Err))
			}
		}
	}
	r.group = r.h.Group(groupName)
	return nil
}

// clients are all consumers of a run.
type clients struct {
	readers, members, others sync.WaitGroup
	stopReaders, stopMembers func()
	stopOthers               func()
	mu                       sync.Mutex
	err                      error
}

func (c *clients) failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
}

func (c *clients) stop() {
	c.stopReaders()
	c.stopMembers()
	c.stopOthers()
	c.readers.Wait()
	c.members.Wait()
	c.others.Wait()
}

// startClients starts a reader of each ledger, a restless one, the group and an
// observer.
func (r *round) startClients(ctx context.Context) *clients {
	out := &clients{}
	var readersCtx, membersCtx, othersCtx context.Context
	readersCtx, out.stopReaders = context.WithCancel(ctx)
	membersCtx, out.stopMembers = context.WithCancel(ctx)
	othersCtx, out.stopOthers = context.WithCancel(ctx)
	for _, l := range ledgers() {
		tail := r.c.newReader(l.topic, "tail", l.partitions, func(int32) int64 { return 0 })
		r.tails = append(r.tails, tail)
		out.readers.Go(func() { out.failed(tail.run(readersCtx, nil)) })
		if l.acks != history.AcksNone {
			rng := r.rng(100 + uint64(l.writers))
			out.others.Go(func() { out.failed(r.c.restless(othersCtx, l, rng)) })
		}
	}
	for place := range 3 {
		rng := r.rng(200 + uint64(place))
		out.members.Go(func() { out.failed(r.c.membership(membersCtx, r.group, "all", place, rng)) })
	}
	out.others.Go(func() { out.failed(r.c.observe(othersCtx, r.group, r.n.faults)) })
	return out
}

// hurt injects faults for the duration of the run.
func (r *round) hurt(ctx context.Context) error {
	if !pause(ctx, 5*time.Second) {
		return ctx.Err()
	}
	part, cancel := context.WithTimeout(ctx, r.duration)
	defer cancel()
	var lanes sync.WaitGroup
	errs := make([]error, 3)
	lanes.Go(func() { defer cancel(); errs[0] = r.n.lane(part, processFaults(), r.rng(1)) })
	lanes.Go(func() { defer cancel(); errs[1] = r.n.lane(part, networkFaults(), r.rng(2)) })
	lanes.Go(func() { errs[2] = r.n.administer(part, r.rng(3)) })
	lanes.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}
