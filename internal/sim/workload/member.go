package workload

import (
	"context"
	"time"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/sim/workload/outcome"
)

// Member is one of a consumer group by the classic protocol, for one topic with
// assignment by range. It commits what it has read and, whenever it is given a
// partition, resumes from what the group has committed. Run it several times for
// a group of several members.
type Member struct{ Group string }

// Name is that of the workload.
func (w Member) Name() string { return "member-" + w.Group }

const (
	sessionTimeout   = 6 * time.Second // the least that brokers allow
	rebalanceTimeout = 4 * time.Second
	heartbeatEvery   = 300 * time.Millisecond
)

// member is a Member that runs.
type member struct {
	c           *client
	group       string
	topic       string
	coordinator string // address, "" while it is not known
	id          string // member id, "" before the first join
	generation  int32
	protocol    string
	r           *reader // of the partitions that are assigned
	beat        time.Time
}

// Run joins, reads and commits until ctx ends.
func (w Member) Run(ctx context.Context, env *Env) {
	c := newClient(env)
	defer c.close()
	m := &member{c: c, group: w.Group, topic: env.Options.Topics[0].Name, r: &reader{c: c}}
	for n := 1; ctx.Err() == nil; n++ {
		if !m.join(ctx) {
			if !c.pause(ctx, n) {
				return
			}
			continue
		}
		n = 0
		m.consume(ctx)
		if env.chance(4) {
			m.restart(ctx)
		}
	}
	m.leave(ctx)
}

// restart forgets everything, with or without a good-bye.
func (m *member) restart(ctx context.Context) {
	if m.c.env.chance(2) {
		m.leave(ctx)
	}
	m.c.env.note("is restarted")
	m.c.close()
	m.id, m.coordinator = "", ""
}

// consume reads in the generation that was joined, until it is over or the member
// is to be restarted.
func (m *member) consume(ctx context.Context) {
	e := m.c.env
	if !m.resume(ctx) {
		return
	}
	for turns := 5 + e.Rand.IntN(30); turns > 0; turns-- {
		if !m.r.read(ctx) || !e.rest(ctx) || m.c.gone(m.topic, m.r.positions) {
			return
		}
		if e.chance(5) && !m.settled(ctx, m.commit(ctx)) {
			return
		}
		if e.Runtime.Since(m.beat) >= heartbeatEvery && !m.settled(ctx, m.heartbeat(ctx)) {
			return
		}
	}
	m.commit(ctx)
}

// settled looks at what the coordinator said and reports whether the generation
// goes on.
func (m *member) settled(ctx context.Context, e model.Error) bool {
	switch {
	case e == model.None:
		m.beat = m.c.env.Runtime.Now()
		return true
	case e == model.ErrRebalanceInProgress:
		m.commit(ctx)
		return false
	case e == model.ErrUnknownMemberID:
		m.id = ""
		return false
	case e == model.ErrIllegalGeneration || e == model.ErrFencedInstanceID:
		return false
	case e == noCode || outcome.Moved(e):
		m.coordinator = ""
	}
	return m.c.pause(ctx, 2)
}
