package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/compat/chaos/history"
)

const groupName = "flock"

// member is one life of a member of the group.
type member struct {
	c     *cluster
	g     *history.Group
	topic string
	name  string
	dead  atomic.Bool

	mu     sync.Mutex
	conns  []net.Conn
	joined history.Stamp // it did not own anything then
	at     map[int32]*history.Reader
}

// membership keeps a place in the group filled: members come, work for some
// seconds and go, half of them without saying so.
func (c *cluster) membership(ctx context.Context, g *history.Group, topic string, place int, rng *rand.Rand) error {
	var closing sync.WaitGroup
	defer closing.Wait()
	for life := 1; ctx.Err() == nil; life++ {
		m := &member{c: c, g: g, topic: topic, name: fmt.Sprintf("member %d.%d", place, life), at: map[int32]*history.Reader{}}
		cl, err := m.open()
		if err != nil {
			return err
		}
		part, cancel := context.WithTimeout(ctx, seconds(5+20*rng.Float64()))
		polite := rng.IntN(2) == 0
		if err := m.work(part, cl); err != nil {
			polite = false
		}
		cancel()
		if !polite && ctx.Err() == nil {
			m.vanish()
		}
		closing.Go(cl.CloseAllowingRebalance)
	}
	return nil
}

func (m *member) open() (*kgo.Client, error) {
	m.joined = m.c.h.Now()
	// A commit that was sent twice could arrive late and undo a newer one, so
	// nothing is sent twice.
	return m.c.client(m.name, kgo.ConsumerGroup(groupName), kgo.ConsumeTopics(m.topic), kgo.Dialer(m.dial),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.Balancers(kgo.RoundRobinBalancer()), kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.RebalanceTimeout(8*time.Second), kgo.RequestRetries(0), kgo.FetchMaxWait(300*time.Millisecond),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { m.forget(false) }),
		kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) { m.forget(true) }),
		kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) { m.forget(true) }))
}

// forget starts anew with every assignment.
func (m *member) forget(left bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = map[int32]*history.Reader{}
	if left {
		m.joined = m.c.h.Now()
	}
}

func (m *member) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if m.dead.Load() {
		return nil, errors.New("the member is dead")
	}
	conn, err := m.c.dial(ctx, network, addr)
	if err == nil {
		m.mu.Lock()
		m.conns = append(m.conns, conn)
		m.mu.Unlock()
	}
	return conn, err
}

// vanish breaks all connections for good, as a killed process does.
func (m *member) vanish() {
	m.dead.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, conn := range m.conns {
		conn.Close()
	}
}

// work reads and commits until the context ends or a commit's fate is unknown.
func (m *member) work(ctx context.Context, cl *kgo.Client) error {
	for {
		fetches := cl.PollRecords(ctx, 1000)
		err := m.c.judgeErrors(m.name, fetches)
		if offsets := m.take(fetches); len(offsets) > 0 {
			err = errors.Join(err, m.commit(cl, offsets))
		}
		cl.AllowRebalance()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// take notes what was read and returns what may be committed.
func (m *member) take(fetches kgo.Fetches) map[int32]kgo.EpochOffset {
	m.mu.Lock()
	defer m.mu.Unlock()
	offsets := map[int32]kgo.EpochOffset{}
	fetches.EachRecord(func(rec *kgo.Record) {
		p := m.c.h.Find(m.topic, rec.Partition)
		r := m.at[rec.Partition]
		if r == nil {
			m.g.Resumed(p, m.joined, rec.Offset)
			r = p.Reader(m.name, rec.Offset)
			m.at[rec.Partition] = r
		}
		r.Saw(rec.Offset, rec.LeaderEpoch, rec.Value)
		m.g.Delivered(p, rec.Offset)
		offsets[rec.Partition] = kgo.EpochOffset{Epoch: rec.LeaderEpoch, Offset: rec.Offset + 1}
	})
	return offsets
}

// commit returns an error if the commit may or may not have been made.
func (m *member) commit(cl *kgo.Client, offsets map[int32]kgo.EpochOffset) error {
	for p, o := range offsets {
		m.g.Commits(m.c.h.Find(m.topic, p), o.Offset)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	var failed error
	cl.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{m.topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			failed = err
			if err != nil {
				return
			}
			for _, t := range resp.Topics {
				for _, p := range t.Partitions {
					if p.ErrorCode == 0 {
						m.g.Committed(m.c.h.Find(t.Topic, p.Partition), offsets[p.Partition].Offset)
					} else {
						failed = fmt.Errorf("commit of %s-%d: error %d", t.Topic, p.Partition, p.ErrorCode)
					}
				}
			}
		})
	return failed
}

// observe asks for leaders and committed offsets all the time.
func (c *cluster) observe(ctx context.Context, g *history.Group, faults func() bool) error {
	adm, err := c.administrator()
	if err != nil {
		return err
	}
	defer adm.Close()
	for pause(ctx, 250*time.Millisecond) {
		c.observeLeaders(ctx, adm)
		c.observeGroup(ctx, adm, g, faults)
	}
	return nil
}

func (c *cluster) observeLeaders(ctx context.Context, adm *kadm.Client) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	var names []string
	for _, l := range ledgers() {
		names = append(names, l.topic)
	}
	topics, err := adm.ListTopics(ctx, names...)
	if err != nil {
		return
	}
	for _, t := range topics {
		for _, d := range t.Partitions {
			if p := c.h.Find(t.Topic, d.Partition); p != nil && d.Err == nil {
				p.Led(d.LeaderEpoch)
			}
		}
	}
}

func (c *cluster) observeGroup(ctx context.Context, adm *kadm.Client, g *history.Group, faults func() bool) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	asked, before := c.h.Now(), faults()
	offsets, err := adm.FetchOffsets(ctx, g.Name)
	if err != nil {
		return
	}
	for topic, ps := range offsets {
		for number, o := range ps {
			if p := c.h.Find(topic, number); p != nil && o.Err == nil && o.At >= 0 {
				g.Fetched(p, asked, o.At, before || faults())
			}
		}
	}
}
